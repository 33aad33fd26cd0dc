"""The step of a batch that only adds files: its manifests are prepared once, and the branch's own
stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from committer.iceberg.manifest.manifest_writer import manifest_file
from committer.plan.batch.batch import PreparedManifest, Step
from committer.plan.batch.partition_totals import partition_limit, summarize_totals
from committer.plan.ledger.state import ListedManifest
from committer.plan.operations.head import Head
from committer.plan.operations.step_output import Produced, StepNames


def produce_append(
    head: Head, step: Step, prepared: Sequence[PreparedManifest], names: StepNames
) -> Produced:
    """Put the prepared manifests in front of the branch's."""
    limit = partition_limit(head.metadata.properties)
    rows = (
        manifest_file(
            manifest.encoded,
            manifest.context,
            manifest_path=manifest.location,
            snapshot_id=names.snapshot_id,
            sequence_number=names.sequence_number,
        )
        for manifest in prepared
    )
    return Produced(
        "append",
        (*(ListedManifest(b"", row) for row in rows), *head.manifests),
        _counts(step, len(prepared), len(head.manifests)),
        summarize_totals((one.totals for one in prepared), limit) if limit else {},
        tuple(manifest.written for manifest in prepared),
    )


def _counts(step: Step, created: int, kept: int) -> dict[str, int]:
    manifests = [manifest for checked in step.requests for manifest in checked.manifests]
    walked = [manifest.walked for manifest in manifests]
    partitions = {(one.spec_id, each) for one in manifests for each in one.walked.partitions}
    return {
        "manifests-created": created,
        "manifests-kept": kept,
        "manifests-replaced": 0,
        "added-data-files": sum(manifest.added_files_count for manifest in walked),
        "added-records": sum(manifest.added_rows_count for manifest in walked),
        "added-files-size": sum(manifest.added_size_bytes for manifest in walked),
        "changed-partition-count": len(partitions),
    }
