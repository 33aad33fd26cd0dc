"""Arrow columns brought to the exact types of a data file: filled, promoted, checked for nulls.

`arrow_schema.match_columns` has matched the columns. A column that fits is never copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from committer.errors import PublishError
from workers.arrow.arrow_types import describe_arrow
from workers.arrow.store_assignment import assign, first_misfit


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the file, or one field inside of it.

    `position` is the place among the source's fields, None if the source lacks it; then `constant`
    is an array of one value, or None for a struct whose members are constants. `inner` holds a
    struct's members, a list's element, or a map's key and value; nothing for other types.
    `convert` makes the target's values of a source that Arrow itself would not cast so.
    """

    target: pa.Field
    path: str
    position: int | None
    constant: pa.Array | None
    inner: tuple[Column, ...]
    convert: Callable[[pa.Array], pa.Array] | None = None


def conform_batch(
    batch: pa.RecordBatch, columns: Sequence[Column], schema: pa.Schema
) -> pa.RecordBatch:
    arrays = [conform_column(batch, column) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def conform_column(batch: pa.RecordBatch, column: Column) -> pa.Array:
    """Return one column for the rows of a batch.
    Errors: `PublishError` as `MatchedColumns.conform`."""
    source = None if column.position is None else batch.column(column.position)
    return _member(source, column, batch.num_rows, None)


def _member(source: pa.Array | None, column: Column, rows: int, owner: pa.Array | None) -> pa.Array:
    """Return the array for a column or a struct member.
    `owner` is the struct, whose nulls excuse ours."""
    if source is None:
        return _filled(column, rows)
    array = _conform(source, column)
    if column.target.nullable or not array.null_count:
        return array
    if _has_real_null(array, owner):
        raise PublishError(f"column {column.path} is required, but the rows hold nulls in it")
    return _without_nulls(array)


def _without_nulls(array: pa.Array) -> pa.Array:
    """Return the array with anything where it had nulls. The struct around it is null there, and
    Parquet's writer takes no null for a required field."""
    kind, rows = array.type, len(array)
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, _without_nulls(array.storage))
    if pa.types.is_struct(kind):
        members = [array.field(at) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(members, fields=list(kind))
    children = [array.values] if pa.types.is_list(kind) or pa.types.is_map(kind) else None
    buffers = array.buffers()[: 2 if children else None]
    return pa.Array.from_buffers(kind, rows, [None, *buffers[1:]], 0, array.offset, children)


def _has_real_null(array: pa.Array, owner: pa.Array | None) -> bool:
    if owner is None or not owner.null_count:
        return True
    return bool(pc.any(pc.and_(pc.is_null(array), pc.is_valid(owner))).as_py())


def _filled(column: Column, rows: int) -> pa.Array:
    if column.constant is not None:
        return column.constant.take(pa.array(np.zeros(rows, np.int32)))
    members = [_filled(inner, rows) for inner in column.inner]
    return pa.StructArray.from_arrays(members, fields=[inner.target for inner in column.inner])


def _conform(array: pa.Array, column: Column) -> pa.Array:
    kind = column.target.type
    if column.convert is not None:
        return column.convert(array)
    if column.inner and pa.types.is_struct(kind):
        return _struct(array, column)
    if column.inner:
        return _list_or_map(array, column)
    if array.type.equals(kind):
        return array
    if pa.types.is_null(array.type):
        return _nulls(len(array), kind)
    try:
        return _cast(array, kind)
    except ValueError as error:
        found = first_misfit(array, kind, _cast)
        raise PublishError(
            f"column {column.path} holds a value that is no {describe_arrow(kind)}: {found}"
        ) from error


def _nulls(rows: int, kind: pa.DataType) -> pa.Array:
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    array = pa.array([None], storage).take(pa.array(np.zeros(rows, np.int32)))
    return array if storage is kind else pa.ExtensionArray.from_storage(kind, array)


def _struct(array: pa.StructArray, column: Column) -> pa.Array:
    # Flattened members are null wherever the struct is, at any depth.
    sources = array.flatten()
    members = [
        _member(None if at is None else sources[at], inner, len(array), array)
        for inner in column.inner
        for at in [inner.position]
    ]
    fields = [inner.target for inner in column.inner]
    mask = pc.is_null(array) if array.null_count else None
    return pa.StructArray.from_arrays(members, fields=fields, mask=mask)


def _list_or_map(array: pa.Array, column: Column) -> pa.Array:
    """Rebuild a list or map with the same offsets and nulls, and other children.
    The children stay whole when the array is a slice."""
    if pa.types.is_large_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    array = _without_hidden_rows(array)
    if pa.types.is_map(array.type):
        child = _entries(array.values, column)
    else:
        child = _member(array.values, column.inner[0], len(array.values), None)
    return with_child(array, column.target.type, child)


def with_child(array: pa.Array, kind: pa.DataType, child: pa.Array) -> pa.Array:
    """Return a list or map of a type with the same offsets and nulls, and another child."""
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, array.offset, [child])


def _entries(entries: pa.StructArray, column: Column) -> pa.Array:
    key, value = column.inner
    arrays = [
        _member(entries.field(0), key, len(entries), None),
        _member(entries.field(1), value, len(entries), None),
    ]
    return pa.StructArray.from_arrays(arrays, fields=[key.target, value.target])


def _without_hidden_rows(array: pa.Array) -> pa.Array:
    """Return the array itself, unless its children hold more than its rows show.

    A null list may own elements, and a slice shares the children of the whole; neither may fail a
    check, and neither is worth carrying along. Taking every row makes a tight copy.
    """
    as_list = with_child(array, pa.list_(array.values.type), array.values)
    shown = pc.sum(pc.list_value_length(as_list)).as_py() or 0
    if shown == len(array.values):
        return array
    return array.take(pa.array(np.arange(len(array), dtype=np.int64)))


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if kind == pa.uuid():
        return pa.ExtensionArray.from_storage(kind, _uuid_bytes(array))
    return assign(array, kind)


def _uuid_bytes(array: pa.Array) -> pa.Array:
    if pa.types.is_fixed_size_binary(array.type) or pa.types.is_binary(array.type):
        return array.cast(pa.binary(16))
    texts = array.to_pylist()
    values = [None if text is None else UUID(text).bytes for text in texts]
    return pa.array(values, pa.binary(16))
