"""Each invariant of requests and receipts is broken on purpose, and seen to notice."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from committer.iceberg.updates.metadata_update import RemoveProperties, SetProperties, apply_updates
from committer.ledger_entry import (
    EpochRanges,
    Freeze,
    ProducerEntry,
    print_entry,
    property_key,
)
from committer.ports.pointer_swap import Swap
from committer.ports.storage import NewObject
from committer.reason import Reason
from committer.request.attempt import timed_nonce
from committer.request.receipt_model import ReceiptState
from committer.storage.inbox.inbox import QuarantineRecord
from tests.simulation.misdeeds import LATER_MS, OURS, Bench, files_of
from tests.support.builders.operation_requests import build_operation
from tests.support.builders.transactions import build_group


async def test_a_right_history_breaks_nothing(bench: Bench) -> None:
    table = await bench.create_table()
    first = await bench.publish(table)
    await bench.commit(table, first)
    second = await bench.publish(table, producer="query-2")
    after = await bench.commit(table, second)
    snapshot = after.metadata.current_snapshot
    assert snapshot is not None
    receipt = bench.receipt(
        second, ReceiptState.COMMITTED, snapshot_id=snapshot.snapshot_id, sequence_number=2
    )
    bench.invariants.replied(OURS, receipt)
    await bench.inbox.delete([first.request.inbox_key, second.request.inbox_key])
    for sealed in (first, second):
        for path in (file.file_path for file in files_of(table, sealed)):
            await bench.storage.create((NewObject(path, b"x"),))
    bench.invariants.at_quiescence()
    assert bench.history.violations == []
    assert bench.invariants.commits == 2


# --- I1, I13: nothing ends without a verdict -----------------------------------------------------


async def test_a_request_that_leaves_the_inbox_unlanded_breaks_i1(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.inbox.delete([sealed.request.inbox_key])
    assert bench.found() == {"I1"}
    bench.invariants.at_quiescence()
    assert "lost" in bench.history.violations[-1].text


async def test_an_epoch_that_is_skipped_with_other_content_breaks_i1(bench: Bench) -> None:
    table = await bench.create_table()
    await bench.commit(table, await bench.publish(table, fingerprint="these rows"))
    other = await bench.publish(table, fingerprint="other rows")
    await bench.server.delete([bench.inbox.location(other.request.inbox_key)])
    bench.invariants.at_quiescence()
    assert any("skipped" in violation.text for violation in bench.history.violations)


async def test_a_quarantine_object_that_goes_without_a_copy_breaks_i1(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    key = sealed.request.inbox_key
    await bench.quarantine.put(_record(key), sealed.content)
    await bench.inbox.delete([key])
    assert bench.found() == set()
    await bench.quarantine.delete([key])
    assert bench.found() == {"I1"}


async def test_what_landed_and_is_in_quarantine_too_breaks_i1(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.commit(table, sealed)
    await bench.quarantine.put(_record(sealed.request.inbox_key), sealed.content)
    bench.invariants.at_quiescence()
    assert any("is in quarantine for" in one.text for one in bench.history.violations)


async def test_what_landed_and_is_quarantined_as_unproven_breaks_i1(bench: Bench) -> None:
    """As long as it has never left the inbox, the ledger knows of it."""
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.commit(table, sealed)
    record = _record(sealed.request.inbox_key, Reason.EPOCH_LANDED_UNPROVEN)
    await bench.quarantine.put(record, sealed.content)
    assert bench.found() == {"I1"}


@pytest.mark.parametrize("has_left", [False, True])
async def test_an_entry_that_forgets_what_is_in_the_inbox_breaks_i11(
    bench: Bench, has_left: bool
) -> None:
    table = await bench.create_table()
    first, second = [await bench.publish(table, epoch=epoch) for epoch in (0, 1)]
    await bench.commit(table, first)
    if has_left:
        await bench.inbox.delete([first.request.inbox_key])
    epochs = EpochRanges(((0, 1),))
    # The second one's entry begins anew: the first one is not in it.
    await bench.commit(table, second, entry=lambda entry: replace(entry, epochs=epochs))
    assert bench.found() == (set() if has_left else {"I11"})


async def test_a_doorbell_that_is_acknowledged_too_early_breaks_i13(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    bench.history.tokens["1"] = sealed.request.inbox_key
    await bench.queue.acknowledge(["1"])
    assert bench.found() == {"I13"}


# --- I9, I10: receipts ---------------------------------------------------------------------------


async def test_a_receipt_for_what_has_not_landed_breaks_i10(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    receipt = bench.receipt(sealed, ReceiptState.COMMITTED, snapshot_id=5, sequence_number=1)
    bench.invariants.replied(OURS, receipt)
    assert bench.found() == {"I10"}


@pytest.mark.parametrize("wrong", [{"snapshot_id": 5}, {"duplicate": True}])
async def test_a_receipt_with_wrong_details_breaks_i10(
    bench: Bench, wrong: dict[str, object]
) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    after = await bench.commit(table, sealed)
    said = {"snapshot_id": after.metadata.current_snapshot_id, "sequence_number": 1, **wrong}
    bench.invariants.replied(OURS, bench.receipt(sealed, ReceiptState.COMMITTED, **said))
    assert bench.found() == {"I10"}


async def test_a_committer_that_does_not_say_where_it_committed_breaks_i10(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.commit(table, sealed)
    receipt = bench.receipt(sealed, ReceiptState.COMMITTED)
    bench.history.told(sealed.request.producer.id, receipt)
    assert bench.found() == set()
    await bench.queue.reply([("reply-to", receipt)])
    assert bench.found() == {"I10"}


async def test_a_receipt_that_says_quarantined_of_what_landed_breaks_i10(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.commit(table, sealed)
    said = {"reason": Reason.COMMIT_REJECTED.value, "message": "no"}
    bench.invariants.replied(OURS, bench.receipt(sealed, ReceiptState.QUARANTINED, **said))
    assert bench.found() == {"I10"}


async def test_what_lands_out_of_quarantine_breaks_i10(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.quarantine.put(_record(sealed.request.inbox_key), sealed.content)
    await bench.commit(table, sealed)
    assert bench.found() == {"I10"}


async def test_a_refusal_that_the_catalog_did_not_say_breaks_i10(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    record = _record(sealed.request.inbox_key, Reason.COMMIT_REJECTED)
    await bench.quarantine.put(record, sealed.content)
    assert bench.found() == {"I10"}


async def test_a_producer_that_freezes_for_no_reason_breaks_i10(bench: Bench) -> None:
    """An expiry is none; a rollback is."""
    table = await bench.create_table()
    await bench.commit(table, await bench.publish(table))
    later = await bench.publish(table, epoch=1)
    record = _record(later.request.inbox_key, Reason.PRODUCER_FROZEN)
    await bench.quarantine.put(record, later.content)
    assert bench.found() == {"I10"}


async def test_a_request_that_claims_anothers_files_breaks_i2_if_it_lands(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    bench.history.claims[sealed.request.inbox_key] = Reason.PATH_WITHOUT_ATTEMPT.value
    await bench.commit(table, sealed)
    assert bench.found() == {"I2"}


@pytest.mark.parametrize(
    ("reason", "broken"),
    [
        (Reason.PATH_WITHOUT_ATTEMPT, set()),
        (Reason.SCHEMA_MISMATCH, set()),
        (Reason.ATTEMPT_MISMATCH, {"I10"}),
        (Reason.EPOCH_LANDED_UNPROVEN, {"I10"}),
    ],
)
async def test_a_claim_that_is_refused_for_another_reason_breaks_i10(
    bench: Bench, reason: Reason, broken: set[str]
) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    key = sealed.request.inbox_key
    bench.history.claims[key] = Reason.PATH_WITHOUT_ATTEMPT.value
    await bench.quarantine.put(_record(key, reason), sealed.content)
    assert bench.found() == broken


@pytest.mark.parametrize("is_forgotten", [False, True])
@pytest.mark.parametrize("age_ms", [-1, 0, 1])
async def test_a_new_request_that_is_called_unproven_breaks_i10_unless_it_is_old(
    bench: Bench, age_ms: int, is_forgotten: bool
) -> None:
    """Older than a one-shot producer that was forgotten, which may be this one."""
    table = await bench.create_table()
    nonces = [timed_nonce(1_000_000 - age, UUID(int=7)) for age in (0, age_ms)]
    first = await bench.publish(table, producer="shot", one_shot=True, nonce=nonces[0])
    late = await bench.publish(table, producer="late", one_shot=True, nonce=nonces[1])
    after = await bench.commit(table, first)
    await bench.inbox.delete([first.request.inbox_key])
    if is_forgotten:
        await bench.swap(after, RemoveProperties((property_key("shot"),)))
    record = _record(late.request.inbox_key, Reason.EPOCH_LANDED_UNPROVEN)
    await bench.quarantine.put(record, late.content)
    assert bench.found() == (set() if is_forgotten and age_ms >= 0 else {"I10"})


async def test_what_one_was_refused_another_may_land_but_it_leaves_quarantine(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    key, plan = sealed.request.inbox_key, bench.planned(table, [sealed])
    await bench.storage.create(plan.objects)
    metadata = apply_updates(
        table.metadata, plan.updates, base_location=table.metadata_location, now_ms=LATER_MS
    )
    bench.history.refuse(OURS, Swap(table, (), (), metadata, "memory://never"))
    await bench.quarantine.put(_record(key, Reason.COMMIT_REJECTED), sealed.content)
    await bench.commit(table, sealed)
    refusal = {"reason": Reason.COMMIT_REJECTED.value, "message": "no"}
    bench.history.told(OURS, bench.receipt(sealed, ReceiptState.QUARANTINED, **refusal))
    await bench.inbox.delete((key,))
    assert bench.invariants.backlog() == [key]
    await bench.quarantine.delete((key,))
    assert bench.invariants.backlog() == []
    bench.invariants.at_quiescence()
    assert not bench.found() & {"I1", "I10", "I15"}
    await bench.quarantine.put(_record(key, Reason.COMMIT_REJECTED), sealed.content)
    bench.invariants.at_quiescence()
    assert {"I1", "I15"} <= bench.found()


async def test_a_receipt_for_files_that_a_reader_misses_breaks_i9(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    first = await bench.commit(table, sealed)
    await bench.commit(table, await bench.publish(table, producer="query-2"), keeps=False)
    snapshot_id = first.metadata.current_snapshot_id
    bench.history.violations.clear()
    said = {"snapshot_id": snapshot_id, "sequence_number": 1}
    bench.invariants.replied(OURS, bench.receipt(sealed, ReceiptState.COMMITTED, **said))
    assert bench.found() == {"I9"}


# --- I15: everything ends ------------------------------------------------------------------------


async def test_a_request_that_waits_for_ever_breaks_i15(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    bench.invariants.at_quiescence()
    assert bench.found() == {"I15"}
    assert bench.invariants.backlog() == [sealed.request.inbox_key]


async def test_a_request_waits_behind_the_open_breaker_of_a_frozen_producer(bench: Bench) -> None:
    table = await bench.create_table()
    first, second, waiting = [await bench.publish(table, epoch=epoch) for epoch in range(3)]
    entry = ProducerEntry(table.metadata.require_uuid(), frozen=Freeze("to look at it", 17))
    freeze = SetProperties({property_key(waiting.request.producer.id, "main"): print_entry(entry)})
    key = waiting.request.inbox_key
    for sealed in (first, second):
        assert not bench.invariants.may_wait(key)
        await bench.quarantine.put(
            _record(sealed.request.inbox_key, Reason.PRODUCER_FROZEN), sealed.content
        )
    assert not bench.invariants.may_wait(key)
    await bench.swap(table, freeze)
    assert bench.invariants.may_wait(key)
    await bench.quarantine.delete((first.request.inbox_key,))
    assert not bench.invariants.may_wait(key)


def _record(key: str, reason: Reason = Reason.PLAN_FAILED) -> QuarantineRecord:
    return QuarantineRecord(key=key, reason=reason.value, message="no", quarantined_at_ms=0)


# --- I18: transactions ---------------------------------------------------------------------------


async def test_a_transaction_that_landed_on_one_of_its_tables_breaks_i18(bench: Bench) -> None:
    tables = [await bench.create_table(), await bench.create_table(name="db.trains")]
    flights, trains = build_group(tables)
    for sealed in (flights, trains):
        await bench.inbox.put(sealed)
    await bench.commit(tables[0], flights)
    assert bench.found() == set()
    bench.invariants.check_transactions()
    assert bench.found() == {"I18"}
    bench.history.violations.clear()
    await bench.commit(tables[1], trains)
    bench.invariants.check_transactions()
    assert bench.found() == set()


async def test_a_conflict_without_a_cause_breaks_i10(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.commit(table, sealed)
    live = [file.file_path for file in files_of(table, sealed)]
    deletes = build_operation(
        table, "delete", producer="query-2", needs={"removed-data-files": live}
    )
    await bench.inbox.put(deletes)
    record = QuarantineRecord(
        key=deletes.key, reason="conflict", message="", quarantined_at_ms=0, conflict="missing"
    )
    await bench.quarantine.put(record, deletes.content)
    assert bench.found() == {"I10"}
