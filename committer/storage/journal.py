"""What an expiry will leave behind, noted durably before the swap that expires it.

    <root>/upkeep/<table uuid>/<id>     snapshots that a swap removes, with what names their files

Once snapshots are gone from the metadata nothing else names their files. So the note is written
first, the files are deleted once the swap is proven, and the note goes last: whoever finds one
after a crash can finish the work. When to do which is not decided here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import orjson

from committer.errors import InvalidMetadataError, NotFoundError
from committer.iceberg.fragments import json_list
from committer.iceberg.json_reader import Reader
from committer.iceberg.snapshot import Snapshot, parse_snapshot
from committer.iceberg.table_statistics import (
    StatisticsFile,
    parse_statistics_file,
    print_statistics_file,
)
from committer.ports import NewObject, Storage, create_or_equal

_VERSION = 1


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One expiry. Snapshots and statistics in the specification's form, oldest first.

    `base_location`: the metadata file that the expiry was decided on. `kept_snapshot_id`: the
    newest snapshot in it that stays. Metadata with neither this nor those that go may be from
    before them all: nobody has expired anything, the table was put back.
    """

    entry_id: UUID
    table_uuid: UUID
    base_location: str
    kept_snapshot_id: int
    written_at_ms: int
    snapshots: tuple[Snapshot, ...]
    refs: tuple[str, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()


class Journal:
    """The entries of all tables below one root."""

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage = storage
        self._folder = f"{root.rstrip('/')}/upkeep/"

    def location(self, table_uuid: UUID, entry_id: UUID) -> str:
        return f"{self._folder}{table_uuid}/{entry_id}"

    async def put(self, entry: JournalEntry) -> None:
        """Make an entry durable. May be repeated."""
        location = self.location(entry.table_uuid, entry.entry_id)
        await create_or_equal(self._storage, NewObject(location, _print_entry(entry)))

    async def stored_ms(self, entry: JournalEntry) -> int:
        """When an entry was written by the storage's clock."""
        info = await self._storage.head(self.location(entry.table_uuid, entry.entry_id))
        return info.modified_ms

    async def list(self, table_uuid: UUID) -> AsyncIterator[JournalEntry]:
        """The entries of a table. Errors: `InvalidMetadataError` for one that cannot be read."""
        async for found in self._storage.list(f"{self._folder}{table_uuid}/"):
            try:
                content = await self._storage.get(found.location)
            except NotFoundError:
                continue  # another committer has finished it meanwhile
            yield _parse_entry(content, found.location)

    async def delete(self, entry: JournalEntry) -> None:
        """Remove an entry whose work is done. May be repeated."""
        await self._storage.delete((self.location(entry.table_uuid, entry.entry_id),))


def _print_entry(entry: JournalEntry) -> bytes:
    return orjson.dumps(
        {
            "journal-version": _VERSION,
            "entry-id": str(entry.entry_id),
            "table-uuid": str(entry.table_uuid),
            "base-location": entry.base_location,
            "kept-snapshot-id": entry.kept_snapshot_id,
            "written-at-ms": entry.written_at_ms,
            "refs": list(entry.refs),
            "snapshots": json_list(snapshot.json_bytes for snapshot in entry.snapshots),
            "statistics": list(map(print_statistics_file, entry.statistics)),
        }
    )


def _parse_entry(content: bytes, location: str) -> JournalEntry:
    where = f"journal entry {location}"
    try:
        reader = Reader(orjson.loads(content), where)
        version = reader.integer("journal-version")
        if version != _VERSION:
            raise InvalidMetadataError(f"{where}: version {version}, expected {_VERSION}")
        return JournalEntry(
            entry_id=UUID(reader.text("entry-id")),
            table_uuid=UUID(reader.text("table-uuid")),
            base_location=reader.text("base-location"),
            kept_snapshot_id=reader.integer("kept-snapshot-id"),
            written_at_ms=reader.integer("written-at-ms"),
            refs=reader.texts("refs"),
            snapshots=tuple(parse_snapshot(one) for one in reader.items("snapshots")),
            statistics=tuple(parse_statistics_file(one) for one in reader.items("statistics")),
        )
    except ValueError as error:
        raise InvalidMetadataError(f"{where}: {error}") from error
