"""The ledger's answers, row by row of the table in the design, and every turn of a lineage."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
    UpgradeFormatVersion,
)
from committer.ledger_entry import (
    EpochRanges,
    Freeze,
    Landed,
    ProducerEntry,
    print_entry,
    property_key,
)
from committer.plan.commit.ledger_changes import LedgerCleanup
from committer.plan.ledger.ledger import (
    Duplicate,
    Forgotten,
    Ledger,
    LedgerAnswer,
    NotLanded,
    Refused,
    history_of,
    read_ledger,
)
from committer.plan.ledger.state import TableState
from committer.reason import Reason
from committer.request.commit_request import CommitRequest, Fingerprint
from committer.request.request_format import EncodedRequest
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.plan.committing import Table


def table_with(*epochs: int, format_version: int = 2, **line: object) -> Table:
    table = Table.of(build_flights(format_version=format_version))
    for epoch in epochs:
        table.commit(one(table, epoch, **line))
    return table


def one(table: Table, epoch: int, **line: object) -> EncodedRequest:
    return build_request(table.table, epoch=epoch, partition=("AA",), **line)  # type: ignore[arg-type]


def ask(table: Table, epoch: int, **line: object) -> LedgerAnswer:
    return read_ledger(table.state.metadata).ask(one(table, epoch, **line).request)


# --- The answer table ----------------------------------------------------------------------------


def test_a_producer_that_was_never_heard_of_may_land() -> None:
    assert ask(table_with(), 0) == NotLanded(known=False)
    assert ask(table_with(0), 0, producer="another") == NotLanded(known=False)


def test_an_epoch_that_has_not_landed_may_land() -> None:
    table = table_with(0, 1, 5)
    assert ask(table, 6) == NotLanded(known=True)
    assert ask(table, 3) == NotLanded(known=True)


def test_a_landed_epoch_with_equal_fingerprint_is_a_duplicate_with_its_receipt() -> None:
    table = table_with(0, 1)
    answer = ask(table, 1)
    assert isinstance(answer, Duplicate)
    assert answer.warning is None
    head = table.state.metadata.current_snapshot
    assert head is not None
    assert (answer.landed.snapshot_id, answer.landed.sequence_number) == (
        head.snapshot_id,
        head.sequence_number,
    )


def test_a_landed_epoch_with_another_fingerprint_is_refused() -> None:
    answer = ask(table_with(0, 1), 1, fingerprint="another")
    assert isinstance(answer, Refused)
    assert answer.reason == Reason.EPOCH_CONTENT_DIFFERS
    assert "epoch 1" in answer.message


def test_an_epoch_whose_fingerprint_is_forgotten_proves_nothing() -> None:
    table = table_with()
    requests = [one(table, epoch) for epoch in range(4)]
    for sealed in requests[:3]:
        table.commit(sealed)
    assert isinstance(ask(table, 0), Duplicate)
    gone = frozenset(sealed.request.attempt for sealed in requests)
    table.commit(requests[3], cleanup=LedgerCleanup(settled={property_key("query-1"): gone}))
    for epoch in (0, 1):
        assert ask(table, epoch) == Forgotten()
        assert ask(table, epoch, fingerprint="another") == Forgotten()
    for epoch in (2, 3):
        assert isinstance(ask(table, epoch), Duplicate)


def of_kind(request: CommitRequest, kind: str) -> CommitRequest:
    return request.model_copy(update={"fingerprint": Fingerprint(kind=kind, value="v")})


def test_fingerprints_of_another_kind_are_not_compared() -> None:
    table = table_with(0)
    ledger = read_ledger(table.state.metadata)
    spark = ledger.ask(of_kind(one(table, 0).request, "spark-run"))
    assert isinstance(spark, Duplicate)
    assert spark.warning
    named = ledger.ask(of_kind(one(table, 0, sequential=False).request, "user"))
    assert isinstance(named, Refused)
    assert named.reason == Reason.EPOCH_LANDED_UNPROVEN


def test_the_very_attempt_that_landed_is_a_duplicate_whatever_its_kind() -> None:
    table = table_with()
    sealed = one(table, 0, sequential=False)
    table.commit(sealed)
    answer = read_ledger(table.state.metadata).ask(of_kind(sealed.request, "user"))
    assert isinstance(answer, Duplicate)


# --- Whose entry it is ---------------------------------------------------------------------------


def test_a_copied_property_claims_nothing() -> None:
    source = table_with(0)
    key = property_key("query-1")
    text = source.state.metadata.properties[key]
    copy = Table.of(build_flights(properties={key: text}))
    assert ask(copy, 0) == NotLanded(known=False)
    # It is written over by the first commit, and counts from then on.
    copy.commit(one(copy, 0))
    assert isinstance(ask(copy, 0), Duplicate)


def test_branches_have_ledgers_of_their_own() -> None:
    table = table_with(0)
    head = table.state.metadata.current_snapshot_id or 0
    table.foreign(SetSnapshotRef("audit", SnapshotRef(head, "branch")))
    assert ask(table, 0, branch="audit") == NotLanded(known=False)
    table.commit(one(table, 0, branch="audit"))
    assert isinstance(ask(table, 0, branch="audit"), Duplicate)
    assert ask(table, 1, branch="audit") == NotLanded(known=True)
    assert ask(table, 1) == NotLanded(known=True)


@pytest.mark.parametrize("text", ["", "x", "{}", '{"v":2}', "null"])
def test_an_entry_that_cannot_be_read_freezes_its_producer_and_no_other(text: str) -> None:
    table = table_with(0)
    table.commit(one(table, 0, producer="other"))
    table.foreign(SetProperties({property_key("query-1"): text}))
    answer = ask(table, 1)
    assert isinstance(answer, Refused)
    assert answer.reason == Reason.PRODUCER_FROZEN
    assert ask(table, 1, producer="other") == NotLanded(known=True)


# --- Lineage -------------------------------------------------------------------------------------


def frozen(table: Table, epoch: int = 9) -> bool:
    answer = ask(table, epoch)
    if isinstance(answer, Refused):
        assert answer.reason == Reason.PRODUCER_FROZEN
        assert "rolled back" in answer.message
        return True
    assert answer == NotLanded(known=True)
    return False


def head_of(table: Table) -> Snapshot:
    head = table.state.metadata.current_snapshot
    assert head is not None
    return head


def foreign_snapshot(table: Table, *, parent: Snapshot | None, number: int = 0) -> Snapshot:
    """Commit as another engine on any parent, as the new head of main."""
    metadata = table.state.metadata
    version_1 = metadata.format_version == 1
    snapshot = Snapshot(
        snapshot_id=900 + len(metadata.snapshots),
        parent_snapshot_id=parent.snapshot_id if parent else None,
        sequence_number=0 if version_1 else metadata.last_sequence_number + 1,
        timestamp_ms=metadata.last_updated_ms,
        manifest_list=f"memory://warehouse/foreign-{number}.avro",
        summary={"operation": "append"},
        schema_id=0,
        first_row_id=metadata.next_row_id,
        added_rows=None if metadata.next_row_id is None else 0,
    )
    ref = SnapshotRef(snapshot.snapshot_id, "branch")
    table.foreign(AddSnapshot(snapshot), SetSnapshotRef("main", ref))
    return snapshot


VERSIONS = pytest.mark.parametrize("format_version", [1, 2, 3])


@VERSIONS
def test_a_history_that_goes_on_is_whole(format_version: int) -> None:
    table = table_with(0, 1, format_version=format_version)
    foreign_snapshot(table, parent=head_of(table))
    assert not frozen(table)


@VERSIONS
def test_a_rollback_freezes(format_version: int) -> None:
    table = table_with(0, 1, format_version=format_version)
    first = table.state.metadata.snapshots[0]
    table.foreign(SetSnapshotRef("main", SnapshotRef(first.snapshot_id, "branch")))
    assert frozen(table)


@pytest.mark.parametrize("producer", ["frazil-operator-1", "frazil-upkeep-1"])
def test_a_rollback_freezes_no_command_and_no_upkeep(producer: str) -> None:
    """Nobody sends them again; frozen ones would hold up the table's expiry."""
    table = table_with(0, producer="query-2")
    first = head_of(table)
    table.commit(one(table, 0, producer=producer, one_shot=True))
    table.commit(one(table, 0, producer="shot", one_shot=True))
    table.foreign(SetSnapshotRef("main", SnapshotRef(first.snapshot_id, "branch")))
    ledger = read_ledger(table.state.metadata)
    assert ledger.frozen.keys() == ledger.broken == {property_key("shot")}


