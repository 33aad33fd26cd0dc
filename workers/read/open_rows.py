"""Opens data files and delete files of any format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from committer.errors import InvalidMetadataError, NotFoundError, UnsupportedError
from committer.iceberg.entry.data_file import DataFile
from workers.read.formats.avro_rows import AvroRows
from workers.read.formats.orc_rows import OrcRows
from workers.read.formats.parquet_rows import ParquetRows
from workers.read.formats.stored_rows import StoredRows

# Opens the file of a location for ranged reads; `FileNotFoundError` if it is not there.
OpenFile = Callable[[str], pa.NativeFile]

_FORMATS: dict[str, Callable[[pa.NativeFile], StoredRows]] = {
    "PARQUET": ParquetRows,
    "ORC": OrcRows,
    "AVRO": AvroRows,
}


@contextmanager
def opened_rows(file: DataFile, open_file: OpenFile) -> Iterator[StoredRows]:
    """Open a file of rows for as long as the block runs. Errors: as `opened_file`;
    `UnsupportedError` for another format."""
    opener = _FORMATS.get(file.file_format.upper())
    if opener is None:
        raise UnsupportedError(f"{file.file_path}: a file of the format {file.file_format}")
    with opened_file(file, open_file) as source:
        yield opener(source)


@contextmanager
def opened_file(file: DataFile, open_file: OpenFile) -> Iterator[pa.NativeFile]:
    """Open the bytes of a file for as long as the block runs.

    Errors, also of reading in the block: `NotFoundError`; `InvalidMetadataError` for what cannot be
    read, with the file's path; `UnsupportedError` for an encrypted file; `OSError`.
    """
    if file.key_metadata is not None:
        raise UnsupportedError(f"{file.file_path}: an encrypted file")
    try:
        with open_file(file.file_path) as source:
            yield source
    except FileNotFoundError as error:
        raise NotFoundError(f"{file.file_path}: the table names this file, it is gone") from error
    except (pa.ArrowException, InvalidMetadataError) as error:
        if file.file_path in str(error):
            raise
        raise InvalidMetadataError(f"{file.file_path}: {error}") from error
