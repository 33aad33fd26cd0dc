"""A maintenance task that rewrites files: by a request, which lands like that of any producer.

The request is checked against the head as it is by then, and planned again after a lost race; in
conflict it ends, and the task looks again. A task has one outstanding at a time. One that a process
leaves behind lands with the next, or is in conflict with what that has asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from committer.iceberg.metadata.snapshot import Snapshot
from committer.ledger_entry import UPKEEP_PREFIX
from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.commit.commit import CommitPlan
from committer.plan.ledger.state import TableState
from committer.plan.operations.change import RemovedDelete
from committer.ports.world import World
from committer.request.commit_request import CommitRequest
from committer.request.needs import Needs, RemovedDeleteFile
from committer.request.request_format import InlineManifest
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics, UpkeepKind
from committer.service.upkeep.own_requests import Author, OwnRequests
from committer.service.upkeep.table_files import TableFiles

_AUTHOR = Author(UPKEEP_PREFIX, "upkeep of the table", "upkeep")


class RewritingTask:
    """A task that rewrites files of one table, and its outstanding request."""

    kind: UpkeepKind

    def __init__(
        self, files: TableFiles, requests: OwnRequests, world: World, metrics: Metrics
    ) -> None:
        self._files, self._requests = files, requests
        self._world, self._metrics = world, metrics
        self._key: str | None = None
        self._count = 0

    def offer(self, upkeep: Upkeep) -> Upkeep:
        """Add nothing: the results are requests."""
        return upkeep

    def landed(self, plan: CommitPlan) -> None:
        """Count what the request did, if this commit holds it."""
        if self._key is not None and self._key in plan.landed:
            self._key = None
            self._metrics.upkeep_done(self._files.table, self.kind, self._count)

    def _draft(
        self, state: TableState, branch: str, head: Snapshot, removed: Iterable[RemovedDelete]
    ) -> CommitRequest:
        """Return a rewrite of files that rests on this head, and removes these delete files."""
        needs = Needs(
            base_snapshot_id=head.snapshot_id,
            base_sequence_number=head.sequence_number,
            on_conflict="fail",
            removed_delete_files=tuple(map(_named, removed)),
        )
        return self._requests.draft(
            _AUTHOR, state.table, operation="rewrite-files", branch=branch, needs=needs
        )

    async def _publish(
        self, request: CommitRequest, manifests: Sequence[InlineManifest] = ()
    ) -> None:
        """Return once it is durable. Errors: as `OwnRequests.publish`."""
        await self._requests.publish(request, manifests)
        self._key, self._count = request.inbox_key, len(request.needs.removed_delete_files)
        log.info(
            "upkeep.published",
            table=str(self._files.table),
            kind=self.kind,
            deletes=self._count,
            producer=request.producer.id,
        )

    async def _is_outstanding(self) -> bool:
        """Return whether the request waits for a commit still."""
        if self._key is not None and not await self._requests.inbox.contains(self._key):
            self._key = None
        return self._key is not None


def _named(removed: RemovedDelete) -> RemovedDeleteFile:
    return RemovedDeleteFile(
        file_path=removed.file_path,
        content_offset=removed.content_offset,
        content_size_in_bytes=removed.content_size_in_bytes,
    )
