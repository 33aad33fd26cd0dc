"""Nulls as pyarrow's writer of ORC needs them: what is inside of a null is null as well.

Arrow says nothing of the members of a null struct, and a column of ORC has no values for them.
pyarrow's writer makes them null by itself, but neither in structs that are inside of others, lists
or maps, nor right in arrays that are a part of longer ones: there it writes values that are none,
and each reader shifts the others by them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def with_deep_nulls(rows: pa.Table) -> pa.Table:
    """Return the same rows, all nulls in their places. Nested columns are copied."""
    if not any(pa.types.is_nested(column.type) for column in rows.columns):
        return rows
    # Of whole arrays alone: those in them start at their own first value then.
    whole = rows.take(np.arange(rows.num_rows)).combine_chunks()
    columns = [
        pa.chunked_array([_deep(chunk) for chunk in column.chunks], column.type)
        for column in whole.columns
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _deep(array: pa.Array) -> pa.Array:
    kind = array.type
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        # Flattened members have the nulls of their struct.
        members = [_deep(member) for member in array.flatten()]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, _deep(array.values), kind, mask=mask)
    if pa.types.is_map(kind):
        keys, items = _deep(array.keys), _deep(array.items)
        return pa.MapArray.from_arrays(array.offsets, keys, items, kind, mask=mask)
    return array
