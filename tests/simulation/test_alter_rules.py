"""I22 is broken on purpose, and seen to notice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from tests.simulation.alter_rules import altered_as_asked, set_back_refs
from tests.simulation.metadata_rules import linear_history
from tests.support.builders.alter_requests import build_alter
from tests.support.builders.table_builders import build_table

TABLE = build_table(warehouse="memory://warehouse")


def metadata(**refs: int) -> TableMetadata:
    """Build a table of three snapshots, one after the other. `refs`: tags, and main."""
    snapshots = tuple(
        Snapshot(
            snapshot_id=number,
            parent_snapshot_id=number - 1 or None,
            sequence_number=number,
            timestamp_ms=number,
        )
        for number in (1, 2, 3)
    )
    named = {
        name: SnapshotRef(number, "branch" if name in (MAIN, "audit") else "tag")
        for name, number in {MAIN: 3, **refs}.items()
    }
    return replace(TABLE.metadata, snapshots=snapshots, refs=named)


@pytest.mark.parametrize(
    ("change", "before", "after", "wrong"),
    [
        (
            {"action": "create-tag", "name": "t"},
            metadata(),
            metadata(t=3),
            metadata(t=2),
        ),
        (
            {"action": "remove-snapshot-ref", "ref-name": "t"},
            metadata(t=1),
            metadata(),
            metadata(t=1),
        ),
        (
            {"action": "fast-forward", "branch": "audit", "to": "main"},
            metadata(audit=1),
            metadata(audit=3),
            metadata(audit=2),
        ),
        (
            {"action": "rollback-to-snapshot", "snapshot-id": 2},
            metadata(),
            metadata(main=2),
            metadata(main=1),
        ),
        (
            {"action": "set-properties", "updates": {"owner": "me"}},
            metadata(),
            replace(metadata(), properties={"owner": "me"}),
            replace(metadata(), properties={"owner": "you"}),
        ),
        (
            {"action": "add-column", "name": "c", "type": "long"},
            metadata(),
            None,
            metadata(),
        ),
    ],
    ids=lambda one: one["action"] if isinstance(one, dict) else "",
)
def test_a_change_that_is_not_made_breaks_i22(
    change: dict[str, object],
    before: TableMetadata,
    after: TableMetadata | None,
    wrong: TableMetadata,
) -> None:
    request = build_alter(TABLE, change).request
    if after is not None:
        assert not list(altered_as_asked(before, after, [request]))
    (problem,) = altered_as_asked(before, wrong, [request])
    assert f"did not {change['action']}" in problem


def test_a_ref_that_moves_and_that_no_request_names_breaks_i22() -> None:
    request = build_alter(TABLE, {"action": "create-tag", "name": "t"}).request
    before, after = metadata(other=1), metadata(other=2, t=3)
    (problem,) = altered_as_asked(before, after, [request])
    assert "`other` has moved" in problem


def test_only_a_branch_that_a_request_rolls_back_may_go_back() -> None:
    request = build_alter(TABLE, {"action": "rollback-to-snapshot", "snapshot-id": 2}).request
    before, after = metadata(audit=3), metadata(main=2, audit=3)
    assert list(linear_history(before, after))
    assert not list(linear_history(before, after, set_back_refs([request])))
    assert list(linear_history(before, metadata(main=2, audit=1), set_back_refs([request])))
