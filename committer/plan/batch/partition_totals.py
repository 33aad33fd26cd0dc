"""Counts what a commit adds to each partition, for snapshot summaries.

Only for tables that ask for it: by default no summary has it, and nothing is counted here.
Source: docs/reference/iceberg-notes.md 5.2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from committer.iceberg.manifest.manifest import iter_entries
from committer.iceberg.schema.partition_spec import PartitionSpec, partition_path
from committer.iceberg.schema.schema import Schema
from committer.plan.batch.manifest_size import positive
from committer.plan.batch.submitted_manifest import CheckedManifest

LIMIT_PROPERTY = "write.summary.partition-limit"
_INCLUDED = "partition-summaries-included"
_PREFIX = "partitions."


@dataclass(frozen=True, slots=True)
class Added:
    """The additions to one partition. `size_bytes`: of the files."""

    files: int
    records: int
    size_bytes: int

    def plus(self, other: Added) -> Added:
        return Added(
            self.files + other.files,
            self.records + other.records,
            self.size_bytes + other.size_bytes,
        )

    def __str__(self) -> str:
        counts = {
            "added-data-files": self.files,
            "added-records": self.records,
            "added-files-size": self.size_bytes,
        }
        return ",".join(f"{key}={count}" for key, count in counts.items() if count)


_NOTHING = Added(0, 0, 0)
Totals = Mapping[str, Added]


def partition_limit(properties: Mapping[str, str]) -> int:
    """Return the largest number of changed partitions that a summary lists; 0: none."""
    return positive(properties, LIMIT_PROPERTY, 0)


def count_partitions(
    manifests: Sequence[CheckedManifest], spec: PartitionSpec, schema: Schema, limit: int
) -> Totals | None:
    """Count the additions of manifests of one spec by partition path; None for more than `limit`.

    Cost: manifests of several partitions are decoded.
    """
    if len({repr(one) for manifest in manifests for one in manifest.walked.partitions}) > limit:
        return None
    totals: defaultdict[str, Added] = defaultdict(lambda: _NOTHING)
    for manifest in manifests:
        for partition, added in _additions(manifest):
            path = partition_path(spec, schema, partition)
            totals[path] = totals[path].plus(added)
    return dict(totals)


def _additions(manifest: CheckedManifest) -> Iterator[tuple[tuple[object, ...], Added]]:
    walked = manifest.walked
    if len(walked.partitions) == 1:
        added = (walked.added_files_count, walked.added_rows_count, walked.added_size_bytes)
        yield walked.partitions[0], Added(*added)
        return
    for entry in iter_entries(manifest.part.content):
        file = entry.data_file
        yield file.partition, Added(1, file.record_count, file.file_size_in_bytes)


def summarize_totals(found: Iterable[Totals | None], limit: int) -> dict[str, str]:
    """Return the entries of a summary for the totals of several manifests (`partition_entries`)."""
    totals: defaultdict[str, Added] = defaultdict(lambda: _NOTHING)
    for one in found:
        if one is None:
            return {}
        for path, added in one.items():
            totals[path] = totals[path].plus(added)
    return partition_entries({path: str(added) for path, added in totals.items()}, limit)


def partition_entries(by_path: Mapping[str, str], limit: int) -> dict[str, str]:
    """Return a summary's entries for what each partition is said to have changed: none if more
    partitions than the limit have changed, or if only an unpartitioned spec was written to."""
    partitioned = {path: counts for path, counts in by_path.items() if path}
    if not partitioned or len(by_path) > limit:
        return {}
    entries = {f"{_PREFIX}{path}": counts for path, counts in partitioned.items()}
    return {_INCLUDED: "true", **entries}
