"""The summary of a commit's snapshot. `iceberg/metadata/summary.py` has the form of summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from committer.iceberg.metadata.summary import append_summary
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.batch.batch import Batch, PreparedManifest
from committer.plan.batch.partition_totals import partition_limit, summarize_totals
from committer.plan.cleanup.maintenance import MergedManifest
from committer.plan.ledger.evidence import COUNT_KEY
from committer.plan.ledger.state import ListedManifest


@dataclass(frozen=True, slots=True)
class ManifestCounts:
    """Return the summary's counts of manifests. The commit that lists a merged one creates it."""

    created: int
    kept: int
    replaced: int

    @classmethod
    def of(
        cls,
        prepared: Sequence[PreparedManifest],
        carried: Sequence[ListedManifest],
        merges: Sequence[MergedManifest],
    ) -> ManifestCounts:
        replaced = sum(len(merged.replaced) for merged in merges)
        return cls(len(prepared) + len(merges), len(carried) - replaced, replaced)


def _told(
    metadata: TableMetadata, batch: Batch, prepared: Sequence[PreparedManifest], version: str
) -> dict[str, str]:
    """Return the summary's entries beside its counts: the engine's name, as Java writes it."""
    engine = {"engine-name": "frazil", "engine-version": version}
    limit = partition_limit(metadata.properties)
    totals = summarize_totals((one.totals for one in prepared), limit) if limit else {}
    return {
        COUNT_KEY: str(len(batch.requests)),
        **{key: text for key, text in engine.items() if text},
        **totals,
    }


def commit_summary(
    metadata: TableMetadata,
    batch: Batch,
    prepared: Sequence[PreparedManifest],
    counts: ManifestCounts,
    engine_version: str,
) -> dict[str, str]:
    """Return the summary of the snapshot that lands a batch.
    `engine_version`: this release; empty: not recorded.
    """
    head = metadata.branch_head(batch.branch)
    walked = [manifest.walked for checked in batch.requests for manifest in checked.manifests]
    partitions = {
        (manifest.spec_id, partition)
        for checked in batch.requests
        for manifest in checked.manifests
        for partition in manifest.walked.partitions
    }
    return append_summary(
        head.summary if head else None,
        added_data_files=sum(manifest.added_files_count for manifest in walked),
        added_records=sum(manifest.added_rows_count for manifest in walked),
        added_files_size=sum(manifest.added_size_bytes for manifest in walked),
        changed_partition_count=len(partitions),
        manifests_created=counts.created,
        manifests_kept=counts.kept,
        manifests_replaced=counts.replaced,
        extra=_told(metadata, batch, prepared, engine_version),
    )
