"""A catalog as REST servers are: it checks requirements, applies updates to whatever is current,
and writes metadata files itself, under names of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from committer.catalog.staging import metadata_object
from committer.catalog.swap_groups import require_group
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
    GroupAnswer,
    GroupCommitted,
    GroupConflict,
    LoadedTable,
    Rejected,
    Swap,
    SwapAnswer,
)
from committer.ports.storage import NewObject, Storage
from committer.ports.world import World
from tests.support.memory.memory_catalog import MemoryCatalog


@dataclass(frozen=True, slots=True)
class Planned:
    """A change of one table: what was current, and what it becomes."""

    before: LoadedTable
    after: LoadedTable


class RequirementsCatalog(MemoryCatalog):
    """The `Catalog` port. `written`: the metadata files of its own."""

    capabilities = CatalogCapabilities(
        kind="requirements",
        metadata_writer="catalog",
        condition="requirements",
        has_transactions=True,
    )

    def __init__(self, *, storage: Storage, world: World) -> None:
        super().__init__(storage=storage)
        self._world = world
        self.written: list[str] = []

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        return ()

    async def swap(self, swap: Swap) -> SwapAnswer:
        while True:
            planned = await self._planned(swap)
            if not isinstance(planned, Planned):
                return planned
            if await self._install((planned,)):
                return Committed(planned.after)

    async def swap_together(self, swaps: Sequence[Swap]) -> GroupAnswer:
        require_group(swaps, self.capabilities)
        while True:
            planned: list[Planned] = []
            for swap in swaps:
                match await self._planned(swap):
                    case Planned() as one:
                        planned.append(one)
                    case Rejected() as answer:
                        return answer
                    case _:
                        return GroupConflict((swap.base.identifier,))
            if await self._install(planned):
                return GroupCommitted(tuple(one.after for one in planned))

    async def _planned(self, swap: Swap) -> Planned | SwapAnswer:
        """Return the change on what is current, or the answer without one."""
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
        # As Iceberg's own servers: where nothing changes, nothing is written.
        return Planned(current, current if changed.metadata == current.metadata else changed)

    async def _install(self, planned: Sequence[Planned]) -> bool:
        """Write the metadata files, then move the pointers; False where one has moved meanwhile."""
        changed = [one for one in planned if one.after is not one.before]
        for one in changed:
            created = metadata_object(one.after.metadata, one.after.metadata_location)
            await self._storage.create((created,))
        # As a server does: another swap that came in between is another current table.
        for one in changed:
            if self._locations.get(one.before.identifier) != one.before.metadata_location:
                return False
        for one in changed:
            self._locations[one.before.identifier] = one.after.metadata_location
            self.written.append(one.after.metadata_location)
        return True

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
