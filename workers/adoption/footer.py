"""Reads the footer of a Parquet file from a storage: the end of an object, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.ports.storage import Storage
from workers.adoption.footer_decoder import RowGroup, read_row_groups

# Most footers are in one read of this many bytes.
_TAIL_BYTES = 64 * 1024
_FOOTER_BYTES_MAX = 256 * 1024 * 1024
_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
# The length of the footer, and the magic bytes behind it.
_END_BYTES = 8


@dataclass(frozen=True, slots=True)
class Footer:
    """A footer. `metadata`: of which only the schema is asked for, and what concerns the file as a
    whole; `row_groups`: also those without rows."""

    metadata: pq.FileMetaData
    row_groups: tuple[RowGroup, ...]


async def read_footer(storage: Storage, location: str, size_bytes: int) -> Footer:
    """Read the footer of an object of this size.

    Errors: `InvalidMetadataError` for an object that is no Parquet file, `UnsupportedError` for an
    encrypted one, and those of `Storage.get`.
    """
    tail = await _tail(storage, location, size_bytes, _TAIL_BYTES)
    length = footer_bytes(tail, size_bytes)
    if length + _END_BYTES > len(tail):
        tail = await _tail(storage, location, size_bytes, length + _END_BYTES)
    return parse_footer(tail, length, size_bytes)


async def _tail(storage: Storage, location: str, size_bytes: int, wanted_bytes: int) -> bytes:
    offset = max(0, size_bytes - wanted_bytes)
    return await storage.get(location, offset=offset, length=size_bytes - offset)


def footer_bytes(tail: bytes, size_bytes: int) -> int:
    """Return how many bytes the footer has. `tail`: the last bytes of the object.

    Errors: `InvalidMetadataError`, `UnsupportedError`.
    """
    if tail.endswith(_ENCRYPTED):
        raise UnsupportedError("it is encrypted: expected a Parquet file that readers can open")
    if not tail.endswith(_MAGIC) or len(tail) < _END_BYTES:
        raise InvalidMetadataError("it is no Parquet file: expected `PAR1` at its end")
    length = int.from_bytes(tail[-_END_BYTES:-4], "little")
    if length + _END_BYTES > min(size_bytes, _FOOTER_BYTES_MAX):
        raise InvalidMetadataError(
            f"its footer says that it has {length} bytes, the file has {size_bytes}, and at most"
            f" {_FOOTER_BYTES_MAX} are read"
        )
    return length


def parse_footer(tail: bytes, length: int, size_bytes: int) -> Footer:
    """Parse a footer of so many bytes, of an object of `size_bytes`. Errors: as `footer_bytes`."""
    content = tail[-_END_BYTES - length : -_END_BYTES]
    try:
        # A footer names offsets, and needs none of what it names.
        footer = pq.read_metadata(pa.BufferReader(_MAGIC + content + tail[-_END_BYTES:]))
    except (OSError, pa.ArrowException) as error:
        raise InvalidMetadataError(f"its Parquet footer cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        raise InvalidMetadataError("the name of one of its columns is no UTF-8 text") from error
    return Footer(footer, read_row_groups(content, footer, size_bytes))
