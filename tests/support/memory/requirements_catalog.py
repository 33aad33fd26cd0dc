"""A catalog as REST servers are: it checks requirements, applies updates to whatever is current,
and writes metadata files itself, under names of its own.
"""

from __future__ import annotations

from committer.catalog.staging import metadata_object
from committer.errors import FrazilError, NoSuchTableError
from committer.iceberg.updates.metadata_update import apply_updates
from committer.iceberg.updates.requirement import failed_requirement
from committer.iceberg.values.locations import (
    metadata_file_location,
    metadata_folder,
    metadata_version,
)
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    LoadedTable,
    Rejected,
    Swap,
    SwapAnswer,
)
from committer.ports.storage import NewObject, Storage
from committer.ports.world import World
from tests.support.memory.memory_catalog import MemoryCatalog


class RequirementsCatalog(MemoryCatalog):
    """The `Catalog` port. `written`: the metadata files of its own."""

    capabilities = CatalogCapabilities(
        kind="requirements", metadata_writer="catalog", condition="requirements"
    )

    def __init__(self, *, storage: Storage, world: World) -> None:
        super().__init__(storage=storage)
        self._world = world
        self.written: list[str] = []

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        return ()

    async def swap(self, swap: Swap) -> SwapAnswer:
        while True:
            try:
                current = await self.load(swap.base.identifier)
            except NoSuchTableError:
                return Conflict()
            failed = (failed_requirement(one, current.metadata) for one in swap.requirements)
            if any(failed):
                return Conflict()
            try:
                changed = self._changed(current, swap)
            except FrazilError as error:
                return self._refusal(current, swap, error)
            if changed.metadata == current.metadata:
                return Committed(current)  # as Iceberg's own servers: nothing is written
            created = metadata_object(changed.metadata, changed.metadata_location)
            await self._storage.create((created,))
            # As a server does: another swap that came in between is another current table.
            if self._locations.get(swap.base.identifier) == current.metadata_location:
                self._locations[swap.base.identifier] = changed.metadata_location
                self.written.append(changed.metadata_location)
                return Committed(changed)

    def _refusal(self, current: LoadedTable, swap: Swap, error: FrazilError) -> SwapAnswer:
        """Answer for a change that cannot be applied to what is current."""
        is_moved = current.metadata_location != swap.base.metadata_location
        return Conflict(current) if is_moved else Rejected(str(error))

    def _changed(self, current: LoadedTable, swap: Swap) -> LoadedTable:
        metadata = apply_updates(
            current.metadata,
            swap.updates,
            base_location=current.metadata_location,
            now_ms=self._world.now_ms(),
        )
        version = metadata_version(current.metadata_location) + 1
        folder = metadata_folder(metadata.location, metadata.properties)
        location = metadata_file_location(folder, version, self._world.uuid())
        return LoadedTable(current.identifier, metadata, location)
