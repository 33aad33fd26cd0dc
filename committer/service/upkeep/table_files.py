"""The files of one table, as its maintenance tasks share them: its state, reads and deletes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from committer.errors import InvalidMetadataError
from committer.plan.cleanup.reachability import Reading
from committer.plan.commit.attempt_log import AttemptLog
from committer.plan.ledger.state import TableState
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject, Storage, exists
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.reading import answer
from committer.service.tasks.steps import create_all
from committer.service.telemetry.metrics import Metrics, UpkeepKind

DELETES_AT_ONCE = 1_000

T = TypeVar("T")


class TableFiles:
    """The files of one table, with its state as this process knows it."""

    def __init__(
        self,
        table: TableIdentifier,
        table_uuid: UUID,
        *,
        catalog: Catalog,
        storage: Storage,
        attempts: AttemptLog,
        metrics: Metrics,
    ) -> None:
        self.table = table
        self.table_uuid = table_uuid
        self._catalog = catalog
        self._storage = storage
        self._attempts = attempts
        self._metrics = metrics

    # --- State ---

    @property
    def known_state(self) -> TableState | None:
        """The newest state that this process knows."""
        return self._attempts.state

    @property
    def has_own_metadata_files(self) -> bool:
        """Whether committers write the metadata files, and not the catalog."""
        return self._catalog.capabilities.metadata_writer == "committer"

    async def current_location(self) -> str:
        """Return where the pointer points now. Errors: those of the catalog."""
        return await self._catalog.current_location(self.table)

    async def latest(self) -> LoadedTable:
        """Return the table that the pointer names now; read only if it is not our own last commit.

        Errors: `NoSuchTableError`, `InvalidMetadataError` for another table of this name: our table
        may exist under another name and need its files. Those of the catalog and the storage.
        """
        location = await self.current_location()
        known = self.known_state
        if known is not None and known.table.metadata_location == location:
            return known.table
        table = await self._catalog.load(self.table)
        if table.metadata.table_uuid != self.table_uuid:
            raise InvalidMetadataError(f"{self.table} is another table now: nothing is deleted")
        return table

    # --- Files ---

    async def exists(self, location: str) -> bool:
        return await exists(self._storage, location)

    async def get(self, location: str) -> bytes:
        """Read one. Errors: those of the storage."""
        return await self._storage.get(location)

    async def answer(self, reading: Reading[T]) -> T:
        """Answer what a search asks for."""
        return await answer(reading, self._storage)

    async def create(self, objects: Sequence[NewObject]) -> None:
        """Write new ones. Errors: those of the storage."""
        await create_all(self._storage, objects)

    async def delete(self, locations: Sequence[str]) -> None:
        """Delete these; absent ones count as deleted."""
        if not locations:
            return
        await self._storage.delete(locations)
        self._metrics.upkeep_done(self.table, UpkeepKind.DELETE_FILES, len(locations))


def delete_batches(locations: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the batches that are deleted at once."""
    for start in range(0, len(locations), DELETES_AT_ONCE):
        yield locations[start : start + DELETES_AT_ONCE]
