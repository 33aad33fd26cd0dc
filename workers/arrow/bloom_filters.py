"""Bloom filters of Parquet columns, as the table's properties ask for them. No I/O.

A filter is as large as the rows of a row group and its false-positive probability (`fpp`) need, and
no larger than `write.parquet.bloom-filter-max-bytes`, as with Iceberg's own writer.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.parquet as pq

from committer.errors import UnsupportedError
from committer.iceberg.schema.avro_names import safe_name
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import BooleanType, ListType, MapType, NestedField

_ENABLED = "write.parquet.bloom-filter-enabled.column."
_FPP = "write.parquet.bloom-filter-fpp.column."
_NDV = "write.parquet.bloom-filter-ndv.column."
_BYTES_MAX = "write.parquet.bloom-filter-max-bytes"
_FPP_USUAL = 0.01
_BYTES_USUAL = 1 << 20
_ARGUMENT = "bloom_filter_options"


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The filter of one column. `ndv`: how many values it is for; None: as many as it has rows."""

    path: str
    fpp: float
    ndv: int | None

    def options(self, rows: int, bytes_max: int) -> dict[str, object]:
        """Return pyarrow's options of the filter."""
        # The bits of a split block filter. Source: the Parquet format, "Bloom Filter".
        bits_per_value = -8 / math.log(1 - self.fpp ** (1 / 8))
        most = max(1, int(bytes_max * 8 / bits_per_value))
        return {"ndv": min(max(1, rows if self.ndv is None else self.ndv), most), "fpp": self.fpp}


@dataclass(frozen=True, slots=True)
class BloomFilters:
    """The filters of a table's files."""

    columns: tuple[BloomFilter, ...] = ()
    bytes_max: int = _BYTES_USUAL

    def writer_arguments(self, rows: int) -> dict[str, object]:
        """Return keyword arguments of `pyarrow.parquet.ParquetWriter`, for row groups of so many
        rows. Errors: `UnsupportedError` where this pyarrow writes no filters."""
        if not self.columns:
            return {}
        if _ARGUMENT not in inspect.signature(pq.ParquetWriter.__init__).parameters:
            raise UnsupportedError(
                f"`{_ENABLED}…`: bloom filters need pyarrow 26 on every executor"
            )
        return {_ARGUMENT: {one.path: one.options(rows, self.bytes_max) for one in self.columns}}


def bloom_filters(properties: Mapping[str, str], table: Schema) -> BloomFilters:
    """Read the table's properties. A column that is not there, or that holds booleans, has none.

    Errors: `UnsupportedError` names a property with a value that cannot be.
    """
    names = [
        name.removeprefix(_ENABLED)
        for name, value in properties.items()
        if name.startswith(_ENABLED) and value.strip().lower() == "true"
    ]
    found = [(name, table.find(name)) for name in sorted(names)]
    return BloomFilters(
        tuple(
            BloomFilter(
                _parquet_path(table, field),
                _number(properties, _FPP + name, _FPP_USUAL),
                _count(properties, _NDV + name),
            )
            for name, field in found
            if field is not None and _takes_filter(field)
        ),
        _count(properties, _BYTES_MAX) or _BYTES_USUAL,
    )


def _takes_filter(field: NestedField) -> bool:
    return field.field_type.is_primitive and not isinstance(field.field_type, BooleanType)


def _parquet_path(table: Schema, field: NestedField) -> str:
    """Return the path of a column in Parquet's schema: lists and maps have a group between."""
    path: list[str] = []
    below = field
    for parent in (*table.ancestors(field.field_id), None):
        kind = None if parent is None else parent.field_type
        if isinstance(kind, ListType):
            path[:0] = ["list", "element"]
        elif isinstance(kind, MapType):
            path[:0] = ["key_value", "key" if below.field_id == kind.key_id else "value"]
        else:
            path.insert(0, safe_name(below.name))
        if parent is not None:
            below = parent
    return ".".join(path)


def _number(properties: Mapping[str, str], name: str, usual: float) -> float:
    text = properties.get(name, str(usual))
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise UnsupportedError(f"`{name}` is `{text}`: expected a number between 0 and 1")
    return number


def _count(properties: Mapping[str, str], name: str) -> int | None:
    text = properties.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise UnsupportedError(f"`{name}` is `{text}`: expected a positive number")
    return int(text)