@VERSIONS
def test_a_rollback_that_others_have_gone_on_from_freezes(format_version: int) -> None:
    table = table_with(0, 1, format_version=format_version)
    foreign_snapshot(table, parent=table.state.metadata.snapshots[0])
    assert frozen(table)


@VERSIONS
def test_a_table_without_any_history_left_freezes(format_version: int) -> None:
    table = table_with(0, format_version=format_version)
    table.foreign(RemoveSnapshotRef("main"))
    assert frozen(table)


@VERSIONS
def test_a_table_that_was_replaced_goes_on_as_one_that_was_overwritten(format_version: int) -> None:
    """`CREATE OR REPLACE TABLE … AS SELECT`: all that was there is retained, and behind nothing.
    So is what a tag holds back from an expiry by PyIceberg.
    """
    table = table_with(0, 1, format_version=format_version)
    table.foreign(RemoveSnapshotRef("main"))
    foreign_snapshot(table, parent=None)
    assert not frozen(table)
    assert isinstance(ask(table, 1), Duplicate)


def ids_of(table: Table) -> list[int]:
    return [one.snapshot_id for one in table.state.metadata.snapshots]


@VERSIONS
def test_an_expiry_that_clears_the_parents_freezes_nobody(format_version: int) -> None:
    """PyIceberg's, of all but the head: who had landed before goes on."""
    table = table_with(format_version=format_version)
    for number in range(5):
        table.commit(one(table, 0, producer=f"query-{number}"))
    table.pyiceberg_expires(*ids_of(table)[:-1])
    assert [each.parent_snapshot_id for each in table.state.metadata.snapshots] == [None]
    for number in range(5):
        assert isinstance(ask(table, 0, producer=f"query-{number}"), Duplicate)
        assert ask(table, 1, producer=f"query-{number}") == NotLanded(known=True)


