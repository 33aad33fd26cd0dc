"""Counts what a commit adds to each partition, for snapshot summaries.

Only for tables that ask for it: by default no summary has it, and nothing is counted here.
Source: docs/reference/iceberg-notes.md 5.2.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from committer.iceberg.manifest.manifest import iter_entries
from committer.iceberg.metadata.property_values import positive
from committer.iceberg.schema.partition_spec import PartitionSpec, partition_path
from committer.iceberg.schema.schema import Schema
from committer.plan.batch.submitted_manifest import CheckedManifest

LIMIT_PROPERTY = "write.summary.partition-limit"
_INCLUDED = "partition-summaries-included"
_PREFIX = "partitions."


# In the order in which Java prints them.
_KEYS = ("added-data-files", "added-records", "added-files-size")
# By partition: how many files and records are added, and the bytes of the files.
Totals = Mapping[str, Counter[str]]


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
    totals: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for manifest in manifests:
        for partition, *added in _additions(manifest):
            path = partition_path(spec, schema, partition)
            totals[path].update(dict(zip(_KEYS, added, strict=True)))
    return dict(totals)


def _additions(manifest: CheckedManifest) -> Iterator[tuple[tuple[object, ...], int, int, int]]:
    """Yield partitions with what is added to each: files, records, bytes of the files."""
    walked = manifest.walked
    if len(walked.partitions) == 1:
        added = (walked.added_files_count, walked.added_rows_count, walked.added_size_bytes)
        yield walked.partitions[0], *added
        return
    for entry in iter_entries(manifest.part.content):
        file = entry.data_file
        yield file.partition, 1, file.record_count, file.file_size_in_bytes


def summarize_totals(found: Iterable[Totals | None], limit: int) -> dict[str, str]:
    """Return the entries of a summary for the totals of several manifests (`partition_entries`)."""
    totals: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in found:
        if one is None:
            return {}
        for path, added in one.items():
            totals[path].update(added)
    return partition_entries(
        {path: print_counts(added, _KEYS) for path, added in totals.items()}, limit
    )


def print_counts(counts: Counter[str], keys: Iterable[str]) -> str:
    """Print the counts of a partition that are not 0, in the order of these keys."""
    return ",".join(f"{key}={counts[key]}" for key in keys if counts[key])


def partition_entries(by_path: Mapping[str, str], limit: int) -> dict[str, str]:
    """Return a summary's entries for what each partition is said to have changed: none if more
    partitions than the limit have changed, or if only an unpartitioned spec was written to."""
    partitioned = {path: counts for path, counts in by_path.items() if path}
    if not partitioned or len(by_path) > limit:
        return {}
    entries = {f"{_PREFIX}{path}": counts for path, counts in partitioned.items()}
    return {_INCLUDED: "true", **entries}
