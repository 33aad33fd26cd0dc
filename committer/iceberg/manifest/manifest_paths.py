"""Reads the paths of a manifest's files, and the facts about each that clean-up needs.

Statistics are stepped over; any writer's manifest can be read without the table's schema.
Source: the specification, "Manifests"; docs/reference/iceberg-notes.md 6.4, 6.6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.container import Header, iter_raw_blocks, read_header
from committer.iceberg.avro.decoder import Record, decode_record, record_decoder
from committer.iceberg.entry.data_file import ManifestEntryStatus
from committer.iceberg.manifest.manifest import manifest_schema, manifest_spec, naming
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.manifest.manifest_row import RowCheck

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
    """Yield the entries of a manifest; `row` is its row in a manifest list.

    Errors: `InvalidMetadataError`, also where it does not hold what its row says, so that none is
    deleted by a manifest that is misread; `UnsupportedError` for a codec.
    """
    with naming(row):
        header = read_header(buf)
        reader = _Reader(header, row)
        for block, raw in iter_raw_blocks(buf, header):
            yield from reader.read_block(raw, block.count)
        reader.finish()


class _Reader:
    """Reads the blocks of one manifest."""

    def __init__(self, header: Header, row: ManifestFile) -> None:
        spec = manifest_spec(header)
        self._row, self._check = row, RowCheck(row, spec, manifest_schema(header))
        self._decoder = record_decoder(header.metadata["avro.schema"])
        self._partition_ids = tuple(field.field_id for field in spec.fields)
        self._partition: object = None
        self._files, self._rows = [0, 0, 0], [0, 0, 0]

    def read_block(self, raw: bytes, count: int) -> Iterator[NamedFile]:
        position = 0
        for _ in range(count):
            record, position = decode_record(self._decoder, raw, position)
            yield self._named(record.get(0), record.get(1), record.get(2))
        if position != len(raw):
            raise InvalidMetadataError("bytes behind a block's last entry")

    def finish(self) -> None:
        self._check.check_counts(self._files, self._rows)

    def _named(self, status: object, snapshot_id: object, file: object) -> NamedFile:
        if not isinstance(status, int) or status not in _STATUS or not isinstance(file, dict):
            raise InvalidMetadataError("an entry without status or file")
        path, file_format = file.get(100), file.get(101)
        if not isinstance(path, str) or not path or not isinstance(file_format, str):
            raise InvalidMetadataError("an entry without path or format")
        self._compare(status, file)
        by = snapshot_id if isinstance(snapshot_id, int) else self._row.added_snapshot_id
        return NamedFile(path, _STATUS[status], by, file_format.upper() == _PUFFIN)

    def _compare(self, status: int, file: Record) -> None:
        partition, count, size = file.get(102), file.get(103), file.get(104)
        if not isinstance(partition, dict):
            raise InvalidMetadataError("an entry without partition")
        if not isinstance(count, int) or count < 0 or not isinstance(size, int) or size < 0:
            raise InvalidMetadataError("an entry without a record count and size, or negative ones")
        if partition != self._partition:
            self._partition = partition
            self._check.check_partition([partition.get(one) for one in self._partition_ids])
        self._files[status] += 1
        self._rows[status] += count
