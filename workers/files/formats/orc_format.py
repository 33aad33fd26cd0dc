"""ORC: each write makes one stripe, or a few.

pyarrow writes what it is told but for two things, both of which are held here: nulls of nested
columns (`orc_nulls.py`), and times before 1970 with a fraction of a second, which are an error
(`orc_times.py`). Sources: the Iceberg specification, Appendix A, "ORC";
docs/reference/iceberg-notes.md 11.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import orc

from committer.errors import InvariantError, UnsupportedError
from workers.arrow.arrow_types import VARIANT, children, field_id
from workers.arrow.footer_metrics import FileMetrics, Leaf
from workers.files.formats.orc_nulls import with_deep_nulls
from workers.files.formats.orc_times import check_times
from workers.files.formats.row_metrics import RowMetrics
from workers.files.write_properties import MIB, FormatName, choice, positive, target_file_bytes

_STRIPE = "write.orc.stripe-size-bytes"
_CODEC = "write.orc.compression-codec"
_STRATEGY = "write.orc.compression-strategy"
# The property's words, and pyarrow's for them.
_CODECS = {"zlib": "zlib", "zstd": "zstd", "snappy": "snappy", "lz4": "lz4", "none": "uncompressed"}
_STRATEGIES = {"speed": "speed", "compression": "compression"}
# As Java has them.
_BLOCK_BYTES = 256 * 1024
_DICTIONARY_RATIO = 0.8
# pyarrow ends a stripe by its size, but looks at it after each batch only: of this size every batch
# is a stripe, and no rows wait where nothing counts their bytes.
_STRIPE_BYTES_LEAST = 1
_BATCH_ROWS_LEAST = 1 << 14


@dataclass(frozen=True, slots=True)
class OrcOptions:
    """Sizes in bytes, on disk."""

    target_file_bytes: int
    stripe_bytes: int
    codec: str
    strategy: str


def orc_options(properties: Mapping[str, str]) -> OrcOptions:
    """Read the table's properties. Errors: `UnsupportedError` names the one that is wrong."""
    return OrcOptions(
        target_file_bytes(properties),
        positive(properties, _STRIPE, 64 * MIB),
        choice(properties, _CODEC, "zlib", _CODECS),
        choice(properties, _STRATEGY, "speed", _STRATEGIES),
    )


class OrcFormat:
    """`FileFormat`. The first rows of each file say how many rows its stripes have at most."""

    name: FormatName = "orc"

    def __init__(self, schema: pa.Schema, leaves: Sequence[Leaf], options: OrcOptions) -> None:
        self._schema = pa.schema([orc_field(field) for field in schema])
        self._leaves, self._options = leaves, options
        self.target_file_bytes = options.target_file_bytes
        self.row_group_bytes = options.stripe_bytes

    def open(self, sink: pa.NativeFile, first_rows: pa.Table) -> _OrcFile:
        writer = orc.ORCWriter(
            pa.PythonFile(_KeptOpen(sink), mode="w"),
            batch_size=max(int(first_rows.num_rows), _BATCH_ROWS_LEAST),
            stripe_size=_STRIPE_BYTES_LEAST,
            compression=self._options.codec,
            compression_strategy=self._options.strategy,
            compression_block_size=_BLOCK_BYTES,
            dictionary_key_size_threshold=_DICTIONARY_RATIO,
        )
        return _OrcFile(writer, self._schema, RowMetrics(self._leaves))


class _OrcFile:
    """`OpenFile`."""

    def __init__(self, writer: orc.ORCWriter, schema: pa.Schema, metrics: RowMetrics) -> None:
        self._writer, self._schema, self._metrics = writer, schema, metrics

    def write(self, rows: pa.Table) -> None:
        check_times(rows)
        self._metrics.add(rows)
        self._writer.write(with_deep_nulls(rows.cast(self._schema)))

    def close(self) -> FileMetrics:
        self._writer.close()
        return self._metrics.finish()

    def abandon(self) -> None:
        self._writer.close()


class _KeptOpen:
    """A sink that stays open: pyarrow's writer closes its own, which still has to tell its size."""

    closed = False

    def __init__(self, sink: pa.NativeFile) -> None:
        self._sink = sink

    def write(self, content: bytes) -> int:
        return int(self._sink.write(content))

    def tell(self) -> int:
        return int(self._sink.tell())

    def flush(self) -> None:
        """Do nothing: what is written is durable at the end of the task, not before."""

    def close(self) -> None:
        """Do nothing."""


# --- Types ---------------------------------------------------------------------------------------


def orc_field(field: pa.Field) -> pa.Field:
    """Return how a column is stored; its metadata becomes the attributes of its type.

    Errors: `UnsupportedError` for a variant: Iceberg's own writer of ORC fails at it.
    """
    if field.type == VARIANT:
        raise UnsupportedError(
            f"column `{field.name}`: ORC files hold no variants: write Parquet or Avro"
            " (`write.format.default`, option `write-format`)"
        )
    kind, attributes = _stored(field.type)
    number = field_id(field)
    if number is not None:
        attributes["iceberg.id"] = str(number)
        attributes["iceberg.required"] = str(not field.nullable).lower()
    return pa.field(field.name, kind, metadata=attributes)


def _stored(kind: pa.DataType) -> tuple[pa.DataType, dict[str, str]]:
    if pa.types.is_nested(kind):
        return _nested(kind, [orc_field(part) for part in children(kind)]), {}
    if pa.types.is_time64(kind):
        return pa.int64(), {"iceberg.long-type": "TIME"}
    if pa.types.is_int64(kind):
        return kind, {"iceberg.long-type": "LONG"}
    if kind == pa.uuid():
        return pa.binary(16), {"iceberg.binary-type": "UUID"}
    if pa.types.is_fixed_size_binary(kind):
        width = str(kind.byte_width)
        return kind, {"iceberg.binary-type": "FIXED", "iceberg.length": width}
    if pa.types.is_binary(kind):
        return kind, {"iceberg.binary-type": "BINARY"}
    if pa.types.is_timestamp(kind):
        return kind, {"iceberg.timestamp-unit": "NANOS" if kind.unit == "ns" else "MICROS"}
    return kind, {}


def _nested(kind: pa.DataType, parts: Sequence[pa.Field]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(parts)
    if pa.types.is_list(kind):
        return pa.list_(*parts)
    if pa.types.is_map(kind):
        key, value = parts
        return pa.map_(key.with_nullable(False), value)
    raise InvariantError(f"a column of Arrow's {kind} in an ORC file")
