"""Drops a table and deletes its files: only those below its own location, and only if that is its
own alone as far as can be known.

The current metadata file is deleted last: after an interruption the table can be registered by it,
and purged again. Where a table is its folder, that file is the pointer as well: until it is gone
the table is there, and can be purged again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from committer.errors import NoSuchTableError, UnsupportedError
from committer.iceberg.values.locations import comparable_location
from committer.plan.batch.adopted_paths import adopt_locations
from committer.plan.cleanup.expiry import may_delete_files
from committer.plan.cleanup.orphan_search import claimed_places, places_of
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.catalog_side import CatalogSide, is_fenced
from committer.service.admin.orphan_finder import other_tables

DELETED_AT_ONCE = 1_000
# Writers that have begun before the drop may still add files while others are deleted.
ROUNDS_MAX = 3


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """The files to delete. `outside`: folders of the table elsewhere, where files stay.
    `drops_pointer_first`: whether an interruption leaves files without a pointer to them.
    """

    table: LoadedTable
    objects: int
    size_bytes: int
    outside: tuple[str, ...]
    drops_pointer_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePurge:
    """Purges a table of a catalog. `warehouse`: the folder that no purge may delete."""

    identifier: TableIdentifier
    side: CatalogSide
    warehouse: str

    async def plan(self) -> PurgePlan:
        """Look at what would be deleted. Errors: `UnsupportedError` naming what forbids it."""
        table = await self.side.catalog.load(self.identifier)
        await self._check(table)
        objects = size_bytes = 0
        async for info in self.side.storage.list(_folder(table)):
            objects += 1
            size_bytes += info.size_bytes
        at = comparable_location(table.metadata.location)
        adopted = adopt_locations(table.metadata.properties)
        outside = [
            place
            for place in (*places_of(table.metadata), *(one.rstrip("/") for one in adopted))
            if not comparable_location(place).is_within(at)
        ]
        drops_pointer_first = self.side.catalog.capabilities.drops_pointer_only
        return PurgePlan(table, objects, size_bytes, tuple(outside), drops_pointer_first)

    async def run(self, plan: PurgePlan) -> int:
        """Drop the table, then delete its files; return how many. Errors: as `plan`; those of the
        ports; `UnsupportedError` where the table has become another one since.
        """
        table = await self.side.catalog.load(self.identifier)
        if table.metadata.table_uuid != plan.table.metadata.table_uuid:
            raise UnsupportedError(f"{self.identifier} is another table since it was looked at")
        await self._check(table)
        if self.side.catalog.capabilities.drops_pointer_only:
            await self.side.catalog.drop_table(self.identifier)
            return await self._delete_files(table)
        deleted = await self._delete_files(table)
        # A writer that had begun may have made one more version of it meanwhile.
        deleted += await self._delete_others(table)
        await self._require_gone()
        return deleted

    async def _delete_files(self, table: LoadedTable) -> int:
        """Delete everything, the current metadata file last; return how many."""
        deleted = await self._delete_others(table)
        if not table.has_metadata_file:  # then it was among the others
            return deleted
        await self.side.storage.delete((table.metadata_location,))
        return deleted + 1

    async def _require_gone(self) -> None:
        try:
            location = await self.side.catalog.current_location(self.identifier)
        except NoSuchTableError:
            return
        raise UnsupportedError(
            f"{self.identifier} is there again: a writer has made `{location}` while its files were"
            " deleted; stop its writers and purge it again"
        )

    async def _delete_others(self, table: LoadedTable) -> int:
        """Delete everything but the current metadata file; return how many."""
        deleted = 0
        for _ in range(ROUNDS_MAX):
            found = 0
            async for batch in self._batches(table):
                await self.side.storage.delete(batch)
                found += len(batch)
            deleted += found
            if not found:
                break
        return deleted

    async def _batches(self, table: LoadedTable) -> AsyncIterator[list[str]]:
        """Yield the locations of all objects but the current metadata file."""
        batch: list[str] = []
        async for info in self.side.storage.list(_folder(table)):
            if info.location == table.metadata_location:
                continue
            batch.append(info.location)
            if len(batch) == DELETED_AT_ONCE:
                yield batch
                batch = []
        if batch:
            yield batch

    async def _check(self, table: LoadedTable) -> None:
        if self.side.catalog.capabilities.maintains_tables:
            kind = self.side.catalog.capabilities.kind
            raise self._refused(f"a catalog of the kind {kind} deletes the files of its tables")
        if not self.side.catalog.capabilities.drops_pointer_only:
            await self.side.catalog.probe()  # no call of it is made that would refuse a warehouse
        if is_fenced(self.identifier):
            raise self._refused("it is on its way to another catalog, which uses its files")
        if not may_delete_files(table.metadata.properties):
            raise self._refused("its property `gc.enabled` is false: others may use its files")
        uuid = table.metadata.require_uuid()
        note = await self.side.moves.find(uuid)
        if note is not None and note.to != self.side.name:
            raise self._refused(f"it has moved to catalog `{note.to}`, which uses its files")
        async for waiting in self.side.inbox.list(uuid):
            raise self._refused(
                f"requests wait for it in `{self.side.root}`, such as {waiting.key}: let them"
                " land, or remove them"
            )
        await self._check_location(table)

    async def _check_location(self, table: LoadedTable) -> None:
        """Refuse a location that holds the inbox, the warehouse, or is another table's too."""
        own = comparable_location(table.metadata.location)
        if not own.path.strip("/"):
            raise self._refused(f"its location {table.metadata.location} is a whole storage")
        for place in (self.side.root, self.warehouse):
            if comparable_location(place).is_within(own):
                raise self._refused(f"its location {table.metadata.location} holds {place}")
        async for other in other_tables(self.side.catalog, self.identifier):
            for place in claimed_places(other.metadata):
                at = comparable_location(place)
                if at.is_within(own) or own.is_within(at):
                    raise self._refused(
                        f"its location {table.metadata.location} meets {place} of table"
                        f" {other.identifier}"
                    )

    def _refused(self, why: str) -> UnsupportedError:
        return UnsupportedError(f"{self.identifier} is not purged: {why}")


def _folder(table: LoadedTable) -> str:
    return f"{table.metadata.location.rstrip('/')}/"
