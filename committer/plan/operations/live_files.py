"""Finds files that a request adopts and that are live already: a path that is listed twice doubles
its rows, and such files have names that prove nothing.

Only requests that adopt files pay for the look-up. It reads the data manifests of the head that may
hold one of the files: those of other partition specs, and those whose partition summaries do not
exclude all of the request's partitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_list import ManifestFile, PartitionFieldSummary
from committer.iceberg.manifest.manifest_paths import NamedFile, iter_named_files
from committer.iceberg.manifest.partition_summary import summarize_partitions
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.values.locations import ComparableLocation, comparable_location
from committer.iceberg.values.single_value import decode_value
from committer.iceberg.values.types import DoubleType, FloatType, IcebergType, UUIDType
from committer.plan.batch.batch import schema_of_spec
from committer.plan.batch.submitted_manifest import CheckedManifest
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode
from committer.plan.operations.head import Head, TooMuchToReadError

_MayHold = Callable[[ManifestFile], bool]


@dataclass(frozen=True, slots=True)
class AddedFiles:
    """Files of one spec that are to be added: their paths, and each distinct partition."""

    spec_id: int
    paths: Sequence[str]
    partitions: Sequence[tuple[object, ...]]

    @classmethod
    def of(cls, manifest: CheckedManifest) -> AddedFiles:
        return cls(manifest.spec_id, manifest.walked.paths, manifest.walked.partitions)


def check_not_live(added: Sequence[AddedFiles], head: Head) -> Conflict | None:
    """Return the conflict of a request that adds a file which is live on this branch.

    Errors: `MissingObjectsError`; `InvalidMetadataError` for a manifest that cannot be read.
    """
    wanted = _Paths(path for files in added for path in files.paths)
    tests = _tests_by_spec(added, head.metadata)
    rows = [row for row in head.live_rows(ManifestContent.DATA) if _may_hold(row, tests)]
    try:
        contents = head.manifest_contents(rows)
    except TooMuchToReadError as error:
        return Conflict(ConflictCode.UNDECIDED, f"whether its files are live is not known: {error}")
    found = [
        file
        for row, content in zip(rows, contents, strict=True)
        for file in iter_named_files(content, row)
        if file.is_live and file.path in wanted
    ]
    return _conflict(found) if found else None


def _conflict(found: Sequence[NamedFile]) -> Conflict:
    paths = tuple(file.path for file in found[:PATHS_MAX])
    shown = ", ".join(f"`{path}`" for path in paths)
    more = f" and {len(found) - len(paths)} more" if len(found) > len(paths) else ""
    return Conflict(
        ConflictCode.ALREADY_LIVE,
        f"{len(found)} of its files {'is' if len(found) == 1 else 'are'} live already, the first"
        f" since snapshot {found[0].snapshot_id}: {shown}{more}",
        found[0].snapshot_id,
        paths,
    )


class _Paths:
    """Paths in every spelling. Most that are asked for are told apart by their plain names."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._locations: set[ComparableLocation] = {comparable_location(path) for path in paths}
        self._names = {_name(one.path) for one in self._locations}

    def __contains__(self, path: str) -> bool:
        name = _name(path)
        if "%" not in name and name.isascii() and name not in self._names:
            return False
        return comparable_location(path) in self._locations


def _name(path: str) -> str:
    return path[path.rfind("/") + 1 :]


# --- Which manifests may hold them ---------------------------------------------------------------


def _may_hold(row: ManifestFile, tests: Mapping[int, _MayHold]) -> bool:
    test = tests.get(row.partition_spec_id)
    return test is None or test(row)


def _tests_by_spec(added: Sequence[AddedFiles], metadata: TableMetadata) -> dict[int, _MayHold]:
    """Return, for each spec of the files, the test whether a manifest may hold one of them."""
    partitions: dict[int, list[tuple[object, ...]]] = defaultdict(list)
    for files in added:
        partitions[files.spec_id] += files.partitions
    return {spec_id: _test(spec_id, found, metadata) for spec_id, found in partitions.items()}


def _test(
    spec_id: int, partitions: Sequence[tuple[object, ...]], metadata: TableMetadata
) -> _MayHold:
    spec = metadata.spec_by_id(spec_id)
    kind = partition_type(spec, schema_of_spec(spec, metadata))
    kinds = [field.field_type for field in kind.fields]
    own = summarize_partitions(kind, partitions)

    def may_hold(row: ManifestFile) -> bool:
        if row.partitions is None or len(row.partitions) != len(own):
            return True
        return all(map(_overlap, kinds, own, row.partitions))

    return may_hold


def _overlap(kind: IcebergType, own: PartitionFieldSummary, listed: PartitionFieldSummary) -> bool:
    """Return whether a value of this field may be in both."""
    if own.contains_null and listed.contains_null:
        return True
    if isinstance(kind, FloatType | DoubleType | UUIDType):
        return True  # NaN and signs, and an order of halves
    if own.lower_bound is None or own.upper_bound is None:
        return False  # nulls only
    if listed.lower_bound is None or listed.upper_bound is None:
        return False
    own_low, own_high = _decoded(kind, own.lower_bound), _decoded(kind, own.upper_bound)
    low, high = _decoded(kind, listed.lower_bound), _decoded(kind, listed.upper_bound)
    return bool(own_low <= high and low <= own_high)


def _decoded(kind: IcebergType, bound: bytes) -> Any:
    return decode_value(kind, bound)
