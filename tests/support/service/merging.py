"""A table whose manifests are merged beside commits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from committer.iceberg.entry.data_file import ManifestEntry, ManifestEntryStatus
from committer.iceberg.expressions.expression_json import parse_expression
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.scan.scan_filter import ScanFilter
from committer.iceberg.updates.metadata_update import RemoveSnapshotRef, SetSnapshotRef
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import Storage
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.faults.counting_storage import CountingStorage
from tests.support.service.outside import add_table, foreign_commit
from tests.support.service.service_harness import ServiceHarness

FEW = {"commit.manifest.min-count-to-merge": "4"}


class HeldStorage(CountingStorage):
    """Reads of manifests fail, or wait, as long as the test says so."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.error: Exception | None = None
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.reading = 0
        self.reading_max = 0

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        if not location.endswith("-m0.avro"):
            return await super().get(
                location, offset=offset, length=length, size_bytes_max=size_bytes_max
            )
        self.reading += 1
        self.reading_max = max(self.reading_max, self.reading)
        try:
            await self.is_open.wait()
            if self.error is not None:
                raise self.error
            return await super().get(
                location, offset=offset, length=length, size_bytes_max=size_bytes_max
            )
        finally:
            self.reading -= 1


class Merging:
    """A service with one table, of which every test wants the same."""

    def __init__(self) -> None:
        self.harness = ServiceHarness()
        self.storage = HeldStorage(self.harness.storage.inner)
        self.harness.storage.inner = self.storage
        self.epoch = 0

    async def create(
        self, properties: Mapping[str, str] = FEW, *, format_version: int = 2
    ) -> LoadedTable:
        table = build_flights(format_version=format_version, properties=properties)
        self.table = await add_table(self.harness, table)
        return table

    async def commit(self, times: int = 1) -> None:
        """Commit one request after another, each with time for the work behind it."""
        for _ in range(times):
            await self.publish()
            await self.harness.settle(1.0)

    async def publish(self) -> None:
        sealed = build_request(self.table, epoch=self.epoch, partition=("AA",), files_count=2)
        self.epoch += 1
        await self.harness.publish(sealed)

    async def rows(self, snapshot: Snapshot | None = None) -> list[ManifestFile]:
        snapshot = snapshot or (await self.harness.load()).current_snapshot
        assert snapshot is not None
        assert snapshot.manifest_list is not None
        content = await self.harness.storage.inner.get(snapshot.manifest_list)
        return list(decode_manifest_list(content).rows)

    async def manifests_counted(self) -> list[tuple[int, int, int]]:
        """Return (created, kept, replaced) of every snapshot's summary."""
        found = []
        for snapshot in (await self.harness.load()).snapshots:
            summary = snapshot.summary or {}
            keys = ("created", "kept", "replaced")
            created, kept, replaced = (int(summary[f"manifests-{key}"]) for key in keys)
            found.append((created, kept, replaced))
        return found

    async def assert_each_file_once(self) -> None:
        paths = [file.file_path for file in await self.harness.live_files()]
        assert len(paths) == len(set(paths)) == 2 * self.epoch
        assert await self.harness.outstanding() == []
        assert await self.harness.quarantined() == []

    def counted(self) -> dict[str, float]:
        """Return the upkeep counts of the metrics."""
        samples = self.harness.metrics.instruments.samples()
        names = {
            "frazil_manifests_merged_total": "merged",
            "frazil_upkeep_failures_total": "failed",
            "frazil_internal_errors_total": "internal errors",
        }
        return {names[one.name]: one.value for one in samples if one.name in names and one.value}

    async def foreign(self, *updates: SetSnapshotRef | RemoveSnapshotRef) -> None:
        """Change a branch as another engine."""
        await foreign_commit(self.harness, self.table, *updates)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.harness.running():
            yield

    async def publish_to(self, carriers: Sequence[str], *, files_count: int) -> None:
        """Publish a request for each partition at once: one commit takes them all."""
        for carrier in carriers:
            sealed = build_request(
                self.table,
                producer=f"of-{carrier}",
                epoch=self.epoch,
                partition=(carrier,),
                files_count=files_count,
            )
            await self.harness.publish(sealed)
        self.epoch += 1
        await self.harness.settle(1.0)

    async def live_entries(self) -> dict[str, ManifestEntry]:
        """Return the live entries by path, with all that they inherit, as if carried over."""
        found: dict[str, ManifestEntry] = {}
        for row in await self.rows():
            content = await self.harness.storage.inner.get(row.manifest_path)
            for entry in decode_manifest(content, manifest_file=row).entries:
                if entry.is_live:
                    assert entry.data_file.file_path not in found
                    carried = replace(entry, status=ManifestEntryStatus.EXISTING)
                    found[entry.data_file.file_path] = carried
        return found

    async def manifests_of(self, carrier: str) -> int:
        """Return how many manifests a scan of one partition opens."""
        metadata = await self.harness.load()
        wanted = parse_expression({"type": "eq", "term": "carrier", "value": carrier})
        scan = ScanFilter(metadata.partition_specs, metadata.current_schema, wanted)
        return sum(map(scan.may_match_manifest, await self.rows()))
