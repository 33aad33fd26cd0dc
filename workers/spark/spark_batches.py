"""Arrow batches as Spark takes them: the types and the nullability of its schema, to the letter.

The driver makes their schema, executors the batches. What Spark has no type for becomes what its
schema says of it: a uuid its text, a fixed value binary, a variant Spark's pair of binaries.
Everything else keeps its buffers.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from committer.errors import PublishError
from workers.arrow.arrow_columns import with_child

_UUID_CHARACTERS = 36
_DASHES = (8, 13, 18, 23)
_DIGITS = [at for at in range(_UUID_CHARACTERS) if at not in _DASHES]
_HEXADECIMAL = np.frombuffer(b"0123456789abcdef", np.uint8)


def spark_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the schema of Spark's batches.

    Errors: `PySparkException`, `ArrowException` for a column that Arrow cannot carry;
    `PublishError` for a map whose keys have no type.
    """
    has_zone = "timezone" in inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(_as_sent(schema, ""), **({"timezone": "UTC"} if has_zone else {}))


def _as_sent(kind: DataType, path: str) -> Any:
    """Return the type as Spark sends it: `string` for `char` and `varchar`, and elements of no type
    as ones that may be null, as Arrow has no others."""
    match kind:
        case CharType() | VarcharType():
            return StringType()
        case StructType():
            fields = ((each, f"{path}.{each.name}".lstrip(".")) for each in kind.fields)
            return StructType(
                [
                    StructField(
                        each.name, _as_sent(each.dataType, at), each.nullable, each.metadata
                    )
                    for each, at in fields
                ]
            )
        case ArrayType():
            element = _as_sent(kind.elementType, f"{path}.element")
            return ArrayType(element, kind.containsNull or isinstance(element, NullType))
        case MapType():
            key, value = _as_sent(kind.keyType, path), _as_sent(kind.valueType, f"{path}.value")
            if isinstance(key, NullType):
                raise PublishError(
                    f"column `{path}`: Spark knows no type for its keys, as of `map()`: cast the"
                    f" column, as in CAST({path} AS MAP<STRING, STRING>)"
                )
            return MapType(key, value, kind.valueContainsNull or isinstance(value, NullType))
    return kind


def as_spark_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the columns of Spark's schema, which stand in the same order."""
    arrays = [
        _converted(array, field.type) for array, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _converted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type.equals(kind):
        return array
    if isinstance(array, pa.ExtensionArray):
        return _uuid_text(array.storage)
    if pa.types.is_struct(kind):
        return _struct(array, kind)
    if pa.types.is_map(kind):
        entries = _struct(array.values, pa.struct([kind.key_field, kind.item_field]))
        return with_child(array, kind, entries)
    if pa.types.is_list(kind):
        return with_child(array, kind, _converted(array.values, kind.value_type))
    return array.cast(kind)


def _struct(array: pa.StructArray, kind: pa.DataType) -> pa.Array:
    """Convert the fields, found by name: Spark's variant has them the other way round."""
    fields = [kind.field(at) for at in range(kind.num_fields)]
    places = [array.type.get_field_index(field.name) for field in fields]
    children = [
        _converted(array.field(place), field.type)
        for place, field in zip(places, fields, strict=True)
    ]
    mask = array.is_null() if array.null_count else None
    if not fields:
        return pa.array([{} if valid else None for valid in array.is_valid().to_pylist()], kind)
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _uuid_text(array: pa.FixedSizeBinaryArray) -> pa.Array:
    """Print 16 bytes each as `01234567-89ab-…`, null for null."""
    rows = len(array)
    if not rows:
        return pa.array([], pa.string())
    start = array.offset * 16
    content = np.frombuffer(array.buffers()[1], np.uint8)[start : start + rows * 16]
    text = np.full((rows, _UUID_CHARACTERS), ord("-"), np.uint8)
    digits = np.stack([content >> 4, content & 15], axis=1).reshape(rows, 32)
    text[:, _DIGITS] = _HEXADECIMAL[digits]
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(_UUID_CHARACTERS)
    printed = pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text))
    if not array.null_count:
        return printed
    return pc.if_else(array.is_valid(), printed, pa.scalar(None, pa.string()))
