"""A storage and a catalog that are told what to answer, for tests of interleavings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from committer.errors import FrazilError
from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.updates.metadata_update import SetProperties, SetSnapshotRef, Update
from committer.ledger_entry import property_key
from committer.ports.pointer_swap import Swap, SwapAnswer
from committer.ports.storage import NewObject, require_deleted
from tests.support.faults.counting_storage import CountingStorage
from tests.support.faults.faulty_catalog import FaultyCatalog
from tests.support.service.service_harness import ServiceHarness


class PickyStorage(CountingStorage):
    """Fails the calls that `fails` names, with its error; everything else passes through."""

    def __init__(
        self, harness: ServiceHarness, fails: Callable[[str, str], FrazilError | None]
    ) -> None:
        super().__init__(harness.storage.inner)
        self.fails = fails

    def _judge(self, method: str, location: str) -> None:
        error = self.fails(method, location)
        if error is not None:
            raise error

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        self._judge("get", location)
        return await super().get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )

    async def create(self, objects: Sequence[NewObject]) -> None:
        for created in objects:
            self._judge("create", created.location)
        await super().create(objects)

    async def delete(self, locations: Sequence[str]) -> None:
        judged = {location: self.fails("delete", location) for location in locations}
        failures = {location: error for location, error in judged.items() if error is not None}
        await super().delete([location for location in locations if location not in failures])
        require_deleted(failures, locations)


class ScriptedCatalog(FaultyCatalog):
    """Lets a test decide about each swap by what is in it."""

    def __init__(self, inner: FaultyCatalog) -> None:
        super().__init__(inner.inner)
        self.decide: Callable[[Swap], SwapAnswer | None] = lambda swap: None
        self.arrives = False

    async def swap(self, swap: Swap) -> SwapAnswer:
        answer = self.decide(swap)
        if self.arrives:
            self.arrives = False
            await self.land_late()
        return await super().swap(swap) if answer is None else answer


def scripted(harness: ServiceHarness) -> ScriptedCatalog:
    catalog = ScriptedCatalog(harness.catalog)
    harness.catalog = catalog
    return catalog


def carries(swap: Swap, producer: str) -> bool:
    """Return whether a swap lands a request of this producer."""
    key = property_key(producer)
    return any(isinstance(one, SetProperties) and key in one.updates for one in swap.updates)


def branch_at(name: str, head: int) -> Update:
    """Return the update that points a branch at a snapshot."""
    return SetSnapshotRef(name, SnapshotRef(head, "branch"))


async def paths(harness: ServiceHarness) -> list[str]:
    found = [file.file_path for file in await harness.live_files()]
    assert len(found) == len(set(found))
    return found
