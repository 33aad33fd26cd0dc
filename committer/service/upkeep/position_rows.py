"""Reads the rows of position delete files: Parquet by pyarrow, which may be absent, and Avro."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
import pyarrow.parquet as pq

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.container import iter_raw_blocks, read_header
from committer.iceberg.avro.decoder import decode_record, record_decoder
from committer.iceberg.deletes.deletion_vector import POSITION_MAX, DeletionVector
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION

_PATH, _POSITION = DELETE_FILE_PATH.name, DELETE_FILE_POSITION.name


def read_position_rows(file: DataFile, content: bytes) -> dict[str, DeletionVector]:
    """Return the positions that a file deletes, of each data file that it names.

    Errors: `InvalidMetadataError` for a file that is not one of position deletes.
    """
    is_avro = file.file_format.upper() == "AVRO"
    try:
        rows = _of_avro(content) if is_avro else _of_parquet(content)
    except (pa.ArrowException, KeyError, InvalidMetadataError) as error:
        raise InvalidMetadataError(f"{file.file_path}: {error}") from error
    found = {}
    for path, positions in rows.items():
        if None in (path, *positions) or min(positions) < 0 or max(positions) > POSITION_MAX:
            raise InvalidMetadataError(f"{file.file_path}: positions that no row of {path} has")
        found[path] = DeletionVector(positions)
    return found


def _of_parquet(content: bytes) -> dict[str, list[int]]:
    columns = pq.read_table(pa.BufferReader(content), columns=[_PATH, _POSITION])
    grouped = columns.group_by(_PATH).aggregate([(_POSITION, "list")])
    paths = grouped.column(_PATH).to_pylist()
    return dict(zip(paths, grouped.column(f"{_POSITION}_list").to_pylist(), strict=True))


def _of_avro(content: bytes) -> dict[str, list[int]]:
    header = read_header(content)
    decoder = record_decoder(header.metadata["avro.schema"])
    found: defaultdict[str, list[int]] = defaultdict(list)
    for block, raw in iter_raw_blocks(content, header):
        place = 0
        for _ in range(block.count):
            record, place = decode_record(decoder, raw, place)
            path, position = (
                record[DELETE_FILE_PATH.field_id],
                record[DELETE_FILE_POSITION.field_id],
            )
            if not isinstance(path, str) or not isinstance(position, int):
                raise InvalidMetadataError("not a file of position deletes")
            found[path].append(position)
    return found
