"""Manifests without the files that a snapshot removes: those become DELETED, the others EXISTING.

Which files those are is decided elsewhere (`plan/operations/`). Source:
docs/reference/iceberg-notes.md 7.
"""

from __future__ import annotations

from dataclasses import replace

from committer.iceberg.entry.data_file import ManifestEntry
from committer.iceberg.manifest.manifest import EncodedManifest, ManifestContext, manifest_file
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.splice.manifest_merge import ManifestMerge, Removal


def find_removed(
    row: ManifestFile, content: bytes, context: ManifestContext, removal: Removal
) -> list[ManifestEntry]:
    """Return the entries that a removal takes of a manifest, with all that they inherit.

    Only entries of the removal's paths are decoded. Errors: those of `ManifestMerge.add`.
    """
    return _merged(row, content, context, removal, "null").removed


def filter_manifest(
    row: ManifestFile, content: bytes, context: ManifestContext, removal: Removal, sync: bytes
) -> EncodedManifest:
    """Return a manifest without the files that a removal takes. Errors: as `find_removed`."""
    return _merged(row, content, context, removal, "deflate").finish(sync)


def _merged(
    row: ManifestFile, content: bytes, context: ManifestContext, removal: Removal, codec: str
) -> ManifestMerge:
    merge = ManifestMerge(context, codec=codec, removal=removal)
    for _ in merge.add(row, content):
        pass
    return merge


def filtered_row(
    old: ManifestFile,
    encoded: EncodedManifest,
    context: ManifestContext,
    *,
    manifest_path: str,
    snapshot_id: int,
    sequence_number: int,
) -> ManifestFile:
    """Return the row of a filtered manifest. It keeps the old first row id: its entries have ids of
    their own, so no id is used up."""
    row = manifest_file(
        encoded,
        context,
        manifest_path=manifest_path,
        snapshot_id=snapshot_id,
        sequence_number=sequence_number,
    )
    return replace(row, first_row_id=old.first_row_id)
