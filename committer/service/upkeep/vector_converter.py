"""Puts deletion vectors in the place of position deletes, on the main branch of a table that was
upgraded to version 3.

`plan/cleanup/position_conversion.py` decides, a bounded round at a time. The Puffin file of a round
is written first, then a request adds its vectors and removes the delete files. It is planned like a
writer's: a vector that was added meanwhile is united with it, and one of a data file that has gone
is in conflict. A conflict leaves the Puffin file to the orphan search.
"""

from __future__ import annotations

from collections import defaultdict
from importlib.util import find_spec

from committer.iceberg.deletes.deletion_vector_file import encode_deletion_vectors
from committer.iceberg.entry.data_file import DataFile, ManifestContent
from committer.iceberg.manifest.manifest_list import live_manifests
from committer.iceberg.manifest.manifest_writer import encode_additions
from committer.iceberg.metadata.snapshot import MAIN
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.values.locations import data_folder
from committer.plan.batch.batch import manifest_context, sync_marker
from committer.plan.cleanup.position_conversion import (
    Conversion,
    converts_positions,
    find_conversion,
)
from committer.plan.ledger.state import TableState
from committer.ports.storage import NewObject
from committer.ports.world import World
from committer.request.commit_request import CommitRequest
from committer.request.request_format import InlineManifest
from committer.service.tasks.steps import OFF_LOOP_BYTES, selecting_bytes
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics, UpkeepKind
from committer.service.upkeep.own_requests import OwnRequests
from committer.service.upkeep.rewriting_task import RewritingTask
from committer.service.upkeep.table_files import TableFiles

ROUND_INTERVAL_S = 10.0
# After a round that found nothing to convert, in manifests that list what cannot be read.
IDLE_INTERVAL_S = 600.0
_CREATED_BY = "Frazil"


class VectorConverter(RewritingTask):
    """The maintenance task that converts position deletes; one for each table committer."""

    kind = UpkeepKind.CONVERT_POSITION_DELETES

    def __init__(
        self, files: TableFiles, requests: OwnRequests, world: World, metrics: Metrics
    ) -> None:
        super().__init__(files, requests, world, metrics)
        self._converted: set[str] = set()
        self._round_at_s = 0.0
        self._left_alone = ""

    def is_due(self, state: TableState, branch: str) -> bool:
        """Return whether manifests of deletes have come that may list position deletes. A long list
        is not looked through in each round.
        """
        if branch != MAIN or not converts_positions(state.metadata):
            return False
        now_s = self._world.monotonic_s()
        if now_s < self._round_at_s:
            return False
        rows = live_manifests(state.head_rows(branch), ManifestContent.DELETES)
        if any(row.manifest_path not in self._converted for row in rows):
            return True
        if selecting_bytes(state, branch) >= OFF_LOOP_BYTES:
            self._round_at_s = now_s + ROUND_INTERVAL_S
        return False

    async def work(self, state: TableState, branch: str) -> None:
        """Convert a round of them."""
        self._round_at_s = self._world.monotonic_s() + ROUND_INTERVAL_S
        head = state.metadata.branch_head(branch)
        if find_spec("pyarrow") is None:
            self._leave_alone("pyarrow is not installed")
            return
        if head is None or await self._is_outstanding():
            return
        # Only here, as it needs pyarrow.
        from committer.service.upkeep.position_rows import read_position_rows

        rows = state.head_rows(branch)
        self._converted &= {row.manifest_path for row in rows}
        found = await self._files.answer(
            find_conversion(state.metadata, rows, self._converted, read_position_rows)
        )
        if found.left_alone:
            self._leave_alone(f"{found.left_alone} delete files are ORC, encrypted or too many")
        if not found.removed:
            self._round_at_s += IDLE_INTERVAL_S
        else:
            draft = self._draft(state, branch, head, found.removed)
            added = await self._write(found, state.metadata, draft)
            await self._publish(draft, added)

    def _leave_alone(self, reason: str) -> None:
        """Log why position deletes stay, once for each reason."""
        if reason != self._left_alone:
            self._left_alone = reason
            log.warning("position_deletes.left_alone", table=str(self._files.table), reason=reason)

    async def _write(
        self, found: Conversion, metadata: TableMetadata, draft: CommitRequest
    ) -> list[InlineManifest]:
        """Write the Puffin file, and return the manifests of its vectors."""
        if not found.vectors:
            return []
        folder = data_folder(metadata.location, metadata.properties)
        path = f"{folder}/deletes-{draft.attempt}.puffin"
        encoded = encode_deletion_vectors(found.vectors, file_path=path, created_by=_CREATED_BY)
        await self._files.create([NewObject(path, encoded.content)])
        by_spec: defaultdict[int, list[DataFile]] = defaultdict(list)
        for file in encoded.delete_files:
            by_spec[file.spec_id].append(file)
        return [_manifest(metadata, spec_id, each, draft) for spec_id, each in by_spec.items()]


def _manifest(
    metadata: TableMetadata, spec_id: int, files: list[DataFile], draft: CommitRequest
) -> InlineManifest:
    context = manifest_context(metadata, spec_id, ManifestContent.DELETES)
    encoded = encode_additions(files, context, sync=sync_marker(draft.attempt, spec_id))
    return InlineManifest(
        encoded.content, "deletes", spec_id, encoded.added_files_count, encoded.added_rows_count
    )
