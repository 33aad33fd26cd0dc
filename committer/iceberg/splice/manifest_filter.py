"""Manifests without the files that a snapshot removes: those become DELETED, the others EXISTING.

Which files those are is decided elsewhere (`plan/file_changes/`). Source:
docs/reference/iceberg-notes.md 13.
"""

from __future__ import annotations

from committer.iceberg.avro.container import iter_raw_blocks, read_header
from committer.iceberg.manifest.manifest import naming
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.manifest.manifest_writer import ManifestContext
from committer.iceberg.splice.manifest_merge import ManifestMerge, Removal

# To look for a path in the bytes of all entries costs a tenth of stepping through them.
_PATHS_SEARCHED_MAX = 8


def filter_manifest(
    row: ManifestFile, content: bytes, context: ManifestContext, removal: Removal
) -> ManifestMerge | None:
    """Return a manifest without the files that a removal takes, to be finished; None if it lists
    none of them. Only entries of the removal's paths are decoded.

    Errors: those of `ManifestMerge.add`.
    """
    if not _may_list(row, content, removal.paths):
        return None
    merge = ManifestMerge(context, removal=removal)
    for _ in merge.add(row, content):
        pass
    return merge if merge.removed else None


def _may_list(row: ManifestFile, content: bytes, paths: frozenset[str]) -> bool:
    if len(paths) > _PATHS_SEARCHED_MAX:
        return True
    encoded = [path.encode() for path in paths]
    with naming(row):
        blocks = iter_raw_blocks(content, read_header(content))
        return any(path in raw for _, raw in blocks for path in encoded)
