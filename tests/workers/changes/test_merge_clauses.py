"""Which clauses a merge takes, and what follows from them."""

from __future__ import annotations

import pytest

from committer.errors import SettingsError
from workers.changes.merge_clauses import Action, Clause, Clauses, Side


def clauses(*given: tuple[Side, Action, str | None]) -> Clauses:
    return Clauses(tuple(Clause(side, action, condition) for side, action, condition in given))


@pytest.mark.parametrize(
    ("sides", "join"),
    [
        (["matched"], "inner"),
        (["not_matched"], "right"),
        (["matched", "not_matched"], "right"),
        (["not_matched_by_source"], "left"),
        (["matched", "not_matched_by_source"], "left"),
        (["not_matched", "not_matched_by_source"], "full"),
    ],
)
def test_the_join_keeps_the_rows_that_a_clause_is_for(sides: list[Side], join: str) -> None:
    assert clauses(*((side, "delete", None) for side in sides)).join == join


def test_inserts_alone_change_no_row() -> None:
    assert clauses(("not_matched", "insert", None)).only_inserts
    assert not clauses(("not_matched", "insert", None), ("matched", "delete", "x")).only_inserts
    assert not clauses(("not_matched_by_source", "delete", None)).only_inserts


def test_a_row_may_match_twice_only_where_it_is_deleted_anyway() -> None:
    assert clauses(("matched", "update", None)).matches_once
    assert clauses(("matched", "delete", "x")).matches_once
    assert clauses(("matched", "delete", "x"), ("matched", "delete", None)).matches_once
    assert not clauses(("matched", "delete", None), ("not_matched", "insert", None)).matches_once
    assert not clauses(("not_matched_by_source", "update", None)).matches_once


def test_a_clause_that_is_never_asked_is_refused() -> None:
    clauses(("matched", "delete", "x"), ("matched", "update", None)).check()
    clauses(("matched", "delete", None), ("not_matched", "insert", None)).check()
    with pytest.raises(SettingsError, match="`when_matched` without a condition hides"):
        clauses(("matched", "delete", None), ("matched", "update", "x")).check()
    with pytest.raises(SettingsError, match="expected a clause"):
        clauses().check()


def test_a_clause_without_values_takes_all_columns_unless_it_deletes() -> None:
    assert clauses(("matched", "update", None)).take_all
    assert clauses(("matched", "delete", None), ("not_matched", "insert", "x")).take_all
    assert not clauses(("matched", "delete", None)).take_all
    assigned = Clause("matched", "update", None, {"id": "1"})
    assert not Clauses((assigned,)).take_all
