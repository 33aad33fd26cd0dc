"""The documents of table changes: what is read, and what is refused before any table is asked."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic import TypeAdapter, ValidationError

from committer.request.alterations import CHANGES_MAX, TableChanges

_CHANGES: TypeAdapter[TableChanges] = TypeAdapter(TableChanges)


def test_a_change_is_printed_as_it_was_read() -> None:
    documents = [
        {"action": "create-branch", "name": "audit", "max-ref-age-ms": 5},
        {"action": "union-by-name", "schema": {"type": "struct", "fields": []}},
        {"action": "set-properties", "updates": {"a": "b"}},
    ]
    read = _CHANGES.validate_python(documents)
    assert _CHANGES.dump_python(read, mode="json", by_alias=True, exclude_unset=True) == documents


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"action": "drop-table"}, "does not match any of the expected tags"),
        ({"name": "x"}, "Unable to extract tag"),
        ({"action": "drop-column"}, "Field required"),
        ({"action": "drop-column", "name": "x", "force": True}, "Extra inputs"),
        ({"action": "drop-column", "name": "a\nb"}, "printable"),
        ({"action": "drop-column", "name": ""}, "at least 1 character"),
        ({"action": "add-column", "name": "x", "type": "integr"}, "unknown type `integr`"),
        ({"action": "add-column", "name": "x", "type": {"type": "struct"}}, "list of fields"),
        ({"action": "add-partition-field", "source": "x", "transform": "zorder"}, "not known"),
        ({"action": "add-partition-field", "source": "x", "transform": "bucket[0]"}, "from 1"),
        ({"action": "union-by-name", "schema": {"type": "long"}}, "an object of type `struct`"),
        ({"action": "move-column", "name": "x"}, "one of `first`, `before` and `after`"),
        (
            {"action": "move-column", "name": "x", "first": True, "after": "y"},
            "one of `first`, `before` and `after`",
        ),
        ({"action": "set-current-snapshot"}, "one of `snapshot-id` and `ref`"),
        (
            {"action": "create-tag", "name": "x", "ref": "a", "snapshot-id": 1},
            "one of `snapshot-id` and `ref`",
        ),
        ({"action": "create-tag", "name": "x", "max-ref-age-ms": 0}, "greater than or equal to 1"),
        ({"action": "upgrade-format-version", "format-version": 4}, "less than or equal to 3"),
        ({"action": "set-properties", "updates": {}}, "at least 1 item"),
        ({"action": "set-properties", "updates": {"frazil.producer.p": "x"}}, "Frazil's own"),
        ({"action": "remove-properties", "removals": ["frazil.require-signature"]}, "Frazil's own"),
        ({"action": "set-properties", "updates": {"current-schema": "x"}}, "reserved"),
    ],
)
def test_a_change_that_no_table_could_take_is_refused(
    document: Mapping[str, object], why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        _CHANGES.validate_python([document])


def test_a_request_has_so_many_changes_at_most() -> None:
    changes = [{"action": "drop-column", "name": "x"}] * (CHANGES_MAX + 1)
    with pytest.raises(ValidationError, match="at most"):
        _CHANGES.validate_python(changes)
