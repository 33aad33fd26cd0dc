"""Which files a manifest names, and what it says about each: what clean-up needs, and no more.

Statistics are stepped over, partition values are not looked at: any writer's manifest can be read
without the table's schema. Source: the specification, "Manifests"; format.md 8.4 and 8.6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from committer.errors import InvalidMetadataError
from committer.iceberg.avro_container import iter_raw_blocks, read_header
from committer.iceberg.avro_decoder import decode_record, record_decoder
from committer.iceberg.data_file import ManifestEntryStatus
from committer.iceberg.manifest_list import ManifestFile

_STATUS = dict(enumerate(ManifestEntryStatus))
_PUFFIN = "PUFFIN"


@dataclass(frozen=True, slots=True)
class NamedFile:
    """One entry: the file's path and what the snapshot did with it.

    `is_shared`: the file may hold deletion vectors of other entries too.
    """

    path: str
    status: ManifestEntryStatus
    snapshot_id: int
    is_shared: bool

    @property
    def is_live(self) -> bool:
        return self.status != ManifestEntryStatus.DELETED


def iter_named_files(buf: bytes, row: ManifestFile) -> Iterator[NamedFile]:
    """The entries of a manifest; `row` is its row in a manifest list.

    Errors: `InvalidMetadataError`; `UnsupportedError` for a codec.
    """
    header = read_header(buf)
    decoder = record_decoder(header.metadata["avro.schema"])
    for block, raw in iter_raw_blocks(buf, header):
        position = 0
        for _ in range(block.count):
            record, position = decode_record(decoder, raw, position)
            yield _named(record.get(0), record.get(1), record.get(2), row)
        if position != len(raw):
            raise InvalidMetadataError(f"{row.manifest_path}: bytes behind a block's last entry")


def _named(status: object, snapshot_id: object, file: object, row: ManifestFile) -> NamedFile:
    if not isinstance(status, int) or status not in _STATUS or not isinstance(file, dict):
        raise InvalidMetadataError(f"{row.manifest_path}: an entry without status or file")
    path, file_format = file.get(100), file.get(101)
    if not isinstance(path, str) or not path or not isinstance(file_format, str):
        raise InvalidMetadataError(f"{row.manifest_path}: an entry without path or format")
    by = snapshot_id if isinstance(snapshot_id, int) else row.added_snapshot_id
    return NamedFile(path, _STATUS[status], by, file_format.upper() == _PUFFIN)
