"""Work that a few bytes ask for does not hold the event loop: it is weighed by its entries.

On real time, as a loop in virtual time has no threads. Entries are counted, not seconds.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from io import BytesIO

import fastavro
import orjson
import pytest

from committer.iceberg.entry.data_file import DataFileContent
from committer.iceberg.entry.entry_decoder import entry_from_record
from committer.iceberg.manifest import manifest_list
from committer.iceberg.manifest.manifest_list import (
    decode_manifest_list,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.iceberg.metadata.snapshot import Snapshot, parse_snapshot
from committer.plan.cleanup import expiry, merge_selection
from committer.ports.pointer_swap import LoadedTable
from committer.request.request_format import EncodedRequest, InlineManifest
from committer.service.tasks.steps import OFF_LOOP_BYTES
from committer.table_defaults import EXPIRE_PROPERTY
from tests.support.builders.request_builders import (
    SYNC,
    build_file,
    build_line,
    build_manifest,
    build_request,
    seal,
)
from tests.support.service.loop_work import loop_work
from tests.support.service.service_harness import ServiceHarness

# As many as a check on the loop takes.
ENTRIES = 450
REQUESTS = 4
ROWS = 5_000
SNAPSHOTS = 5_000
STEP_ENTRIES_MAX = 600


def by_another_writer(manifest: InlineManifest) -> InlineManifest:
    """Return the same entries, deflated, in a schema that lays them out in another order."""
    reader, out = fastavro.reader(BytesIO(manifest.content)), BytesIO()
    records, schema = list(reader), deepcopy(reader.writer_schema)
    assert isinstance(schema, dict)
    (file,) = (field["type"] for field in schema["fields"] if field["name"] == "data_file")
    file["fields"].append(file["fields"].pop(0))
    metadata = {
        name: value for name, value in reader.metadata.items() if not name.startswith("avro.")
    }
    fastavro.writer(out, schema, records, codec="deflate", metadata=metadata)
    return replace(manifest, content=out.getvalue())


def foreign_request(table: LoadedTable, producer: str) -> EncodedRequest:
    line = build_line(table, producer=producer)
    files = [build_file(table.metadata, line.attempt, number=number) for number in range(ENTRIES)]
    return seal(line, [by_another_writer(build_manifest(table.metadata, files))])


def request_of_deletes(table: LoadedTable, producer: str, entries: int) -> EncodedRequest:
    """Return a request whose entries are decoded by its check: they are of delete files."""
    line = build_line(table, producer=producer).model_copy(update={"operation": "row-delta"})
    files = [
        replace(
            build_file(table.metadata, line.attempt, number=number),
            content=DataFileContent.EQUALITY_DELETES,
            equality_ids=(1,),
        )
        for number in range(entries)
    ]
    return seal(line, [build_manifest(table.metadata, files)])


async def land(harness: ServiceHarness, requests: list[EncodedRequest]) -> None:
    async with harness.running():
        for sealed in requests:
            await harness.publish(sealed)
        for sealed in requests:
            producer = sealed.request.producer.id
            assert await harness.publisher_queue.wait_for_receipts(producer, wait_s=60.0)


@pytest.mark.thorough
async def test_a_batch_of_small_requests_with_many_entries_is_joined_off_the_loop() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    requests = [foreign_request(table, f"query-{number}") for number in range(REQUESTS)]
    assert sum(len(one.content) for one in requests) < OFF_LOOP_BYTES
    with loop_work(entry_from_record) as work:
        await land(harness, requests)
    assert work.most <= STEP_ENTRIES_MAX
    assert len(await harness.live_files()) == REQUESTS * ENTRIES


@pytest.mark.thorough
async def test_the_checks_of_one_round_share_what_the_loop_has_time_for() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    # Each of them is checked in a moment.
    requests = [request_of_deletes(table, f"query-{number}", 100) for number in range(12)]
    assert sum(len(one.content) for one in requests) < OFF_LOOP_BYTES
    with loop_work(entry_from_record) as work:
        await land(harness, requests)
    assert work.most <= STEP_ENTRIES_MAX


@pytest.mark.thorough
async def test_a_manifest_list_of_many_rows_is_decoded_off_the_loop_however_well_it_deflates() -> (
    None
):
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, [build_request(table, producer="first")])
    await write_rows(harness, ROWS)
    with loop_work(manifest_list._manifest_file) as work:
        await land(harness, [build_request(table, producer="second")])
    assert work.most <= STEP_ENTRIES_MAX
    loaded = await harness.catalog.inner.load(table.identifier)
    head = loaded.metadata.current_snapshot
    assert head is not None
    assert head.manifest_list is not None
    assert len(decode_manifest_list(await harness.storage.get(head.manifest_list)).rows) > ROWS


@pytest.mark.thorough
async def test_a_long_history_is_read_and_printed_off_the_loop() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await write_snapshots(harness, table)
    with loop_work(parse_snapshot, Snapshot._to_json) as work:
        await land(harness, [build_request(table, producer="first")])
    assert work.most <= STEP_ENTRIES_MAX
    assert len((await harness.load()).snapshots) == SNAPSHOTS + 1


@pytest.mark.thorough
async def test_upkeep_looks_at_a_long_table_off_the_loop() -> None:
    harness = ServiceHarness()
    table = await harness.create_table(properties={EXPIRE_PROPERTY: "true"})
    await write_snapshots(harness, table)
    await land(harness, [build_request(table, producer="first")])
    await write_rows(harness, ROWS)
    with loop_work(expiry.expirable, merge_selection._is_mergeable) as work:
        await land(harness, [build_request(table, producer="second")])
    assert work.most == 0


async def write_snapshots(harness: ServiceHarness, table: LoadedTable) -> None:
    """Put metadata with a long history in the place of a new table's."""
    storage, location = harness.storage.inner, table.metadata_location
    document = orjson.loads(await storage.get(location))
    document["snapshots"] = [
        {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": document["last-updated-ms"],
            "summary": {"operation": "append"},
            "manifest-list": f"{location}/snap-{number}.avro",
        }
        for number in range(1, SNAPSHOTS + 1)
    ]
    document["last-sequence-number"] = SNAPSHOTS
    etag = (await storage.head(location)).etag
    await storage.replace(location, orjson.dumps(document), etag=etag)


async def write_rows(harness: ServiceHarness, count: int) -> None:
    """Put a list of so many manifests in the place of the head's."""
    metadata = await harness.load()
    head = metadata.current_snapshot
    assert head is not None
    assert head.manifest_list is not None
    storage = harness.storage.inner
    (row,) = decode_manifest_list(await storage.get(head.manifest_list)).rows
    rows = [
        encode_manifest_file(replace(row, manifest_path=f"{row.manifest_path}-{number:06}"), 2)
        for number in range(count)
    ]
    content = encode_manifest_list(
        rows,
        format_version=2,
        snapshot_id=head.snapshot_id,
        parent_snapshot_id=None,
        sequence_number=head.sequence_number,
        first_row_id=None,
        sync=SYNC,
        extra_metadata={},
    )
    assert len(content) < OFF_LOOP_BYTES
    etag = (await storage.head(head.manifest_list)).etag
    await storage.replace(head.manifest_list, content, etag=etag)
