"""File system tables on a local disk, whose creates lose their answers or land late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from committer.catalog.hadoop.hadoop_catalog import HadoopCatalog
from committer.catalog.hadoop.hadoop_layout import HINT, MARKER
from committer.errors import AlreadyExistsError
from committer.ports.pointer_swap import LoadedTable
from tests.support.catalogs.interfered_storage import InterferedFiles
from tests.support.catalogs.plain_namespaces import PlainNamespaces
from tests.support.faults.failing_creates import FailingCreates
from tests.support.faults.faulty_catalog import Fault

# Beside the metadata files: the catalog's own.
OWN_FILES = (HINT, MARKER)


class FilesHarness(PlainNamespaces):
    """A folder, and clients of it. The swap is a create, so its faults are those of a create."""

    def __init__(self, folder: Path) -> None:
        self.warehouse = f"file://{folder}/warehouse"
        self.storage = InterferedFiles()
        self._faulty = FailingCreates(self.storage)
        self.catalog = HadoopCatalog(
            warehouse=self.warehouse, storage=self._faulty, no_other_writers=False
        )

    @contextmanager
    def befall(self, fault: Fault) -> Iterator[None]:
        faulty = self._faulty
        if fault is Fault.UNAVAILABLE:
            faulty.is_away = True
        else:
            faulty.befalls = fault
        if fault is Fault.LOST_REPLY:
            # Else the file itself says whose it is, and the answer is no longer lost.
            faulty.after_create = self._leave
        yield
        faulty.is_away = False
        assert faulty.befalls is None, "the fault met no swap"

    async def _leave(self) -> None:
        self._faulty.is_away = True

    async def land_late(self) -> None:
        """Send the creates that were held back: the storage may refuse them by now."""
        try:
            await self._faulty.land_late()
        except AlreadyExistsError:
            return

    async def another(self) -> HadoopCatalog:
        return HadoopCatalog(warehouse=self.warehouse, storage=self.storage, no_other_writers=False)

    def first_location(self, table: LoadedTable) -> str:
        return f"{table.metadata.location}/metadata/v1.metadata.json"

    async def close(self) -> None:
        await self.catalog.close()
        await self.storage.close()
