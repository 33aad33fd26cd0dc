"""The commands report a refused request of which only the answer is kept as an answer."""

from __future__ import annotations

import pytest

from tests.support.cli.cli_commands import create, request
from tests.support.cli.commands import Frazil

AT_MS = 1_800_000_000_000


@pytest.fixture
def answer_key(frazil: Frazil) -> str:
    create(frazil)
    message = "a branch `audit` is there already"
    return frazil.quarantine(
        request(frazil), "conflict", message, quarantined_at_ms=AT_MS, is_told_only=True
    )


def test_an_answer_is_neither_listed_nor_counted_as_a_request(
    frazil: Frazil, answer_key: str
) -> None:
    kept = frazil.quarantine(request(frazil, epoch=1), "table_unknown")
    assert [one["key"] for one in frazil("quarantine", "list", "--json").lines] == [kept]
    assert frazil("status", "--json").object["quarantined"] == 1
    assert frazil("status", "--table", "db.flights", "--json").object["quarantined"] == 1
    (listed,) = frazil("quarantine", "list", "--answers", "--json").lines
    assert (listed["key"], listed["kept_until_ms"]) == (answer_key, AT_MS + 86_400_000)
    assert frazil("quarantine", "discard", "--all", "--yes").out.split() == [kept]
    assert frazil.quarantined() == [answer_key]


def test_an_answer_is_shown_as_one_with_the_time_until_which_it_is_kept(
    frazil: Frazil, answer_key: str
) -> None:
    answer = frazil("quarantine", "show", answer_key)
    assert answer.code == 0
    assert "no request is kept" in answer.out
    assert "a branch `audit` is there already" in answer.out
    assert "kept until" in answer.out
    assert "2027-01-16 08:00:00" in answer.out
    assert "its client runs again" in answer.out
    assert "broken" not in answer.out
    assert "request_truncated" not in answer.out
    (line,) = frazil("quarantine", "show", answer_key, "--json").lines
    assert line["kept_until_ms"] == AT_MS + 86_400_000


@pytest.mark.parametrize("force", [(), ("--force", "--yes")])
def test_an_answer_is_discarded_but_not_replayed_and_the_reason_is_told(
    frazil: Frazil, answer_key: str, force: tuple[str, ...]
) -> None:
    answer = frazil("quarantine", "replay", answer_key, *force)
    assert answer.code == 1
    assert "there is nothing to replay" in answer.err
    assert "its client runs again" in answer.err
    assert frazil.quarantined() == [answer_key]
    assert frazil("quarantine", "discard", answer_key, "--yes").code == 0
    assert frazil.quarantined() == []
