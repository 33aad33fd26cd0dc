"""Reads of manifests by the searches that maintenance works on. Reads are asked for as in
`reachability.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.entry.drafts import Head
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.scan.entry_reader import FileFilter, iter_matching_files
from committer.plan.cleanup.reachability import Reading

_EVERY_FILE = FileFilter(lambda _: ALWAYS_TRUE)


def read_manifests(rows: Sequence[ManifestFile]) -> Reading[list[bytes]]:
    """Return the bytes of these manifests, in this order.

    Errors: `InvalidMetadataError` for one that is not there.
    """
    contents = yield [row.manifest_path for row in rows]
    found: list[bytes] = []
    for row, content in zip(rows, contents, strict=True):
        if content is None:
            raise InvalidMetadataError(f"{row.manifest_path}: the manifest is not there")
        found.append(content)
    return found


def live_data_files(
    content: bytes, row: ManifestFile, metadata: TableMetadata
) -> Iterator[tuple[Head, DataFile]]:
    """Yield the live files of a manifest, without metrics, each with what its entry says beside it.

    Errors: `InvalidMetadataError` for a manifest that is not what its row says.
    """
    spec = metadata.spec_by_id(row.partition_spec_id)
    for head, file, _ in iter_matching_files(content, row, spec, _EVERY_FILE):
        yield head, file
