"""Rows of every type with the values at its edges."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from tests.support.workers.tables import all_primitives
from workers.arrow.arrow_schema import arrow_schema
from workers.arrow.arrow_values import to_array


def v2_primitives() -> Any:
    """Return a schema with every type of format version 2."""
    whole = all_primitives()
    return type(whole)(tuple(f for f in whole.fields if not f.name.endswith("_ns")))


def edge_rows() -> pa.RecordBatch:
    table = v2_primitives()
    values: dict[str, list[object]] = {
        "boolean": [True, None, False, True],
        "int": [-(2**31), 0, 2**31 - 1, None],
        "long": [-(2**63), 1, 2**63 - 1, None],
        "float": [float("nan"), -0.0, 1.5, None],
        "double": [float("-inf"), float("nan"), 0.0, None],
        "decimal9": [Decimal("-9999999.99"), Decimal("0.01"), None, Decimal("1.00")],
        "decimal18": [Decimal("-12345678901234.5678"), None, Decimal(0), Decimal(1)],
        "decimal38": [Decimal("-9999999999999999999999999999.9999999999"), Decimal(1), None, None],
        "date": [-1, 0, 20_000, None],
        "time": [0, 86_399_999_999, None, 1],
        "timestamp": [-1, 0, 1_700_000_000_000_000, None],
        "timestamptz": [-1, 0, 1_700_000_000_000_000, None],
        "string": ["", "é😀" * 20, None, "z" * 5000],
        "uuid": [UUID(int=1), UUID(int=2**128 - 1), None, UUID(int=0)],
        "fixed": [b"\x00\x01\x02\x03", b"\xff" * 4, None, b"abcd"],
        "binary": [b"", b"\xff" * 20, None, b"\x80"],
    }
    arrays = [to_array(values[column.name], column.field_type) for column in table.fields]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table))


def whole_seconds(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Cut the times of the edge rows to seconds."""
    for name in ("timestamp", "timestamptz"):
        at = rows.schema.get_field_index(name)
        times = pa.array([-1_000_000, 0, 1_700_000_000_000_001, None], pa.int64())
        rows = rows.set_column(at, rows.schema.field(at), times.cast(rows.schema.field(at).type))
    return rows
