"""What comes to a house from outside: tables, foreign commits, clients that check nothing."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from committer.iceberg.metadata_update import Update
from committer.ports import Committed, Doorbell, LoadedTable, NewObject
from committer.request import ReceiptState, line_digest
from tests.flights import foreign_swap
from tests.service.house import House


async def add_table(house: House, table: LoadedTable) -> LoadedTable:
    """Put a table that a test has built into the catalog."""
    await house.catalog.inner.create_namespace(table.identifier.namespace)
    await house.catalog.inner.create_table(table)
    return table


async def foreign_commit(house: House, table: LoadedTable, *updates: Update) -> LoadedTable:
    """Another engine commits; returns the table as it is then."""
    current = await house.catalog.inner.load(table.identifier)
    swap = foreign_swap(current, *updates)
    await house.storage.inner.create(house.catalog.inner.objects_before(swap))
    assert isinstance(await house.catalog.inner.swap(swap), Committed)
    return await house.catalog.inner.load(table.identifier)


async def put_raw(house: House, key: str, content: bytes, *, announce: bool = True) -> None:
    """What a client that checks nothing does."""
    location = house.inbox.location(key)
    await house.storage.inner.create((NewObject(location, content),))
    if announce:
        await ring(house, key, content)


async def ring(
    house: House, key: str, content: bytes | None, *, said_digest: str | None = None
) -> None:
    """Any doorbell, whether there is such a request or not."""
    bell = Doorbell(
        table_uuid=UUID(int=77),
        inbox_key=key,
        digest=said_digest or line_digest(content or b""),
        content=content,
        reply_to="bad",
    )
    await house.publisher_queue.announce([bell])


async def assert_committed_together(house: House, producers: Sequence[str]) -> None:
    """The table holds one file of each, in one snapshot, and each was told so."""
    metadata = await house.load()
    assert len(metadata.snapshots) == 1
    assert len(await house.live_files()) == len(producers)
    for producer in producers:
        (receipt,) = await house.receipts(producer)
        assert receipt.state is ReceiptState.COMMITTED
        assert receipt.snapshot_id == metadata.current_snapshot_id
