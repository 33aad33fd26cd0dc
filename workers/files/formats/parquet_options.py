"""The options of Parquet files: the table's properties, read once. No I/O.

Source: docs/reference/iceberg-notes.md 10, 11.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.parquet as pq

from committer.errors import UnsupportedError
from committer.iceberg.schema.schema import Schema
from workers.arrow.bloom_filters import BloomFilters, bloom_filters
from workers.files.write_properties import MIB, choice, level, positive, target_file_bytes

_ROW_GROUP = "write.parquet.row-group-size-bytes"
_PAGE = "write.parquet.page-size-bytes"
_DICTIONARY = "write.parquet.dict-size-bytes"
_PAGE_ROWS = "write.parquet.page-row-limit"
_PAGE_VERSION = "write.parquet.page-version"
_CODEC = "write.parquet.compression-codec"
_LEVEL = "write.parquet.compression-level"

# The property's words, and pyarrow's for them.
_CODECS = {
    "zstd": "zstd",
    "gzip": "gzip",
    "snappy": "snappy",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "brotli": "brotli",
    "uncompressed": "none",
    "none": "none",
}
_LEVELED = ("zstd", "gzip", "brotli")
_PAGE_VERSIONS = {"v1": "1.0", "v2": "2.0"}
# Half the time of level 3, for a few percent more bytes.
_ZSTD_LEVEL = 1


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """Sizes in bytes, on disk. `page_rows`: None for what pyarrow does by itself."""

    target_file_bytes: int
    row_group_bytes: int
    page_bytes: int
    dictionary_bytes: int
    page_version: str
    codec: str
    level: int | None
    page_rows: int | None
    bloom_filters: BloomFilters

    def writer_arguments(self) -> dict[str, object]:
        """Return keyword arguments of `pyarrow.parquet.ParquetWriter`."""
        limits = {} if self.page_rows is None else {"max_rows_per_page": self.page_rows}
        return {
            **limits,
            "compression": self.codec,
            "compression_level": self.level,
            "data_page_size": self.page_bytes,
            "dictionary_pagesize_limit": self.dictionary_bytes,
            "data_page_version": self.page_version,
            "store_schema": False,
            "store_decimal_as_integer": True,
            "write_statistics": True,
        }


def parquet_options(properties: Mapping[str, str], table: Schema) -> ParquetOptions:
    """Read the table's properties.
    Errors: `UnsupportedError` names the property that asks for what no writer knows."""
    codec = choice(properties, _CODEC, "zstd", _CODECS)
    return ParquetOptions(
        target_file_bytes=target_file_bytes(properties),
        row_group_bytes=positive(properties, _ROW_GROUP, 128 * MIB),
        page_bytes=positive(properties, _PAGE, MIB),
        dictionary_bytes=positive(properties, _DICTIONARY, 2 * MIB),
        page_version=choice(properties, _PAGE_VERSION, "v1", _PAGE_VERSIONS),
        codec=codec,
        level=_level(properties, codec),
        page_rows=_page_rows(properties),
        bloom_filters=bloom_filters(properties, table),
    )


def _page_rows(properties: Mapping[str, str]) -> int | None:
    if _PAGE_ROWS not in properties:
        return None
    if "max_rows_per_page" not in inspect.signature(pq.ParquetWriter.__init__).parameters:
        raise UnsupportedError(f"`{_PAGE_ROWS}` needs pyarrow 26 on every executor")
    return positive(properties, _PAGE_ROWS, 1)


def _level(properties: Mapping[str, str], codec: str) -> int | None:
    if codec not in _LEVELED:
        return None
    found = level(properties, _LEVEL)
    return _ZSTD_LEVEL if found is None and codec == "zstd" else found
