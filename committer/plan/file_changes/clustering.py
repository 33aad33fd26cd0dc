"""Manifests of data written anew in the order of partitions: the operation `rewrite-manifests`.

No file is added or removed. Manifests of deletes stay as they are, unless they are named.
Source: docs/reference/iceberg-notes.md 13.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from committer.errors import InvariantError
from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.splice.manifest_clusters import ManifestClusters
from committer.plan.batch.batch import manifest_context
from committer.plan.batch.manifest_size import target_bytes
from committer.plan.file_changes.new_manifests import NewManifests
from committer.plan.ledger.state import ListedManifest
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode
from committer.plan.operations.head import Head
from committer.plan.operations.step_output import Produced, StepNames

# Of manifests that are written anew at once: their entries take some ten times as much, inflated.
_BYTES_MAX = 64 * 1024 * 1024


def cluster_manifests(
    head: Head, names: StepNames, named: frozenset[str] = frozenset()
) -> Produced | Conflict:
    """Return the branch with its data manifests clustered by partition, near the table's target
    size of manifests. `named`: the paths of those to take, of data and of deletes; empty: all of
    data, or of more than fit into memory the smallest, so that the next rewrite goes on.

    A conflict: the head does not list a named one, or they do not fit into memory.
    Errors: `MissingObjectsError`; those of reading manifests.
    """
    rows = _named(head, named) if named else _chosen(head)
    if isinstance(rows, Conflict):
        return rows
    contents = head.manifest_contents(rows)
    new = NewManifests(head.metadata, names)
    by_spec: defaultdict[tuple[int, int], list[tuple[ManifestFile, bytes]]] = defaultdict(list)
    for row, content in zip(rows, contents, strict=True):
        by_spec[row.content, row.partition_spec_id].append((row, content))
    written = [one for _, found in sorted(by_spec.items()) for one in _clustered(head, new, found)]
    replaced = {row.manifest_path for row in rows}
    kept = [
        one
        for one in head.manifests
        if one.row.manifest_path not in replaced and one.row.has_live_files
    ]
    listed = [*written, *kept]
    data = [one for one in listed if one.row.content == ManifestContent.DATA]
    deletes = [one for one in listed if one.row.content == ManifestContent.DELETES]
    counts = {
        "manifests-created": len(written),
        "manifests-kept": len(kept),
        "manifests-replaced": len(replaced),
        "entries-processed": sum(one.row.existing_files_count or 0 for one in written),
        "changed-partition-count": 0,
    }
    return Produced("replace", (*data, *deletes), counts, {}, tuple(new.objects))


def _named(head: Head, named: frozenset[str]) -> list[ManifestFile] | Conflict:
    listed = {one.row.manifest_path: one.row for one in head.manifests}
    missing = tuple(sorted(named - listed.keys())[:PATHS_MAX])
    if missing:
        return Conflict(
            ConflictCode.MISSING,
            f"manifests that it rewrites are not of branch `{head.branch}` any more:"
            f" {', '.join(missing)}",
            paths=missing,
        )
    rows = [row for path, row in listed.items() if path in named and row.has_live_files]
    size_bytes = sum(row.manifest_length for row in rows)
    if size_bytes > _BYTES_MAX:
        return Conflict(
            ConflictCode.UNDECIDED,
            f"manifests that it rewrites have {size_bytes} bytes, and at most {_BYTES_MAX} are"
            " rewritten at once: name fewer",
        )
    return rows


def _chosen(head: Head) -> list[ManifestFile]:
    rows = head.live_rows(ManifestContent.DATA)
    left, chosen = _BYTES_MAX, set[str]()
    for row in sorted(rows, key=lambda row: row.manifest_length):
        left -= row.manifest_length
        if left >= 0 or not chosen:
            chosen.add(row.manifest_path)
    return [row for row in rows if row.manifest_path in chosen]


def _clustered(
    head: Head, new: NewManifests, manifests: Sequence[tuple[ManifestFile, bytes]]
) -> Iterator[ListedManifest]:
    first_row = manifests[0][0]
    context = manifest_context(head.metadata, first_row.partition_spec_id, first_row.content)
    clusters = ManifestClusters(context)
    for row, content in manifests:
        clusters.add_all(row, content)
    first = _first_row_id([row for row, _ in manifests])
    size_bytes = target_bytes(head.metadata.properties)
    expected = [row.live_files_count for row, _ in manifests]
    files = 0
    for encoded in clusters.manifests(size_bytes, new.sync):
        listed = new.listed(encoded, context)
        files += encoded.existing_files_count
        yield replace(listed, row=replace(listed.row, first_row_id=first))
    if None not in expected and files != sum(count or 0 for count in expected):
        raise InvariantError(f"{files} files in clustered manifests, expected {expected}")


def _first_row_id(rows: Sequence[ManifestFile]) -> int | None:
    """Return a first row id for manifests whose entries have ids of their own, so that no id is
    used up; None if some have none yet, and are to get them."""
    ids = [row.first_row_id for row in rows]
    return None if None in ids else ids[0]
