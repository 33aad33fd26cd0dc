"""Acts on a harness from outside: tables, foreign commits, clients that check nothing."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from committer.iceberg.manifest.manifest_list import (
    decode_manifest_list,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.updates.metadata_update import AddSnapshot, SetSnapshotRef, Update
from committer.ports.pointer_swap import Committed, LoadedTable
from committer.ports.queue import Doorbell
from committer.ports.storage import NewObject
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import line_digest
from tests.support.builders.flights import foreign_swap
from tests.support.service.service_harness import ServiceHarness


async def add_table(harness: ServiceHarness, table: LoadedTable) -> LoadedTable:
    """Add a table that a test has built to the catalog."""
    await harness.catalog.inner.create_namespace(table.identifier.namespace)
    await harness.catalog.inner.create_table(table)
    return table


async def foreign_commit(
    harness: ServiceHarness, table: LoadedTable, *updates: Update
) -> LoadedTable:
    """Commit as another engine; return the table as it is then."""
    current = await harness.catalog.inner.load(table.identifier)
    swap = foreign_swap(current, *updates)
    await harness.storage.inner.create(harness.catalog.inner.objects_before(swap))
    assert isinstance(await harness.catalog.inner.swap(swap), Committed)
    return await harness.catalog.inner.load(table.identifier)


async def foreign_append(harness: ServiceHarness, table: LoadedTable) -> LoadedTable:
    """Commit an empty append as another engine, with a manifest list of its own."""
    metadata = (await harness.catalog.inner.load(table.identifier)).metadata
    head = metadata.current_snapshot
    assert head is not None
    listed = decode_manifest_list(await harness.storage.inner.get(head.manifest_list or ""))
    number, snapshot_id = metadata.last_sequence_number + 1, 7_000 + metadata.last_sequence_number
    location = f"{metadata.location}/metadata/foreign-{snapshot_id}.avro"
    content = encode_manifest_list(
        [encode_manifest_file(row, metadata.format_version) for row in listed.rows],
        format_version=metadata.format_version,
        snapshot_id=snapshot_id,
        parent_snapshot_id=head.snapshot_id,
        sequence_number=number,
        first_row_id=None,
        sync=bytes(16),
        extra_metadata={},
    )
    await harness.storage.inner.create((NewObject(location, content),))
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=head.snapshot_id,
        sequence_number=number,
        timestamp_ms=metadata.last_updated_ms,
        manifest_list=location,
        summary={"operation": "append"},
        schema_id=0,
    )
    to_main = SetSnapshotRef(MAIN, SnapshotRef(snapshot_id, "branch"))
    return await foreign_commit(harness, table, AddSnapshot(snapshot), to_main)


async def put_raw(
    harness: ServiceHarness, key: str, content: bytes, *, announce: bool = True
) -> None:
    """Store and announce content as a client does that checks nothing."""
    location = harness.inbox.location(key)
    await harness.storage.inner.create((NewObject(location, content),))
    if announce:
        await ring(harness, key, content)


async def ring(
    harness: ServiceHarness, key: str, content: bytes | None, *, said_digest: str | None = None
) -> None:
    """Ring any doorbell, whether its request exists or not."""
    bell = Doorbell(
        table_uuid=UUID(int=77),
        inbox_key=key,
        digest=said_digest or line_digest(content or b""),
        content=content,
        reply_to="bad",
    )
    await harness.publisher_queue.announce([bell])


async def assert_committed_together(harness: ServiceHarness, producers: Sequence[str]) -> None:
    """Check that the table holds one file of each, in one snapshot, and each has its receipt."""
    metadata = await harness.load()
    assert len(metadata.snapshots) == 1
    assert len(await harness.live_files()) == len(producers)
    for producer in producers:
        (receipt,) = await harness.receipts(producer)
        assert receipt.state is ReceiptState.COMMITTED
        assert receipt.snapshot_id == metadata.current_snapshot_id