@VERSIONS
@pytest.mark.parametrize("is_pyiceberg", [False, True])
@pytest.mark.parametrize("gone", [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (1, 3), (0, 2, 3)])
def test_whichever_snapshots_expire_nobody_freezes(
    format_version: int, is_pyiceberg: bool, gone: tuple[int, ...]
) -> None:
    """By id, between two times, or all but those with a tag: a gap may be anywhere."""
    table = table_with(format_version=format_version)
    for number in range(5):
        table.commit(one(table, 0, producer=f"query-{number}"))
    snapshot_ids = [ids_of(table)[position] for position in gone]
    if is_pyiceberg:
        table.pyiceberg_expires(*snapshot_ids)
    else:
        table.foreign(RemoveSnapshots(tuple(snapshot_ids)))
    assert not read_ledger(table.state.metadata).frozen


@VERSIONS
def test_a_rollback_is_seen_beside_a_cut_history(format_version: int) -> None:
    table = table_with(0, 1, 2, 3, format_version=format_version)
    first, second, third, _ = ids_of(table)
    table.foreign(SetSnapshotRef("main", SnapshotRef(third, "branch")))
    table.pyiceberg_expires(first, second)
    assert frozen(table)


@pytest.mark.parametrize("format_version", [2, 3])
def test_a_rollback_that_has_expired_is_seen_while_the_history_is_that_long(
    format_version: int,
) -> None:
    table = table_with(0, 1, 2, 3, format_version=format_version)
    first, second, third, fourth = ids_of(table)
    table.foreign(SetSnapshotRef("main", SnapshotRef(third, "branch")))
    table.pyiceberg_expires(first, second, fourth)
    assert frozen(table)


