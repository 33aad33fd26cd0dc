"""Merges the small manifests of a table's head in the background, while commits go on.

`plan/cleanup/merge_selection.py` decides which ones, `iceberg/splice/manifest_merge.py` makes the
bytes of one manifest, `manifest_clusters.py` those of several that are clustered by partition. They
are written under names of ours, and the next commit lists them instead of those that they replace.
If another commit wins, the files are superseded: an attempt whose answer is lost may still list
them, so they are never deleted here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, repeat
from uuid import UUID

from committer.errors import (
    InvalidMetadataError,
    NotFoundError,
    ObjectTooLargeError,
    UnsupportedError,
)
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.manifest.manifest_writer import (
    EncodedManifest,
    ManifestContext,
    manifest_file,
)
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.splice.manifest_clusters import ManifestClusters
from committer.iceberg.splice.manifest_merge import ManifestMerge
from committer.iceberg.values.locations import manifest_location, metadata_folder
from committer.plan.batch.batch import manifest_context, sync_marker
from committer.plan.batch.manifest_size import target_bytes
from committer.plan.cleanup.maintenance import MergedManifests, Upkeep, applicable_merges
from committer.plan.cleanup.merge_selection import is_clustered, plan_merges
from committer.plan.commit.attempt_log import AttemptLog
from committer.plan.commit.commit import CommitPlan
from committer.plan.ledger.state import TableState
from committer.ports.storage import NewObject
from committer.ports.world import World
from committer.service.tasks.steps import (
    OFF_LOOP_BYTES,
    in_slices,
    off_loop_if_large,
    selecting_bytes,
    weight_bytes,
)
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics, UpkeepKind
from committer.service.upkeep.table_files import TableFiles

# Of what is to be merged, so much is read at once.
READS_AT_ONCE = 16
READ_BYTES_AT_ONCE = 8 * 1024 * 1024
# Nothing names what waits for a commit: an engine's orphan clean-up takes it, though not so soon.
WAITING_S_MAX = 3_600.0
# So often the manifests of a long list are looked at. Looking at one takes some microseconds.
LOOK_INTERVAL_S = 10.0


class Merger:
    """The maintenance task that merges manifests; one for each table committer."""

    kind = UpkeepKind.MERGE_MANIFESTS

    def __init__(
        self,
        files: TableFiles,
        attempts: AttemptLog,
        world: World,
        metrics: Metrics,
        clustering: asyncio.Lock,
    ) -> None:
        """Merge the manifests of one table.
        `clustering`: held by the one table whose manifests are in memory to be clustered."""
        self._files = files
        self._attempts = attempts
        self._world = world
        self._metrics = metrics
        self._clustering = clustering
        # Since when each waits for a commit.
        self._finished: list[tuple[float, MergedManifests]] = []
        self._unreadable: set[str] = set()
        self._look_at_s = 0.0

    def offer(self, upkeep: Upkeep) -> Upkeep:
        """Add what is merged and not listed yet."""
        fresh = tuple(merged for since_s, merged in self._finished if self._is_fresh(since_s))
        return replace(upkeep, merged=fresh) if fresh else upkeep

    def landed(self, plan: CommitPlan) -> None:
        """Forget what this commit lists, and what its head has no use for any more."""
        listed = _paths(plan)
        waiting = []
        for since_s, merged in self._finished:
            if listed.issuperset(merged.paths):
                self._metrics.upkeep_done(self._files.table, self.kind, len(merged.replaced))
            elif self._is_fresh(since_s) and _still_applies(merged, plan.state):
                waiting.append((since_s, merged))
            else:
                self._supersede(merged)
        self._finished = waiting

    def may_have_gone(self, plan: CommitPlan) -> None:
        """Drop the merges of an attempt whose answer was lost: it has landed or never will, and is
        not in the table. If it had landed and was rolled back, its files have expired with it: they
        are not offered again.
        """
        taken = _paths(plan)
        waiting, self._finished = self._finished, []
        for since_s, merged in waiting:
            if taken.issuperset(merged.paths):
                self._supersede(merged)
            else:
                self._finished.append((since_s, merged))

    def _supersede(self, merged: MergedManifests) -> None:
        for path in merged.paths:
            log.info("merge.superseded", table=str(self._files.table), path=path)
            self._attempts.supersede(path)

    def _is_fresh(self, since_s: float) -> bool:
        return self._world.monotonic_s() - since_s <= WAITING_S_MAX

    def is_due(self, state: TableState, branch: str) -> bool:
        """Return whether enough small manifests have gathered, and no earlier merge waits for a
        commit. Of a long list that takes too long for the loop: now and then `work` looks."""
        if self._finished:
            return False
        if selecting_bytes(state, branch) < OFF_LOOP_BYTES:
            return bool(self._groups(state, branch))
        if self._world.monotonic_s() < self._look_at_s:
            return False
        self._look_at_s = self._world.monotonic_s() + LOOK_INTERVAL_S
        return True

    async def work(self, state: TableState, branch: str) -> None:
        """Merge group after group. A failure keeps the groups that are finished."""
        weight = selecting_bytes(state, branch)
        for group in await off_loop_if_large(weight, self._groups, state, branch):
            merged = await self._merge(group, state, branch)
            if merged is not None:
                self._finished.append((self._world.monotonic_s(), merged))

    def _groups(self, state: TableState, branch: str) -> tuple[tuple[ManifestFile, ...], ...]:
        return plan_merges(state.head_rows(branch), state.metadata, self._unreadable)

    async def _merge(
        self, group: tuple[ManifestFile, ...], state: TableState, branch: str
    ) -> MergedManifests | None:
        started_s = self._world.monotonic_s()
        metadata = state.metadata
        context = manifest_context(metadata, group[0].partition_spec_id, group[0].content)
        commit_uuid = self._world.uuid()
        encoded = await self._encoded(group, metadata, context, commit_uuid)
        if not encoded:
            # Nothing but deleted entries, which later merges leave out with others.
            return None
        folder = metadata_folder(metadata.location, metadata.properties)
        rows = tuple(
            manifest_file(
                one,
                context,
                manifest_path=manifest_location(folder, commit_uuid, number),
                snapshot_id=0,
                sequence_number=0,
            )
            for number, one in enumerate(encoded)
        )
        await self._files.create(
            [
                NewObject(row.manifest_path, one.content)
                for row, one in zip(rows, encoded, strict=True)
            ]
        )
        log.info(
            "merge.finished",
            table=str(self._files.table),
            manifests=len(group),
            written=len(rows),
            files=sum(one.existing_files_count for one in encoded),
            bytes=sum(one.manifest_length for one in encoded),
            duration_s=round(self._world.monotonic_s() - started_s, 3),
        )
        return MergedManifests(branch, metadata.format_version, group, rows)

    async def _encoded(
        self,
        group: Sequence[ManifestFile],
        metadata: TableMetadata,
        context: ManifestContext,
        commit_uuid: UUID,
    ) -> list[EncodedManifest]:
        """Return what the group is merged to: manifests with live entries."""
        syncs = map(sync_marker, repeat(commit_uuid), count())
        weight = weight_bytes(group)
        if not is_clustered(metadata, group):
            merge = ManifestMerge(context)
            await self._add(merge, group, weight)
            encoded = await off_loop_if_large(weight, merge.finish, next(syncs))
            return [encoded] if encoded.existing_files_count else []
        async with self._clustering:
            clusters = ManifestClusters(context)
            await self._add(clusters, group, weight)
            target = target_bytes(metadata.properties)
            made = clusters.manifests(target, lambda: next(syncs))
            return await off_loop_if_large(weight, list, made)

    async def _add(self, merge: ManifestMerge, group: Sequence[ManifestFile], weight: int) -> None:
        for rows in _portions(group):
            contents = await asyncio.gather(*(self._read(row) for row in rows))
            await in_slices(weight, self._slices(merge, rows, contents))

    async def _read(self, row: ManifestFile) -> bytes:
        try:
            return await self._files.get(row.manifest_path)
        except (NotFoundError, ObjectTooLargeError):
            self._unreadable.add(row.manifest_path)
            raise

    def _slices(
        self, merge: ManifestMerge, rows: Sequence[ManifestFile], contents: Sequence[bytes]
    ) -> Iterator[None]:
        for row, content in zip(rows, contents, strict=True):
            try:
                yield from merge.add(row, content)
            except (InvalidMetadataError, UnsupportedError):
                # Left alone from now on, so that the others can be merged.
                self._unreadable.add(row.manifest_path)
                raise


def _paths(plan: CommitPlan) -> set[str]:
    return {path for merged in plan.upkeep.merged for path in merged.paths}


def _still_applies(merged: MergedManifests, state: TableState) -> bool:
    head = state.metadata.branch_head(merged.branch)
    rows = None if head is None else state.heads.get(head.snapshot_id)
    version = state.metadata.format_version
    return rows is None or bool(applicable_merges(Upkeep((merged,)), merged.branch, rows, version))


def _portions(group: Sequence[ManifestFile]) -> Iterator[list[ManifestFile]]:
    """Yield portions to read at once: neighbors, bounded in number and bytes, never empty."""
    portion: list[ManifestFile] = []
    size = 0
    for row in group:
        size += row.manifest_length
        if portion and (len(portion) == READS_AT_ONCE or size > READ_BYTES_AT_ONCE):
            yield portion
            portion, size = [], row.manifest_length
        portion.append(row)
    yield portion
