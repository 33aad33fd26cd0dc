"""The catalogs that a simulation can have: whose condition it is, and who maps it to the four
answers.

The servers are in memory; the mapping is that of the adapters themselves. File system tables are
the whole adapter: its swap is a call of the storage, and meets that port's faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from committer.catalog.hadoop.hadoop_catalog import HadoopCatalog
from committer.catalog.refused_swap import judge_by_load
from committer.catalog.rest.rest_swap import judge_conflict, judge_refusal
from committer.errors import FrazilError, NoSuchTableError, NotFoundError
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.iceberg.values.locations import version_in_name
from committer.ports.catalog import Catalog
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
from committer.request.table_identifier import TableIdentifier
from tests.simulation.chance import draws
from tests.simulation.faulty_ports import FaultyCatalog, short
from tests.simulation.history import History
from tests.simulation.observed import ObservedCatalog, ObservedStorage
from tests.simulation.process import Life
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.requirements_catalog import RequirementsCatalog

WAREHOUSE = "memory://warehouse"


class SimCatalog(Enum):
    """A kind of catalog, named after one that is of it."""

    DYNAMODB = "dynamodb"  # a pointer; a refusal is believed, unless it may be that of a resend
    REST = "rest"  # requirements, and metadata files of its own; 400 and 409 are looked into
    HIVE = "hive"  # a pointer; after each refusal it is read again
    FILES = "files"  # the creation of the next version


class HiveServer(MemoryCatalog):
    """A pointer, and the limits of a Hive metastore."""

    capabilities = CatalogCapabilities(kind="Hive", property_key_chars_max=256)


class RestServer(RequirementsCatalog):
    """Says 400 to whatever it cannot apply, be it for its timing. `applies_first`: before it looks
    at the requirements, so that a commit which comes twice is a 400, too.
    """

    def __init__(self, *, storage: Storage, world: World, applies_first: bool) -> None:
        super().__init__(storage=storage, world=world)
        self._applies_first = applies_first

    async def swap(self, swap: Swap) -> SwapAnswer:
        if self._applies_first:
            try:
                self._changed(await self.load(swap.base.identifier), swap)
            except NoSuchTableError:
                return Conflict()
            except FrazilError as error:
                return Rejected(str(error))
        return await super().swap(swap)

    def _refusal(self, current: LoadedTable, swap: Swap, error: FrazilError) -> SwapAnswer:
        return Rejected(str(error))


def open_server(kind: SimCatalog, seed: int, storage: Storage, world: World) -> Catalog:
    """Return the server of a kind of catalog."""
    match kind:
        case SimCatalog.DYNAMODB:
            return MemoryCatalog(storage=storage)
        case SimCatalog.HIVE:
            return HiveServer(storage=storage)
        case SimCatalog.REST:
            applies_first = draws(seed, "what a REST server looks at first")[0] < 0.5
            return RestServer(storage=storage, world=world, applies_first=applies_first)
        case SimCatalog.FILES:
            return files_catalog(storage)


def files_catalog(storage: Storage) -> HadoopCatalog:
    return HadoopCatalog(warehouse=WAREHOUSE, storage=storage, no_other_writers=True)


def open_client(
    kind: SimCatalog, life: Life, server: Catalog, history: History, storage: Storage
) -> Catalog:
    """Return a life's way to the catalog. `storage`: its way to the storage."""
    name = life.process.name
    match kind:
        case SimCatalog.DYNAMODB:
            return FaultyCatalog(life, ObservedCatalog(server, history, name), storage)
        case SimCatalog.HIVE:
            return HiveClient(life, ObservedCatalog(server, history, name), storage)
        case SimCatalog.REST:
            return RestClient(life, ObservedRestCatalog(server, history, name), storage)
        case SimCatalog.FILES:
            return files_catalog(storage)


class HiveClient(FaultyCatalog):
    """Reads the pointer again behind a refusal, as the adapter does."""

    async def swap(self, swap: Swap) -> SwapAnswer:
        answer = await self._sent(swap, resent=lambda answer: answer)
        if isinstance(answer, Conflict):
            return await judge_by_load(swap, "modified", self.load)
        return answer


class RestClient(FaultyCatalog):
    """Loads the table behind a 409 and a 400, as the adapter does."""

    async def swap(self, swap: Swap) -> SwapAnswer:
        answer = await self._sent(swap, resent=lambda answer: answer, refused=_refused)
        if isinstance(answer, Conflict):
            return await judge_conflict("409", swap, self.load)
        if not isinstance(answer, Rejected):
            return answer
        judged = await judge_refusal(answer.reason, swap, self.load)
        if isinstance(judged, Rejected):
            self._refused(swap)
        return judged


def _refused() -> Rejected:
    return Rejected("400, says the simulation")


class ObservedRestCatalog(ObservedCatalog):
    """Notes what the server has made of a swap, on what was current then."""

    async def swap(self, swap: Swap) -> SwapAnswer:
        try:
            before = await self.inner.load(swap.base.identifier)
        except NoSuchTableError:
            return Conflict()
        answer = await self.inner.swap(swap)
        if isinstance(answer, Committed) and self._listener:
            after = answer.table
            if after.metadata_location == before.metadata_location:
                return answer  # there was nothing to change
            done = replace(
                swap,
                base=before,
                metadata=after.metadata,
                metadata_location=after.metadata_location,
            )
            self._listener.swapped(self._process, done)
        return answer


class VersionedStorage(ObservedStorage):
    """Notes the creation of a file system table's next version as the swap that it is."""

    async def create(self, objects: Sequence[NewObject]) -> None:
        await super().create(objects)
        for created in objects:
            await self._note_version(created)

    async def _note_version(self, created: NewObject) -> None:
        folder, _, name = created.location.rpartition("/")
        number = version_in_name(name)
        if number is None or number == 1 or self._listener is None:
            return
        before = f"{folder}/v{number - 1}.metadata.json"
        try:
            content = await self.inner.get(before)
        except NotFoundError:
            self._history.violated("I4", f"`{short(created.location)}` follows no version")
            return
        *_, namespace, table, _ = folder.split("/")
        identifier = TableIdentifier((namespace,), table)
        base = LoadedTable(identifier, parse_table_metadata(content), before)
        metadata = parse_table_metadata(created.content)
        self._listener.swapped(self._process, Swap(base, (), (), metadata, created.location))