def test_a_producer_of_before_the_upgrade_to_version_2_goes_on_whatever_expires() -> None:
    """Epochs that landed in version 1 keep the sequence number 0 for ever."""
    table = table_with(0, 1, format_version=1)
    table.foreign(UpgradeFormatVersion(2))
    table.commit(one(table, 0, producer="another"))
    table.commit(one(table, 1, producer="another"))
    assert not frozen(table)
    table.pyiceberg_expires(*ids_of(table)[:-1])
    assert not frozen(table)


def test_a_rollback_behind_the_upgrade_to_version_2_freezes() -> None:
    table = table_with(0, 1, format_version=1)
    table.foreign(UpgradeFormatVersion(2))
    table.commit(one(table, 2))
    before = ids_of(table)[1]
    table.foreign(SetSnapshotRef("main", SnapshotRef(before, "branch")))
    assert frozen(table)


def test_parents_that_run_in_a_circle_end_the_history() -> None:
    table = table_with(0, 1)
    first, second = table.state.metadata.snapshots
    circle = (replace(first, parent_snapshot_id=second.snapshot_id), second)
    metadata = replace(table.state.metadata, snapshots=circle)
    assert history_of(metadata, "main").snapshot_ids == {first.snapshot_id, second.snapshot_id}
    assert not read_ledger(metadata).frozen


@VERSIONS
def test_expiry_of_the_snapshot_in_which_it_landed_does_not_freeze(format_version: int) -> None:
    table = table_with(0, 1, format_version=format_version)
    gone = [one.snapshot_id for one in table.state.metadata.snapshots]
    for number in range(3):
        foreign_snapshot(table, parent=head_of(table), number=number)
    table.foreign(RemoveSnapshots(tuple(gone)))
    assert not frozen(table)


@VERSIONS
def test_expiry_up_to_a_newer_commit_of_ours_does_not_freeze(format_version: int) -> None:
    table = table_with(0, 1, 2, format_version=format_version)
    first, second, _ = (one.snapshot_id for one in table.state.metadata.snapshots)
    table.foreign(RemoveSnapshots((first, second)))
    assert not frozen(table)


@pytest.mark.parametrize("format_version", [2, 3])
def test_a_rollback_is_seen_behind_expired_history_too(format_version: int) -> None:
    table = table_with(0, 1, 2, 3, format_version=format_version)
    first, second, third, _ = table.state.metadata.snapshots
    foreign_snapshot(table, parent=third)
    table.foreign(RemoveSnapshots((first.snapshot_id, second.snapshot_id)))
    # Retained: 3 (number 3) and the foreign one; our newest has number 4 and is not among them.
    assert frozen(table)


def test_without_sequence_numbers_what_is_retained_beside_the_history_proves_a_rollback() -> None:
    table = table_with(0, 1, 2, 3, format_version=1)
    first, _, third, fourth = table.state.metadata.snapshots
    foreign_snapshot(table, parent=third)
    table.foreign(RemoveSnapshots((first.snapshot_id,)))
    assert frozen(table)
    # Once it has expired too, nothing tells it from what expired in the history.
    table.foreign(RemoveSnapshots((fourth.snapshot_id,)))
    assert not frozen(table)


def test_older_metadata_with_its_older_ledger_is_a_history_of_its_own() -> None:
    """Both move with the same swap: what the restored ledger says has landed, is in the table."""
    table = table_with(0, 1)
    restored = table.table
    table.commit(one(table, 2))
    table.state = TableState.of(restored)
    assert ask(table, 2) == NotLanded(known=True)
    assert isinstance(ask(table, 1), Duplicate)


def test_a_newer_ledger_over_older_snapshots_freezes() -> None:
    """Properties kept, history put back: what a restore by hand may leave."""
    table = table_with(0, 1)
    old = table.table
    table.commit(one(table, 2))
    properties = dict(table.state.metadata.properties)
    table.state = TableState.of(old)
    table.foreign(SetProperties(properties))
    assert frozen(table)


