"""Bad requests inside a live batch: each is quarantined alone, with its reason, and told so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import orjson
import pytest
from structlog.testing import capture_logs

from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.updates.metadata_update import (
    AddPartitionSpec,
    AddSchema,
    SetCurrentSchema,
    SetDefaultPartitionSpec,
    SetSnapshotRef,
    UpgradeFormatVersion,
)
from committer.iceberg.values.types import LongType, NestedField
from committer.ledger_entry import property_key
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest, line_digest
from committer.request.request_key import inbox_key
from tests.support.builders.bad_requests import (
    ASKED,
    CHECKED,
    BadRequest,
    entry,
    file_of,
    good,
    hand_over,
    inline_files,
    naming,
)
from tests.support.builders.flights import BY_DAY, FIELDS, build_flights
from tests.support.builders.request_builders import build_line, build_request, seal
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.service.outside import (
    add_table,
    assert_committed_together,
    foreign_commit,
    put_raw,
    ring,
)
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
SOME = UUID(int=77)
NEIGHBORS = ("query-1", "query-2", "query-3")


async def publish_among_neighbors(
    harness: ServiceHarness, table: LoadedTable, bad: EncodedRequest
) -> None:
    """Publish one good request before the bad one and two behind it, all for the first batch."""
    await harness.publish(good(table, NEIGHBORS[0]))
    await put_raw(harness, bad.request.inbox_key, bad.content)
    for producer in NEIGHBORS[1:]:
        await harness.publish(good(table, producer))


async def assert_only_the_bad_one_is_quarantined(harness: ServiceHarness, reason: Reason) -> None:
    (record,) = await harness.quarantined()
    assert record.reason == reason
    assert len(record.message) > 15
    assert await harness.outstanding() == []
    await assert_committed_together(harness, NEIGHBORS)
    (receipt,) = await harness.receipts("bad")
    assert receipt.state is ReceiptState.QUARANTINED
    assert (receipt.reason, receipt.message) == (reason, record.message)
    assert (await harness.publisher_queue.depth()).waiting == 0


@pytest.mark.parametrize("bad", [*CHECKED, *ASKED], ids=lambda bad: bad.name)
async def test_a_bad_request_is_quarantined_and_its_neighbors_commit_in_one_snapshot(
    bad: BadRequest,
) -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    await publish_among_neighbors(harness, table, bad.make(table, "bad"))
    await harness.run_until_settled()
    await assert_only_the_bad_one_is_quarantined(harness, bad.reason)


async def test_a_producer_that_the_catalog_cannot_name_is_quarantined_alone() -> None:
    harness = ServiceHarness()
    inner = harness.catalog.inner
    assert isinstance(inner, MemoryCatalog)
    inner.capabilities = replace(
        inner.capabilities, property_key_chars_max=len(property_key(NEIGHBORS[0]))
    )
    table = await add_table(harness, build_flights())
    await publish_among_neighbors(harness, table, good(table, f"{NEIGHBORS[0]}x"))
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.PRODUCER_ID_TOO_LONG
    await assert_committed_together(harness, NEIGHBORS)


def _wrong_hash(sealed: EncodedRequest) -> bytes:
    return sealed.content[:-1] + bytes([sealed.content[-1] ^ 1])


UNREADABLE: dict[str, tuple[Callable[[EncodedRequest], bytes], Reason]] = {
    "cut short": (lambda sealed: sealed.content[:-40], Reason.REQUEST_TRUNCATED),
    "cut in the line": (lambda sealed: sealed.content[:100], Reason.REQUEST_TRUNCATED),
    "empty": (lambda sealed: b"", Reason.REQUEST_TRUNCATED),
    "another hash": (_wrong_hash, Reason.HASH_MISMATCH),
    "unknown version": (
        lambda sealed: sealed.content.replace(b'"request-version":1', b'"request-version":2'),
        Reason.REQUEST_VERSION_UNKNOWN,
    ),
    "not JSON": (lambda sealed: b"\0" * 100 + b"\n", Reason.REQUEST_MALFORMED),
    "trailing bytes": (lambda sealed: sealed.content + b"x", Reason.REQUEST_MALFORMED),
    "an epoch below zero": (
        lambda sealed: sealed.content.replace(b'"epoch":0', b'"epoch":-1'),
        Reason.REQUEST_MALFORMED,
    ),
    "another epoch than its key": (
        lambda sealed: sealed.content.replace(b'"epoch":0', b'"epoch":1'),
        Reason.REQUEST_KEY_MISMATCH,
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("announced", [True, False])
async def test_what_cannot_be_read_is_quarantined_and_its_neighbors_commit(
    name: str, announced: bool
) -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    spoil, reason = UNREADABLE[name]
    right = good(table, "bad")
    spoiled = spoil(right)
    assert spoiled != right.content
    await put_raw(harness, right.request.inbox_key, spoiled, announce=announced)
    for producer in NEIGHBORS:
        await harness.publish(good(table, producer))
    await harness.run_until_settled()
    if announced:
        await assert_only_the_bad_one_is_quarantined(harness, reason)
    (record,) = await harness.quarantined()
    assert (record.reason, record.key) == (reason, right.request.inbox_key)
    assert (await harness.quarantine.get(record.key))[1] == spoiled
    assert await harness.outstanding() == []
    assert len(await harness.live_files()) == len(NEIGHBORS)


async def test_a_request_for_a_table_that_does_not_exist_is_quarantined() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    await publish_among_neighbors(harness, table, good(build_flights("db.nowhere"), "bad"))
    await harness.run_until_settled()
    await assert_only_the_bad_one_is_quarantined(harness, Reason.TABLE_UNKNOWN)


async def test_a_request_for_a_dropped_and_recreated_table_is_quarantined() -> None:
    harness = ServiceHarness()
    old = await add_table(harness, build_flights())
    late = good(old, "bad")
    await harness.catalog.inner.drop_table(old.identifier)
    table = await add_table(harness, build_flights())
    await publish_among_neighbors(harness, table, late)
    await harness.run_until_settled()
    await assert_only_the_bad_one_is_quarantined(harness, Reason.TABLE_UUID_MISMATCH)


async def test_an_epoch_that_landed_with_other_content_is_quarantined_among_neighbors() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    async with harness.running():
        await harness.publish(good(table, "bad", epoch=3))
        await harness.settle(1.0)
        assert (await harness.receipts("bad"))[0].state is ReceiptState.COMMITTED
        other = good(table, "bad", epoch=3, fingerprint="another")
        await publish_among_neighbors(harness, table, other)
        await harness.settle()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.EPOCH_CONTENT_DIFFERS
    assert len((await harness.load()).snapshots) == 2
    assert len(await harness.live_files()) == 1 + len(NEIGHBORS)
    assert await harness.outstanding() == []


async def test_two_attempts_of_one_epoch_with_different_content_in_one_batch() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    await harness.publish(good(table, "bad"))
    await harness.publish(good(table, "bad", fingerprint="another"))
    await harness.publish(good(table, "query-1"))
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.EPOCH_CONTENT_DIFFERS
    assert len(await harness.live_files()) == 2


async def test_a_bad_attempt_does_not_stand_in_the_way_of_a_good_one() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    bad = next(one for one in CHECKED if one.reason is Reason.COUNT_MISMATCH)
    await harness.publish(bad.make(table, "query-1"))
    await harness.publish(good(table, "query-1"))
    await harness.run_until_settled()
    assert len(await harness.quarantined()) == 1
    assert len(await harness.live_files()) == 1


async def test_bad_requests_only_make_no_snapshot() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    for number, bad in enumerate(CHECKED):
        await harness.publish(bad.make(table, f"bad-{number}"))
    await harness.run_until_settled()
    assert (await harness.load()).snapshots == ()
    assert len(await harness.quarantined()) == len(CHECKED)
    assert await harness.outstanding() == []


# --- Manifests by path, files as JSON ------------------------------------------------------------


async def test_a_named_manifest_lands_under_a_name_of_ours() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed, manifest = naming(table, "query-1")
    await harness.storage.inner.create((manifest,))
    await harness.publish(sealed)
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    (file,) = await harness.live_files()
    assert file.partition == ("AA",)


async def test_a_manifest_that_one_request_names_no_other_can_claim() -> None:
    """Its files name one attempt, whatever its own name is."""
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    right, manifest = naming(table, "query-1")
    await harness.storage.inner.create((manifest,))
    line = build_line(table, producer="bad")
    claim = seal(line.model_copy(update={"manifests": right.request.manifests}), ())
    for sealed in (claim, right):
        await harness.publish(sealed)
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert (record.key, record.reason) == (claim.request.inbox_key, Reason.PATH_WITHOUT_ATTEMPT)
    assert len(await harness.live_files()) == 1


@pytest.mark.parametrize("spoil", [lambda c: c[:-1], lambda c: c + b"x", lambda c: bytes(len(c))])
async def test_a_named_manifest_with_other_content_is_quarantined(spoil: object) -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed, manifest = naming(table, "bad")
    assert callable(spoil)
    await harness.storage.inner.create((replace(manifest, content=spoil(manifest.content)),))
    await publish_among_neighbors(harness, table, sealed)
    await harness.run_until_settled()
    await assert_only_the_bad_one_is_quarantined(harness, Reason.HASH_MISMATCH)


async def test_files_listed_as_json_land_beside_manifests() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    await harness.publish(inline_files(table, "query-1"))
    await harness.publish(good(table, "query-2"))
    await harness.run_until_settled()
    assert len((await harness.load()).snapshots) == 1
    assert [file.partition for file in await harness.live_files()] == [("AA",), ("AA",)]


async def test_a_check_that_fails_itself_is_counted_and_its_neighbors_land(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trips(*_: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr("committer.plan.batch.request_check.encode_inline_files", trips)
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    await publish_among_neighbors(harness, table, inline_files(table, "bad"))
    await harness.run_until_settled()
    await assert_only_the_bad_one_is_quarantined(harness, Reason.PLAN_FAILED)
    samples = harness.metrics.instruments.samples()
    errors = [one for one in samples if one.name == "frazil_internal_errors_total" and one.value]
    assert [(one.labels, one.value) for one in errors] == [({"where": "check"}, 1.0)]


# --- Hostile doorbells and foreign objects -------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        "../../x",
        "/etc/passwd",
        "",
        "a/b/c/d",
        "x" * 5_000,
        f"{SOME}/../00000000000000000001/{SOME}",
        f"{SOME}/./00000000000000000001/{SOME}",
        f"{SOME}//00000000000000000001/{SOME}",
        f"{SOME}/q/1/{SOME}",
        f"{SOME}/{'q' * 300}/00000000000000000001/{SOME}",
        f"{SOME}/a%2/00000000000000000001/{SOME}",
        f"{SOME}/q/{'9' * 5_000}/{SOME}",
    ],
)
@pytest.mark.parametrize("content", [None, b"{}\n"])
async def test_a_doorbell_with_a_hostile_key_is_dropped(key: str, content: bytes | None) -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    await ring(harness, key, content)
    await harness.publish(good(table, "query-1"))
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 1
    assert (await harness.publisher_queue.depth()).waiting == 0


async def test_a_doorbell_whose_content_is_not_what_its_digest_says_reads_the_inbox() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed = good(table, "query-1")
    await harness.inbox.put(sealed)
    garbled = sealed.content.replace(b'"epoch":0', b'"epoch":7')
    await ring(harness, sealed.request.inbox_key, garbled, said_digest=line_digest(sealed.content))
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 1


@pytest.mark.parametrize("content", [b"garbage", b"{}\n", b""])
async def test_a_doorbell_of_garbage_cannot_take_a_request_out_of_the_inbox(content: bytes) -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed = good(table, "query-1")
    await harness.inbox.put(sealed)
    await ring(harness, sealed.request.inbox_key, content)
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 1


async def test_a_doorbell_of_another_request_cannot_take_a_request_out_of_the_inbox() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed, other = good(table, "query-1"), good(table, "query-2")
    await harness.inbox.put(sealed)
    await ring(harness, sealed.request.inbox_key, other.content)
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 1


@pytest.mark.parametrize("name", ["README.txt", ".DS_Store", "a/b", "a/b/c/d/e/f", f"{SOME}/q"])
async def test_a_foreign_object_in_the_inbox_is_quarantined_and_disturbs_nobody(name: str) -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    await put_raw(harness, name, b"not a request", announce=False)
    await harness.publish(good(table, "query-1"), announce=False)
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert (record.key, record.reason) == (name, Reason.REQUEST_TRUNCATED)
    assert len(await harness.live_files()) == 1
    assert await harness.outstanding() == []


async def test_a_request_under_a_key_that_is_not_its_own_does_not_land() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed = good(table, "query-1")
    request = sealed.request
    key = inbox_key(request.table_uuid, "query-2", request.epoch, request.attempt)
    await put_raw(harness, key, sealed.content, announce=False)
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.REQUEST_KEY_MISMATCH
    assert (await harness.load()).snapshots == ()


# --- The table changes while requests wait -------------------------------------------------------

WIDER = Schema((*FIELDS, NestedField(5, "tail", LongType(), required=False)), schema_id=1)


async def test_a_schema_that_another_engine_adds_between_publish_and_commit_fits() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    async with harness.running():
        await harness.publish(good(table, "query-1"))
        await harness.settle(1.0)
        evolved = await foreign_commit(harness, table, AddSchema(WIDER), SetCurrentSchema(-1))
        # Written with the new schema, while the committer still remembers the old table.
        await harness.publish(good(evolved, "query-2"))
        await harness.publish(good(table, "query-3"))
        await harness.settle()
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 3
    assert len((await harness.load()).snapshots) == 2


async def test_a_spec_that_another_engine_adds_between_publish_and_commit_fits() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    async with harness.running():
        await harness.publish(good(table, "query-1"))
        await harness.settle(1.0)
        evolved = await foreign_commit(
            harness,
            table,
            AddPartitionSpec(PartitionSpec(1, BY_DAY)),
            SetDefaultPartitionSpec(-1),
        )
        line = build_line(evolved, producer="query-2")
        manifest = hand_over(evolved, entry(file_of(table, line, partition=(20_000,), spec_id=1)))
        await harness.publish(seal(line, [manifest]))
        await harness.publish(good(table, "query-3"))
        await harness.settle()
    assert await harness.quarantined() == []
    assert sorted(file.spec_id for file in await harness.live_files()) == [0, 0, 1]


async def test_a_branch_that_was_made_meanwhile_is_known() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    async with harness.running():
        await harness.publish(good(table, "query-1"))
        await harness.settle(1.0)
        head = (await harness.load()).current_snapshot_id or 0
        await foreign_commit(harness, table, SetSnapshotRef("audit", SnapshotRef(head, "branch")))
        await harness.publish(good(table, "query-2", branch="audit"))
        await harness.settle()
    assert await harness.quarantined() == []
    assert len((await harness.load()).snapshots) == 2


@pytest.mark.parametrize("cached", [True, False])
async def test_a_table_dropped_while_requests_wait_sends_them_to_quarantine(cached: bool) -> None:
    harness = ServiceHarness(min_interval_ms=5_000)
    table = await add_table(harness, build_flights())
    async with harness.running():
        if cached:
            await harness.publish(good(table, "query-1"))
            await harness.settle(1.0)
        await harness.publish(good(table, "query-2"))
        await harness.catalog.inner.drop_table(table.identifier)
        await harness.settle(60.0)
        (record,) = await harness.quarantined()
        assert record.reason == Reason.TABLE_UNKNOWN
        assert await harness.outstanding() == []
        await add_table(harness, table)
        await harness.accept()
        await harness.publish(good(table, "query-3"))
        await harness.settle(60.0)
    assert len(await harness.quarantined()) == 1
    assert len(await harness.live_files()) == 1


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 3), (1, 3)])
async def test_a_format_upgrade_in_flight_keeps_old_and_new_requests(
    before: int, after: int, cached: bool
) -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights(format_version=before))
    async with harness.running():
        if cached:
            await harness.publish(good(table, "query-1"))
            await harness.settle(1.0)
        upgraded = await foreign_commit(harness, table, UpgradeFormatVersion(after))
        await harness.publish(good(table, "query-2"))
        await harness.publish(good(upgraded, "query-3"))
        await harness.settle(1.0)
        await harness.publish(good(upgraded, "query-3", epoch=1))
        await harness.settle()
    assert await harness.quarantined() == []
    files = await harness.live_files()
    assert len(files) == 3 + cached
    assert {file.record_count for file in files} == {10}
    if after == 3:
        starts = sorted(file.first_row_id for file in files if file.first_row_id is not None)
        assert starts == [10 * number for number in range(len(files))]
        assert (await harness.load()).next_row_id == 10 * len(files)


async def test_after_an_upgrade_between_two_attempts_the_batch_is_written_anew() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights(format_version=1))
    harness.catalog.swap_s[str(table.identifier)] = 1.0
    async with harness.running():
        await harness.publish(good(table, "query-1"))
        await harness.settle(0.5)
        await foreign_commit(harness, table, UpgradeFormatVersion(2))
        await harness.settle()
    head = (await harness.load()).current_snapshot
    assert head is not None and head.manifest_list is not None
    (row,) = decode_manifest_list(await harness.storage.inner.get(head.manifest_list)).rows
    written = decode_manifest(await harness.storage.inner.get(row.manifest_path))
    assert written.format_version == 2


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (("../..", "x"), Reason.REQUEST_MALFORMED),
        (("db", ".."), Reason.REQUEST_MALFORMED),
        (("db", "flights.v2"), Reason.REQUEST_MALFORMED),
        (("x" * 255, "\N{SNOWMAN}" * 255), Reason.TABLE_UNKNOWN),
    ],
)
async def test_a_table_name_that_no_catalog_takes_is_quarantined_and_nobody_waits_for_it(
    name: tuple[str, str], reason: Reason
) -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed = good(table, "odd")
    line = orjson.loads(sealed.content[: sealed.body])
    odd = orjson.dumps({**line, "table": {"namespace": [name[0]], "name": name[1]}})
    content = odd + b"\n" + sealed.content[sealed.body :]
    await put_raw(harness, sealed.request.inbox_key, content)
    await harness.publish(good(table, NEIGHBORS[0]))
    await harness.run_until_settled(seconds=90.0)
    assert (await harness.quarantine.record(sealed.request.inbox_key)).reason == reason
    assert [one.key async for one in harness.inbox.list()] == []
    assert not harness.health.conditions


async def test_what_cannot_be_read_has_the_name_of_its_table_if_that_is_in_hand() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    first, unreadable = build_request(table), build_request(table, epoch=1, producer="bad")
    with capture_logs() as lines:
        async with harness.running():
            await harness.publish(first)
            await harness.settle(10.0)
            await put_raw(harness, unreadable.key, b"{\n")
            await harness.settle(10.0)
            page = harness.status_collector.page().decode()
    (record,) = await harness.quarantined()
    assert record.table == "db.flights"
    (line,) = [line for line in lines if line["event"] == "request.quarantined"]
    assert line["table"] == "db.flights"
    assert f'{{reason="{record.reason}",table="db.flights"}} 1.0' in page
