"""Finds files that a request adopts and that are live already: a path that is listed twice doubles
its rows, and such files have names that prove nothing.

Only requests that adopt files pay for the look-up. It reads the data manifests of the head that may
hold one of the files: those of other partition specs, and those whose partition summaries do not
exclude all of the request's partitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.manifest.manifest_paths import NamedFile, iter_named_files
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.values.locations import ComparableLocation, comparable_location
from committer.plan.batch.submitted_manifest import CheckedManifest
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode
from committer.plan.operations.head import Head, TooMuchToReadError, may_hold_any

# A request of more partitions looks into all manifests: comparing each with each takes 2 us.
_PARTITIONS_MAX = 1_000


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
    partitions = _partitions_by_spec(added)
    rows = [
        row
        for row in head.live_rows(ManifestContent.DATA)
        if _may_hold(head.metadata, row, partitions.get(row.partition_spec_id))
    ]
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
    return _conflict(found, added) if found else None


def _conflict(found: Sequence[NamedFile], added: Sequence[AddedFiles]) -> Conflict:
    paths = tuple(file.path for file in found[:PATHS_MAX])
    spelled = {path for files in added for path in files.paths}
    shown = ", ".join(
        f"`{path}`" if path in spelled else f"`{path}` (in another spelling)" for path in paths
    )
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


def _partitions_by_spec(added: Sequence[AddedFiles]) -> dict[int, set[tuple[object, ...]]]:
    partitions: dict[int, set[tuple[object, ...]]] = defaultdict(set)
    for files in added:
        partitions[files.spec_id].update(files.partitions)
    return partitions


def _may_hold(
    metadata: TableMetadata, row: ManifestFile, partitions: Collection[tuple[object, ...]] | None
) -> bool:
    """Return whether a manifest may hold a file of these partitions; None: they are of another
    spec."""
    if partitions is None or len(partitions) > _PARTITIONS_MAX:
        return True
    return may_hold_any(metadata, row, partitions)