def test_a_branch_that_went_back_freezes_its_own_producers_only() -> None:
    table = table_with(0)
    first = head_of(table).snapshot_id
    table.foreign(SetSnapshotRef("audit", SnapshotRef(first, "branch")))
    table.commit(one(table, 0, branch="audit"))
    table.foreign(SetSnapshotRef("audit", SnapshotRef(first, "branch")))
    assert isinstance(ask(table, 1, branch="audit"), Refused)
    assert not frozen(table)


def with_producer_on_audit(format_version: int) -> Table:
    """Land `query-1` once on a branch that starts at the second of two commits."""
    table = table_with(0, 1, format_version=format_version)
    table.foreign(SetSnapshotRef("audit", SnapshotRef(ids_of(table)[-1], "branch")))
    table.commit(one(table, 0, branch="audit"))
    return table


@VERSIONS
@pytest.mark.parametrize("is_expired", [False, True])
def test_a_branch_that_expired_or_was_dropped_freezes_nobody(
    format_version: int, is_expired: bool
) -> None:
    """By `history.expire.max-ref-age-ms` Java, Spark and Trino remove the branch, and what only it
    needs.
    """
    table = with_producer_on_audit(format_version)
    landed_in = ids_of(table)[-1]
    gone = (RemoveSnapshots((landed_in,)),) if is_expired else ()
    table.foreign(RemoveSnapshotRef("audit"), *gone)
    ledger = read_ledger(table.state.metadata)
    assert not ledger.frozen
    assert not ledger.broken
    assert not frozen(table)


@VERSIONS
def test_a_tag_with_the_name_of_a_dropped_branch_freezes_nobody(format_version: int) -> None:
    table = with_producer_on_audit(format_version)
    tag = SnapshotRef(ids_of(table)[0], "tag")
    table.foreign(RemoveSnapshotRef("audit"), SetSnapshotRef("audit", tag))
    assert not read_ledger(table.state.metadata).frozen


@VERSIONS
def test_what_landed_on_a_dropped_branch_is_known_once_the_branch_is_back(
    format_version: int,
) -> None:
    table = with_producer_on_audit(format_version)
    first, _, landed_in = ids_of(table)
    table.foreign(RemoveSnapshotRef("audit"))
    table.foreign(SetSnapshotRef("audit", SnapshotRef(landed_in, "branch")))
    assert isinstance(ask(table, 0, branch="audit"), Duplicate)
    # Another branch of that name, without it: its rows are gone, and an operator decides.
    table.foreign(SetSnapshotRef("audit", SnapshotRef(first, "branch")))
    assert isinstance(ask(table, 0, branch="audit"), Refused)
    assert isinstance(ask(table, 1, branch="audit"), Refused)


def test_a_frozen_producer_gets_no_receipt_for_what_is_gone() -> None:
    table = table_with(0, 1)
    table.foreign(RemoveSnapshotRef("main"))
    assert isinstance(ask(table, 1), Refused)


# --- What an operator decides --------------------------------------------------------------------


def decide(table: Table, **changes: object) -> None:
    """Change the entry of `query-1` as an operator's command does."""
    entry = read_ledger(table.state.metadata).entries[property_key("query-1")]
    changed = replace(entry, **changes)  # type: ignore[arg-type]  # passed through
    table.foreign(SetProperties({property_key("query-1"): print_entry(changed)}))


def test_nothing_of_a_frozen_producer_lands_and_what_has_landed_is_told_all_the_same() -> None:
    table = table_with(0, 1)
    decide(table, frozen=Freeze("to look at it", 17))
    assert ask(table, 2) == Refused(Reason.PRODUCER_FROZEN, "to look at it")
    assert isinstance(ask(table, 1), Duplicate)
    differs = ask(table, 1, fingerprint="other")
    assert differs == Refused(Reason.PRODUCER_FROZEN, "to look at it")
    assert ask(table, 2, producer="another") == NotLanded(known=False)


def test_leave_is_for_one_attempt_alone_and_asks_whether_it_is_still_wanted() -> None:
    table = table_with(0, 1)
    meant = one(table, 1, fingerprint="other")
    decide(table, accepted=((1, meant.request.attempt),))
    ledger = read_ledger(table.state.metadata)
    assert ledger.ask(meant.request) == NotLanded(known=False)
    assert isinstance(ask(table, 1, fingerprint="other"), Refused)
    assert isinstance(ask(table, 1), Duplicate)


