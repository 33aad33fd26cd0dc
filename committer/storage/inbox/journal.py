"""A durable note of the files to delete, written before any of them is deleted.

    <root>/upkeep/<table uuid>/<id>     one expiry, or the garbage of attempts

Once snapshots have left the metadata, nothing else names their files. So the note is written before
the swap that removes them, the files are deleted once the swap is proven, and the note is deleted
last. Files of attempts are noted with the proof that the attempts did not land. A committer that
finds a note after a crash can finish the work. When to do which is not decided here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import orjson

from committer.errors import InvalidMetadataError, NotFoundError
from committer.iceberg.metadata.snapshot import Snapshot, parse_snapshot
from committer.iceberg.metadata.table_statistics import (
    StatisticsFile,
    parse_statistics_file,
    print_statistics_file,
)
from committer.iceberg.values.fragments import json_list
from committer.iceberg.values.json_reader import Reader
from committer.ports.storage import NewObject, Storage, create_or_equal

_VERSION = 1
_GARBAGE = "left-over"


@dataclass(frozen=True, slots=True)
class ExpiryEntry:
    """One expiry. Snapshots and statistics in the specification's form, oldest first.

    `base_location`: the metadata file that the expiry was decided on. `kept_snapshot_id`: the
    newest snapshot in it that stays. Metadata with neither this nor the expired ones may be older
    than them all: then no snapshot was expired, and the table was restored from a backup.
    """

    entry_id: UUID
    table_uuid: UUID
    base_location: str
    kept_snapshot_id: int
    written_at_ms: int
    snapshots: tuple[Snapshot, ...]
    refs: tuple[str, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()


@dataclass(frozen=True, slots=True)
class GarbageEntry:
    """Files of attempts that did not land.

    `proven_in`: the metadata file whose log shows what has replaced each attempt's base. `bases`:
    metadata files that must be deleted before anything else is. `own_files` are named by one
    attempt alone, `manifests` by no snapshot up to `after_sequence_number`, and by none since.
    """

    entry_id: UUID
    table_uuid: UUID
    proven_in: str
    written_at_ms: int
    own_files: tuple[str, ...]
    manifests: tuple[str, ...]
    bases: tuple[str, ...]
    after_sequence_number: int


Entry = ExpiryEntry | GarbageEntry


class Journal:
    """The entries of all tables below one root."""

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage = storage
        self._folder = f"{root.rstrip('/')}/upkeep/"

    def location(self, table_uuid: UUID, entry_id: UUID) -> str:
        return f"{self._folder}{table_uuid}/{entry_id}"

    async def put(self, entry: Entry) -> None:
        """Make an entry durable. May be repeated."""
        location = self.location(entry.table_uuid, entry.entry_id)
        await create_or_equal(self._storage, NewObject(location, _print_entry(entry)))

    async def stored_ms(self, entry: Entry) -> int:
        """Return when an entry was written, by the storage's clock."""
        info = await self._storage.head(self.location(entry.table_uuid, entry.entry_id))
        return info.modified_ms

    async def list(self, table_uuid: UUID) -> AsyncIterator[Entry]:
        """Yield the entries of a table.
        Errors: `InvalidMetadataError` for one that cannot be read."""
        async for found in self._storage.list(f"{self._folder}{table_uuid}/"):
            try:
                content = await self._storage.get(found.location)
            except NotFoundError:
                continue  # another committer has finished it meanwhile
            yield _parse_entry(content, found.location)

    async def delete(self, entry: Entry) -> None:
        """Remove an entry whose work is done. May be repeated."""
        await self._storage.delete((self.location(entry.table_uuid, entry.entry_id),))


def _print_entry(entry: Entry) -> bytes:
    about = {
        "journal-version": _VERSION,
        "entry-id": str(entry.entry_id),
        "table-uuid": str(entry.table_uuid),
        "written-at-ms": entry.written_at_ms,
    }
    match entry:
        case ExpiryEntry():
            return orjson.dumps(about | _print_expiry(entry))
        case GarbageEntry():
            return orjson.dumps(about | _print_garbage(entry))


def _print_expiry(entry: ExpiryEntry) -> dict[str, object]:
    return {
        "base-location": entry.base_location,
        "kept-snapshot-id": entry.kept_snapshot_id,
        "refs": list(entry.refs),
        "snapshots": json_list(snapshot.json_bytes for snapshot in entry.snapshots),
        "statistics": list(map(print_statistics_file, entry.statistics)),
    }


def _print_garbage(entry: GarbageEntry) -> dict[str, object]:
    return {
        "kind": _GARBAGE,
        "proven-in": entry.proven_in,
        "own-files": list(entry.own_files),
        "manifests": list(entry.manifests),
        "bases": list(entry.bases),
        "after-sequence-number": entry.after_sequence_number,
    }


def _parse_entry(content: bytes, location: str) -> Entry:
    where = f"journal entry {location}"
    try:
        reader = Reader(orjson.loads(content), where)
        version = reader.integer("journal-version")
        if version != _VERSION:
            raise InvalidMetadataError(f"{where}: version {version}, expected {_VERSION}")
        kind = reader.optional_text("kind")
        if kind not in (None, _GARBAGE):
            raise InvalidMetadataError(f"{where}: an entry of an unknown kind, `{kind}`")
        return _parse_expiry(reader) if kind is None else _parse_garbage(reader)
    except ValueError as error:
        raise InvalidMetadataError(f"{where}: {error}") from error


def _parse_expiry(reader: Reader) -> ExpiryEntry:
    return ExpiryEntry(
        entry_id=UUID(reader.text("entry-id")),
        table_uuid=UUID(reader.text("table-uuid")),
        base_location=reader.text("base-location"),
        kept_snapshot_id=reader.integer("kept-snapshot-id"),
        written_at_ms=reader.integer("written-at-ms"),
        refs=reader.texts("refs"),
        snapshots=tuple(parse_snapshot(one) for one in reader.items("snapshots")),
        statistics=tuple(parse_statistics_file(one) for one in reader.items("statistics")),
    )


def _parse_garbage(reader: Reader) -> GarbageEntry:
    return GarbageEntry(
        entry_id=UUID(reader.text("entry-id")),
        table_uuid=UUID(reader.text("table-uuid")),
        proven_in=reader.text("proven-in"),
        written_at_ms=reader.integer("written-at-ms"),
        own_files=reader.texts("own-files"),
        manifests=reader.texts("manifests"),
        bases=reader.texts("bases"),
        after_sequence_number=reader.integer("after-sequence-number"),
    )
