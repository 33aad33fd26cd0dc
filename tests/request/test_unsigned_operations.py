"""The operations that need no signature, as settings and tables name them."""

from __future__ import annotations

import pytest

from committer.request.unsigned_operations import (
    ALL_OPERATIONS,
    asked_operations,
    parse_operations,
)
from tests.support.builders.alter_requests import build_alter
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request


def test_a_text_names_operations_or_one_word_for_them() -> None:
    assert parse_operations(" append, DELETE,") == {"append", "delete"}
    assert parse_operations("all") == ALL_OPERATIONS
    assert parse_operations("None ") == frozenset()


@pytest.mark.parametrize("text", ["", " , ", "apend", "append delete", "all, append", "*"])
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="`all`, `none`, or operations with commas"):
        parse_operations(text)


def test_an_append_that_changes_the_schema_asks_for_both() -> None:
    table = build_flights()
    append = build_request(table, partition=("AA",)).request
    assert asked_operations(append) == {"append"}
    change = {"action": "add-column", "name": "x", "type": "int"}
    altering = build_alter(table, change).request
    assert asked_operations(altering) == {"alter"}
    both = append.model_copy(update={"changes": altering.changes})
    assert asked_operations(both) == {"append", "alter"}