def test_leave_counts_for_a_frozen_producer_but_not_behind_a_rollback_that_came_later() -> None:
    table = table_with(0, 1)
    meant = one(table, 2)
    decide(table, accepted=((2, meant.request.attempt),), frozen=Freeze("to look at it", 17))
    assert read_ledger(table.state.metadata).ask(meant.request) == NotLanded(known=False)
    first = table.state.metadata.snapshots[0]
    table.foreign(SetSnapshotRef("main", SnapshotRef(first.snapshot_id, "branch")))
    assert isinstance(read_ledger(table.state.metadata).ask(meant.request), Refused)
    decide(table, frozen=Freeze("rolled back", 17, table.state.metadata.snapshots[1].snapshot_id))
    assert read_ledger(table.state.metadata).ask(meant.request) == NotLanded(known=False)


def test_an_epoch_that_landed_with_two_contents_is_a_duplicate_of_either() -> None:
    table = table_with(0, 1)
    other = one(table, 1, fingerprint="other")
    decide(table, accepted=((1, other.request.attempt),))
    table.commit(other)
    assert read_ledger(table.state.metadata).entries[property_key("query-1")].accepted == ()
    assert isinstance(ask(table, 1), Duplicate)
    assert isinstance(ask(table, 1, fingerprint="other"), Duplicate)
    assert isinstance(ask(table, 1, fingerprint="a third"), Refused)


def test_only_a_history_in_doubt_is_kept_for_its_frozen_producer() -> None:
    table = table_with(0, 1)
    key = property_key("query-1")
    decide(table, frozen=Freeze("to look at it", 17))
    assert read_ledger(table.state.metadata).broken == frozenset()
    decide(table, frozen=Freeze("rolled back", 17, 99))
    assert read_ledger(table.state.metadata).broken == {key}
    table.foreign(SetProperties({key: "no entry"}))
    assert read_ledger(table.state.metadata).broken == {key}


# --- The ledger as a value -----------------------------------------------------------------------


def test_entries_are_added_and_dropped_without_touching_the_others() -> None:
    table_uuid = uuid4()
    entry = ProducerEntry(table_uuid)
    ledger = Ledger({"a": entry}, {"c": "why"})
    later = ledger.changed({"b": entry.with_landed(landed(1))})
    assert set(later.entries) == {"a", "b"}
    assert set(ledger.entries) == {"a"}
    assert later.changed({}, frozenset({"a"})).entries.keys() == {"b"}
    assert later.frozen == {"c": "why"}


def landed(epoch: int) -> Landed:
    return Landed(epoch, "k", "f", UUID(int=epoch), 10, 1)


def test_a_first_entry_is_of_the_requests_table_and_says_what_its_producer_promises() -> None:
    table = build_flights()
    shot = build_request(table, producer="shot", one_shot=True, partition=("AA",)).request
    entry = Ledger({}, {}).entry_of(shot)
    assert entry == ProducerEntry(
        table.metadata.require_uuid(), EpochRanges(), sequential=False, one_shot_ms=0
    )


def test_of_entries_with_equal_numbers_the_one_that_landed_last_is_looked_for() -> None:
    """In version 1 all sequence numbers are 0: the order of the entry decides."""
    table = table_with(0, 1, format_version=1)
    second = table.state.metadata.snapshots[1]
    table.foreign(SetSnapshotRef("main", SnapshotRef(second.snapshot_id, "branch")))
    assert not frozen(table)


def test_a_foreign_uuid_in_an_entry_is_ignored_even_if_its_snapshot_is_ours() -> None:
    table = table_with(0)
    key = property_key("query-1")
    entry = read_ledger(table.state.metadata).entries[key]
    table.foreign(SetProperties({key: print_entry(replace(entry, table_uuid=uuid4()))}))
    assert ask(table, 0) == NotLanded(known=False)
