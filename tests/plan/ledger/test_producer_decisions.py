"""How producers stand, what a rollback took from them, and what an operator makes of it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.updates.metadata_update import (
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
)
from committer.ledger_entry import (
    ACCEPTED_MAX,
    EpochRanges,
    Freeze,
    Landed,
    ProducerEntry,
    print_entry,
)
from committer.plan.ledger.ledger import history_of, read_ledger
from committer.plan.ledger.producer_decisions import (
    ProducerName,
    ProducerState,
    RolledBack,
    epochs_of,
    frozen,
    marked_lost,
    rolled_back,
    standing,
    standings,
    thawed,
    with_accepted,
)
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.plan.committing import Table

NAME = ProducerName("query-1")
NOTHING = EpochRanges()


def table_with(*epochs: int) -> Table:
    table = Table.of(build_flights())
    for epoch in epochs:
        table.commit(build_request(table.table, epoch=epoch, partition=("AA",)))
    return table


def entry_of(table: Table) -> ProducerEntry:
    return read_ledger(table.state.metadata).entries[NAME.key]


def roll_back(table: Table, position: int) -> None:
    """Make an earlier snapshot the head of main again."""
    snapshot_id = table.state.metadata.snapshots[position].snapshot_id
    table.foreign(SetSnapshotRef("main", SnapshotRef(snapshot_id, "branch")))


def state_of(table: Table) -> ProducerState:
    return standing(read_ledger(table.state.metadata), NAME).state


def test_each_state_of_a_producer_is_told() -> None:
    table = table_with(0, 1)
    assert state_of(table) is ProducerState.ACTIVE
    entry = entry_of(table)
    table.foreign(SetProperties({NAME.key: print_entry(frozen(entry, "why", 17))}))
    assert state_of(table) is ProducerState.FROZEN
    table.foreign(SetProperties({NAME.key: "no entry"}))
    assert state_of(table) is ProducerState.UNREADABLE
    table.foreign(SetProperties({NAME.key: print_entry(entry)}))
    roll_back(table, 0)
    assert state_of(table) is ProducerState.ROLLED_BACK


def test_producers_are_listed_by_branch_and_name_whatever_their_state() -> None:
    table = table_with(0)
    table.foreign(
        SetSnapshotRef("audit", SnapshotRef(entry_of(table).latest[0].snapshot_id, "branch"))
    )
    for producer, branch in (("b", "main"), ("a", "main"), ("a", "audit")):
        request = build_request(table.table, producer=producer, branch=branch, partition=("AA",))
        table.commit(request)
    table.foreign(SetProperties({"frazil.producer.broken": "no entry"}))
    found = standings(read_ledger(table.state.metadata))
    assert [(one.name.branch, one.name.producer) for one in found] == [
        ("audit", "a"),
        ("main", "a"),
        ("main", "b"),
        ("main", "broken"),
        ("main", "query-1"),
    ]


def test_what_a_rollback_took_is_found_back_to_the_history_that_is_left() -> None:
    table = table_with(0, 1, 2, 3)
    assert rolled_back(table.state.metadata, NAME, entry_of(table)) == RolledBack()
    roll_back(table, 1)
    found = rolled_back(table.state.metadata, NAME, entry_of(table))
    assert found.is_whole
    assert found.snapshots == table.state.metadata.snapshots[:1:-1]


def test_a_rollback_whose_snapshots_have_expired_is_not_known_whole() -> None:
    table = table_with(0, 1, 2, 3)
    third = table.state.metadata.snapshots[2]
    roll_back(table, 0)
    table.foreign(RemoveSnapshots((third.snapshot_id,)))
    found = rolled_back(table.state.metadata, NAME, entry_of(table))
    assert not found.is_whole
    assert len(found.snapshots) == 1


def test_a_rollback_whose_parents_were_cleared_is_not_known_whole() -> None:
    table = table_with(0, 1, 2, 3)
    third = table.state.metadata.snapshots[2]
    roll_back(table, 0)
    table.pyiceberg_expires(third.snapshot_id)
    found = rolled_back(table.state.metadata, NAME, entry_of(table))
    assert (len(found.snapshots), found.is_whole) == (1, False)


def test_a_history_that_was_dropped_altogether_is_whole() -> None:
    table = table_with(0, 1)
    table.foreign(RemoveSnapshotRef("main"))
    found = rolled_back(table.state.metadata, NAME, entry_of(table))
    assert (len(found.snapshots), found.is_whole) == (2, True)


def test_thawed_behind_a_rollback_a_producer_goes_on_and_claims_nothing_that_is_gone() -> None:
    table = table_with(0, 1, 2)
    roll_back(table, 0)
    left = history_of(table.state.metadata, "main").snapshot_ids
    kept = thawed(entry_of(table), left, NOTHING)
    assert (str(kept.epochs), [one.epoch for one in kept.latest]) == ("0-2", [0])
    again = thawed(entry_of(table), left, EpochRanges(((1, 2),)))
    assert (str(again.epochs), again.latest) == ("0", kept.latest)
    for entry in (kept, again):
        table.foreign(SetProperties({NAME.key: print_entry(entry)}))
        assert state_of(table) is ProducerState.ACTIVE


def test_thawed_without_a_rollback_a_producer_forgets_nothing() -> None:
    entry = entry_of(table_with(0, 1, 2))
    assert thawed(frozen(entry, "why", 17), None, NOTHING) == entry
    assert frozen(frozen(entry, "first", 17), "second", 18).frozen == Freeze("first", 17)


def test_what_lands_by_leave_does_not_make_a_broken_history_look_whole() -> None:
    table = table_with(0, 1)
    lost_id = table.state.metadata.snapshots[1].snapshot_id
    roll_back(table, 0)
    entry = marked_lost(entry_of(table), "rolled back", 17)
    assert entry.frozen == Freeze("rolled back", 17, lost_id)
    assert marked_lost(entry, "later", 18) == entry
    landed = replace(entry.latest[0], snapshot_id=table.state.metadata.snapshots[0].snapshot_id)
    table.foreign(SetProperties({NAME.key: print_entry(replace(entry, latest=(landed,)))}))
    assert state_of(table) is ProducerState.ROLLED_BACK
    found = rolled_back(table.state.metadata, NAME, entry_of(table))
    assert [one.snapshot_id for one in found.snapshots] == [lost_id]


@given(st.sets(st.integers(0, 50)))
def test_epochs_as_ranges_are_the_epochs(numbers: set[int]) -> None:
    ranges = epochs_of(numbers)
    assert [number for number in range(52) if number in ranges] == sorted(numbers)
    assert EpochRanges.parse(str(ranges)) == ranges


def test_leave_is_bounded_and_kept_only_for_what_still_waits() -> None:
    entry = ProducerEntry(UUID(int=7), accepted=((1, UUID(int=1)), (2, UUID(int=2))))
    wanted = [(number, UUID(int=number)) for number in range(10, 10 + ACCEPTED_MAX)]
    found, beyond = with_accepted(entry, wanted, {str(UUID(int=2))})
    assert len(found.accepted) == ACCEPTED_MAX
    assert found.accepted[0] == (2, UUID(int=2))
    assert beyond == {wanted[-1]}
    assert with_accepted(found, wanted[:-1], {str(UUID(int=2))}) == (found, frozenset())


def test_landed_is_not_thawed_away_by_an_epoch_that_may_land_again() -> None:
    entry = ProducerEntry(UUID(int=7))
    for epoch in (4, 5):
        entry = entry.with_landed(Landed(epoch, "k", "f", UUID(int=epoch), 10 + epoch, epoch))
    found = thawed(entry, frozenset({14}), EpochRanges(((5, 5),)))
    assert [one.epoch for one in found.latest] == [4]
    assert str(found.epochs) == "4"
