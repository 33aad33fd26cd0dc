"""The content of a high-water mark, the join of two, and the losses that it finds in a table."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from uuid import uuid4

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    RemoveProperties,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
    UpgradeFormatVersion,
)
from committer.ledger_entry import property_key
from committer.plan.ledger.high_water_mark import (
    HighWaterMark,
    dropped_branches,
    missing_from,
    parse_high_water_mark,
    print_high_water_mark,
    snapshots_above,
)
from committer.plan.ledger.state import TableState
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.plan.committing import Table

KEY = property_key("query-1")


def land(
    table: Table,
    *,
    producer: str = "query-1",
    epoch: int = 0,
    branch: str = MAIN,
    one_shot: bool = False,
) -> None:
    request = build_request(
        table.state.table, producer=producer, epoch=epoch, branch=branch, one_shot=one_shot
    )
    table.commit(request)


def build_table(epochs: int = 3, *, format_version: int = 2) -> Table:
    table = Table.of(build_flights(format_version=format_version, fields=()))
    for epoch in range(epochs):
        land(table, epoch=epoch)
    return table


def missing(state: TableState, high_water_mark: HighWaterMark) -> list[str]:
    return list(missing_from(state, high_water_mark))


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_nothing_is_missing_from_a_table_that_went_on(format_version: int) -> None:
    table = build_table(format_version=format_version)
    seen = HighWaterMark.of(table.state)
    assert missing(table.state, seen) == []
    land(table, epoch=3)
    land(table, producer="query-2")
    assert missing(table.state, seen) == []
    assert HighWaterMark.of(table.state).joined(seen) == HighWaterMark.of(table.state)


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_a_table_that_was_put_back_lacks_what_came_after(format_version: int) -> None:
    table = build_table(format_version=format_version)
    before = table.state
    land(table, producer="shot", one_shot=True)
    seen = HighWaterMark.of(table.state)
    (said,) = missing(before, seen)
    assert str(seen.snapshot_id) in said


def test_a_table_that_was_put_back_and_went_on_has_another_history() -> None:
    table = build_table()
    before = table.state
    land(table, producer="shot", one_shot=True)
    seen = HighWaterMark.of(table.state)
    table.state = before
    land(table, producer="foreign", one_shot=True)
    assert [one for one in missing(table.state, seen) if "belongs to snapshot" in one]


def test_a_producer_that_has_lost_its_entry_or_epochs_is_missed() -> None:
    table = build_table()
    seen = HighWaterMark.of(table.state)
    old = build_table(2).state.metadata.properties[KEY]
    ours = old.replace(old.split('"table":"')[1][:36], str(table.state.metadata.table_uuid))
    table.foreign(SetProperties({KEY: ours}))
    assert missing(table.state, seen) == [f"the property `{KEY}` lacks epoch 2, which has landed"]
    table.foreign(RemoveProperties((KEY,)))
    assert missing(table.state, seen) == [f"the property `{KEY}` lacks epoch 2, which has landed"]


def test_an_entry_that_cannot_be_read_freezes_its_producer_not_the_table() -> None:
    table = build_table()
    seen = HighWaterMark.of(table.state)
    table.foreign(SetProperties({KEY: "of a later release"}))
    assert KEY in table.state.ledger.frozen
    assert missing(table.state, seen) == []


def test_a_one_shot_producer_that_has_left_the_ledger_is_not_missed() -> None:
    table = build_table()
    land(table, producer="shot", one_shot=True)
    seen = HighWaterMark.of(table.state)
    table.foreign(RemoveProperties((property_key("shot"),)))
    assert missing(table.state, seen) == []


def test_a_rollback_with_its_clean_up_is_the_producers_affair() -> None:
    table = build_table()
    seen = HighWaterMark.of(table.state)
    first, *others = [one.snapshot_id for one in table.state.metadata.snapshots]
    table.foreign(SetSnapshotRef(MAIN, SnapshotRef(first, "branch")))
    assert missing(table.state, seen) == []
    table.foreign(RemoveSnapshots(tuple(others)))
    assert missing(table.state, seen) == []
    assert KEY in table.state.ledger.frozen


def test_a_rollback_with_its_clean_up_is_no_other_history() -> None:
    table = build_table()
    seen = HighWaterMark.of(table.state)
    first, *others = [one.snapshot_id for one in table.state.metadata.snapshots]
    table.foreign(SetSnapshotRef(MAIN, SnapshotRef(first, "branch")))
    table.foreign(RemoveSnapshots(tuple(others)))
    now = HighWaterMark.of(table.state)
    assert now.snapshot_id is None
    assert not seen.contradicts(now)
    # Nor is that a leave for another snapshot of that number.
    assert seen.joined(now).contradicts(replace(seen, snapshot_id=1))


def test_an_upgrade_from_version_1_is_no_step_back() -> None:
    table = build_table(format_version=1)
    seen = HighWaterMark.of(table.state)
    table.foreign(UpgradeFormatVersion(2))
    assert missing(table.state, seen) == []


def test_entries_may_go_with_their_branch_and_only_with_it() -> None:
    table = build_table()
    head = table.state.metadata.current_snapshot_id or 0
    table.foreign(SetSnapshotRef("audit", SnapshotRef(head, "branch")))
    land(table, producer="audit", branch="audit")
    seen = HighWaterMark.of(table.state)
    key = property_key("audit", "audit")
    with_branch = table.state
    table.foreign(RemoveProperties((key,)))
    assert len(missing(table.state, seen)) == 1
    table.foreign(RemoveSnapshotRef("audit"))
    assert missing(table.state, seen) == []
    # Then it may come back without them.
    seen = seen.without(dropped_branches(table.state, seen), sequence_number=9)
    table.foreign(SetSnapshotRef("audit", SnapshotRef(head, "branch")))
    assert missing(table.state, seen) == []
    assert dropped_branches(with_branch, seen) == {}


def test_what_was_forgotten_is_not_missed_until_more_has_landed() -> None:
    table = build_table()
    seen = HighWaterMark.of(table.state).without({KEY: 2}, sequence_number=9)
    table.foreign(RemoveProperties((KEY,)))
    assert missing(table.state, seen) == []
    later = replace(seen, producers={KEY: 3})
    assert len(missing(table.state, later)) == 1


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_only_what_came_after_the_high_water_mark_is_looked_up(format_version: int) -> None:
    table = build_table(format_version=format_version)
    seen = HighWaterMark.of(table.state)
    assert snapshots_above(table.state.metadata, seen) == []
    land(table, epoch=3)
    assert snapshots_above(table.state.metadata, seen) == [table.state.metadata.current_snapshot]


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_nothing_is_looked_up_behind_a_foreign_snapshot_that_was_accepted(
    format_version: int,
) -> None:
    table = build_table(format_version=format_version)
    head = table.state.metadata.current_snapshot
    assert head is not None
    # In the same millisecond, as clocks allow it.
    number = 0 if format_version == 1 else head.sequence_number + 1
    foreign = replace(
        head,
        snapshot_id=77,
        parent_snapshot_id=head.snapshot_id,
        sequence_number=number,
        summary={"operation": "append"},
        first_row_id=table.state.metadata.next_row_id,
        added_rows=0 if format_version == 3 else None,
    )
    table.foreign(AddSnapshot(foreign), SetSnapshotRef(MAIN, SnapshotRef(77, "branch")))
    accepted = HighWaterMark.of(table.state, accepted_ms=1)
    assert snapshots_above(table.state.metadata, accepted) == []
    land(table, epoch=3)
    assert snapshots_above(table.state.metadata, accepted) == [
        table.state.metadata.current_snapshot
    ]


def test_nothing_is_looked_up_of_a_version_1_table_that_was_rolled_back() -> None:
    table = build_table(format_version=1)
    seen = HighWaterMark.of(table.state)
    older = table.state.metadata.snapshots[1].snapshot_id
    table.foreign(SetSnapshotRef(MAIN, SnapshotRef(older, "branch")))
    assert snapshots_above(table.state.metadata, seen) == []


def test_joining_takes_nothing_back_in_any_order() -> None:
    table = build_table(1)
    seen = [HighWaterMark.of(table.state)]
    land(table, epoch=1)
    seen.append(HighWaterMark.of(table.state))
    land(table, producer="query-2")
    seen.append(HighWaterMark.of(table.state).without({KEY: 0}, sequence_number=9))
    newest = HighWaterMark.of(table.state).without({KEY: 0}, sequence_number=9)
    for one, two, three in permutations(seen):
        assert one.joined(two).joined(three) == newest
        assert one.joined(two.joined(three)) == newest
    assert newest.joined(newest) == newest


def test_what_landed_again_is_required_until_it_is_forgotten_once_more() -> None:
    table = build_table(2)
    number = table.state.metadata.last_sequence_number
    seen = HighWaterMark.of(table.state).without({KEY: 5}, sequence_number=number)
    assert list(seen.with_landed_again(table.state.ledger, {KEY}).required) == []
    land(table, epoch=4)
    again = seen.after(table.state, {KEY})
    assert list(again.required) == [(KEY, 4)]
    assert list(again.joined(seen).required) == list(seen.joined(again).required) == [(KEY, 4)]
    less = again.without({KEY: 5}, sequence_number=number + 1)
    assert list(less.required) == []
    assert list(less.joined(again).required) == list(again.joined(less).required) == []


def test_of_two_acceptances_the_later_one_counts_alone() -> None:
    table = build_table()
    seen = HighWaterMark.of(table.state, accepted_ms=1)
    accepted = HighWaterMark.of(build_table(1).state, accepted_ms=2)
    assert accepted.joined(seen) is accepted
    assert seen.joined(accepted) is accepted


def test_after_a_commit_the_high_water_mark_knows_what_a_new_look_would() -> None:
    table = build_table()
    land(table, producer="query-2", epoch=5)
    seen = HighWaterMark.of(table.state, accepted_ms=7)
    land(table, epoch=3)
    assert seen.after(table.state, {KEY}) == HighWaterMark.of(table.state, accepted_ms=7)
    land(table, producer="shot", one_shot=True)
    assert seen.after(table.state, {KEY, property_key("shot")}) == HighWaterMark.of(
        table.state, accepted_ms=7
    )


def test_a_high_water_mark_is_read_as_it_was_printed() -> None:
    table = build_table()
    for high_water_mark in (
        HighWaterMark.of(table.state, accepted_ms=5).without({KEY: 1}, sequence_number=9),
        HighWaterMark.of(TableState.of(build_flights(fields=()))),
    ):
        assert (
            parse_high_water_mark(
                print_high_water_mark(high_water_mark), high_water_mark.table_uuid
            )
            == high_water_mark
        )


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"v":2}', b'{"v":1}', b'{"v":1,"table":"x"}'],
    ids=lambda content: content.decode() or "empty",
)
def test_what_is_no_high_water_mark_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidMetadataError, match="high-water mark"):
        parse_high_water_mark(content, uuid4())


def test_the_high_water_mark_of_another_table_is_refused() -> None:
    high_water_mark = HighWaterMark.of(build_table().state)
    with pytest.raises(InvalidMetadataError, match="is that of table"):
        parse_high_water_mark(print_high_water_mark(high_water_mark), uuid4())
