"""Rows of metadata tables as Arrow: the columns of each kind, and batches of rows.

Columns are the keys of the JSON lines. A JSON object keyed by field id becomes a map; a value whose
type differs from row to row (a partition, the value of a bound) becomes its JSON text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import cast

import orjson
import pyarrow as pa

from committer.iceberg.inspection.values import Row

_ROWS_PER_BATCH = 10_000
_INT, _LONG, _TEXT, _FLAG = pa.int32(), pa.int64(), pa.string(), pa.bool_()
_TIME = pa.timestamp("ms", "UTC")
_COUNTS = pa.map_(_INT, _LONG)
_BOUNDS = pa.map_(_INT, pa.struct({"hex": _TEXT, "value": _TEXT, "human": _TEXT}))


def arrow_columns(kind: str) -> pa.Schema:
    """Return the columns of a metadata table. Errors: `KeyError` for another kind."""
    return pa.schema(_COLUMNS[kind])


def arrow_table(kind: str, rows: Iterable[Row]) -> pa.Table:
    """Collect all rows of a metadata table in memory. Errors: those of the rows."""
    return pa.Table.from_batches(arrow_batches(kind, rows), schema=arrow_columns(kind))


def arrow_batches(kind: str, rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a metadata table as they come, one batch in memory.
    Errors: those of the rows."""
    schema, left = arrow_columns(kind), iter(rows)
    while batch := [_plain(row) for row in islice(left, _ROWS_PER_BATCH)]:
        yield pa.RecordBatch.from_pylist(batch, schema=schema)


# --- Values --------------------------------------------------------------------------------------


def _plain(row: Row) -> Row:
    return {key: _VALUES.get(key, _same)(value) for key, value in row.items()}


def _same(value: object) -> object:
    return value


def _json_text(value: object) -> str:
    return orjson.dumps(value).decode()


def _by_id(value: object) -> object:
    found = cast("Mapping[str, object] | None", value)
    return None if found is None else [(int(key), each) for key, each in found.items()]


def _bounds(value: object) -> object:
    if value is None:
        return None
    found = cast("Mapping[str, Row]", value)
    return _by_id({key: _text_of(each, "value") for key, each in found.items()})


def _summaries(value: object) -> object:
    return [_text_of(each, "lower", "upper") for each in cast("list[Row]", value)]


def _text_of(row: Row, *keys: str) -> Row:
    return row | {key: _json_text(row[key]) for key in keys if key in row}


_COUNT_KEYS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUND_KEYS = ("lower_bounds", "upper_bounds")
_VALUES: Mapping[str, Callable[[object], object]] = {
    "partition": _json_text,
    "partitions": _summaries,
    "summary": lambda value: list(cast("Mapping[str, str]", value).items()),
    "file": lambda value: _plain(cast(Row, value)),
    **dict.fromkeys(_COUNT_KEYS, _by_id),
    **dict.fromkeys(_BOUND_KEYS, _bounds),
}


# --- Columns -------------------------------------------------------------------------------------

_IDENTITY = {
    "content": _INT,
    "file_path": _TEXT,
    "file_format": _TEXT,
    "spec_id": _INT,
    "partition": _TEXT,
    "partition_path": _TEXT,
    "record_count": _LONG,
    "file_size_in_bytes": _LONG,
}
_METRICS = {**dict.fromkeys(_COUNT_KEYS, _COUNTS), **dict.fromkeys(_BOUND_KEYS, _BOUNDS)}
_TRACKING = {
    "equality_ids": pa.list_(_INT),
    "sort_order_id": _INT,
    "first_row_id": _LONG,
    "data_sequence_number": _LONG,
    "file_sequence_number": _LONG,
    "referenced_data_file": _TEXT,
    "content_offset": _LONG,
    "content_size_in_bytes": _LONG,
}
_KEY = {"key_metadata": _TEXT}
_FILE = {**_IDENTITY, **_METRICS, **_KEY, "split_offsets": pa.list_(_LONG), **_TRACKING}
_ENTRY = {
    "status": _INT,
    "snapshot_id": _LONG,
    "data_sequence_number": _LONG,
    "file_sequence_number": _LONG,
    "file": pa.struct({**_IDENTITY, **_KEY, **_TRACKING}),
}
_SUMMARY = {
    "contains_null": _FLAG,
    "contains_nan": _FLAG,
    **dict.fromkeys(("lower_hex", "upper_hex", "lower", "upper"), _TEXT),
}
_COUNT_NAMES = [
    f"{what}_{of}_count" for of in ("files", "rows") for what in ("added", "existing", "deleted")
]
_MANIFEST = {
    "manifest_path": _TEXT,
    "manifest_length": _LONG,
    "partition_spec_id": _INT,
    "content": _INT,
    "sequence_number": _LONG,
    "min_sequence_number": _LONG,
    "added_snapshot_id": _LONG,
    **dict.fromkeys(_COUNT_NAMES, _LONG),
    "first_row_id": _LONG,
    **_KEY,
    "partitions": pa.list_(pa.struct(_SUMMARY)),
}
_COLUMNS: Mapping[str, Mapping[str, pa.DataType]] = {
    "snapshots": {
        "snapshot_id": _LONG,
        "parent_id": _LONG,
        "sequence_number": _LONG,
        "timestamp_ms": _TIME,
        "operation": _TEXT,
        "schema_id": _INT,
        "first_row_id": _LONG,
        "added_rows": _LONG,
        "key_id": _TEXT,
        "manifest_list": _TEXT,
        "summary": pa.map_(_TEXT, _TEXT),
    },
    "history": {
        "timestamp_ms": _TIME,
        "snapshot_id": _LONG,
        "parent_id": _LONG,
        "is_current_ancestor": _FLAG,
    },
    "refs": {
        "name": _TEXT,
        "snapshot-id": _LONG,
        "type": _TEXT,
        "min-snapshots-to-keep": _LONG,
        "max-snapshot-age-ms": _LONG,
        "max-ref-age-ms": _LONG,
    },
    "metadata_log_entries": {
        "timestamp_ms": _TIME,
        "metadata_file": _TEXT,
        "latest_snapshot_id": _LONG,
        "latest_schema_id": _INT,
        "latest_sequence_number": _LONG,
    },
    "manifests": _MANIFEST,
    "all_manifests": {**_MANIFEST, "reference_snapshot_id": _LONG},
    **dict.fromkeys(("files", "data_files", "delete_files"), _FILE),
    **dict.fromkeys(("all_files", "all_data_files", "all_delete_files"), _FILE),
    **dict.fromkeys(("entries", "all_entries"), _ENTRY),
    "partitions": {
        "partition": _TEXT,
        "partition_path": _TEXT,
        "spec_id": _INT,
        "record_count": _LONG,
        "file_count": _LONG,
        "total_data_file_size_in_bytes": _LONG,
        "position_delete_record_count": _LONG,
        "position_delete_file_count": _LONG,
        "equality_delete_record_count": _LONG,
        "equality_delete_file_count": _LONG,
        "last_updated_ms": _TIME,
        "last_updated_snapshot_id": _LONG,
    },
}
