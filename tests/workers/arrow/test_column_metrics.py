"""The metrics of a written file equal a brute force over its rows, and those of Iceberg Java."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.schema import Schema, parse_schema
from committer.iceberg.schema.table_text import parse_sort_order
from committer.iceberg.values.single_value import decode_value, encode_value
from committer.iceberg.values.types import (
    BinaryType,
    DoubleType,
    FloatType,
    IcebergType,
    LongType,
    StringType,
    VariantType,
)
from tests.support.builders.fixtures import table_dir
from tests.support.workers.tables import PRIMITIVES, all_primitives, nested, optional, schema
from tests.support.workers.write_target import Target, write_rows
from workers.arrow.arrow_schema import arrow_schema, match_columns
from workers.arrow.arrow_values import to_array
from workers.files.file_writer import WriterLimits

INF, NAN = math.inf, math.nan
TOP = "\U0010ffff"


def batch_of(table: Schema, columns: Sequence[Sequence[object]]) -> pa.RecordBatch:
    arrays = [
        to_array(values, column.field_type)
        for values, column in zip(columns, table.fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table))


def one_file(
    tmp_path: Path, table: Schema, *batches: pa.RecordBatch, **properties: str
) -> DataFile:
    named = {key.replace("__", "."): value for key, value in properties.items()}
    target = Target(f"file:{tmp_path}/t", table, properties=named)
    [file] = write_rows(target, *batches)
    return file


def one_column(
    tmp_path: Path, kind: IcebergType, values: Sequence[object], mode: str = "full"
) -> tuple[object, object]:
    """Return the bounds of a file with one column."""
    table = schema(optional(1, "c", kind))
    properties = {"write.metadata.metrics.default": mode}
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    [file] = write_rows(
        Target(f"file:{folder}", table, properties=properties), batch_of(table, [values])
    )
    assert file.lower_bounds is not None and file.upper_bounds is not None
    low, high = file.lower_bounds.get(1), file.upper_bounds.get(1)
    return (
        None if low is None else decode_value(kind, low),
        None if high is None else decode_value(kind, high),
    )


# --- By brute force -------------------------------------------------------------------------------

VALUES: dict[str, st.SearchStrategy[object]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "decimal9": st.decimals(-9999999, 9999999, places=2),
    "decimal18": st.decimals(-(10**13), 10**13, places=4),
    "decimal38": st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -10))
    ),
    "date": st.integers(-(2**31), 2**31 - 1),
    "time": st.integers(0, 86_400_000_000 - 1),
    "timestamp": st.integers(-(2**63), 2**63 - 1),
    "timestamptz": st.integers(-(2**63), 2**63 - 1),
    "timestamp_ns": st.integers(-(2**63), 2**63 - 1),
    "timestamptz_ns": st.integers(-(2**63), 2**63 - 1),
    "string": st.text(max_size=30),
    "uuid": st.uuids(),
    "fixed": st.binary(min_size=4, max_size=4),
    "binary": st.binary(max_size=30),
}


def order(value: Any) -> Any:
    """Return the specification's sort key: -0.0 below +0.0, uuids as unsigned bytes."""
    if isinstance(value, float):
        return value, math.copysign(1, value)
    return value.bytes if isinstance(value, UUID) else value


@pytest.mark.thorough
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(0, 6))
def test_counts_and_bounds_of_every_type_equal_a_brute_force(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, count: int
) -> None:
    table = all_primitives()
    columns = [
        data.draw(st.lists(st.none() | VALUES[name], min_size=count + 1, max_size=count + 1))
        for name in PRIMITIVES
    ]
    file = one_file(
        tmp_path_factory.mktemp("t"),
        table,
        batch_of(table, columns),
        write__metadata__metrics__default="full",
    )
    assert file.record_count == count + 1
    for column, values in zip(table.fields, columns, strict=True):
        check(file, column.field_id, column.field_type, values)


def check(file: DataFile, field_id: int, kind: IcebergType, values: Sequence[object]) -> None:
    maps = file.value_counts, file.null_value_counts, file.nan_value_counts
    value_counts, null_counts, nan_counts = (dict(counts or {}) for counts in maps)
    present = [value for value in values if value is not None]
    numbers = [value for value in present if value == value]
    assert value_counts[field_id] == len(values)
    assert null_counts[field_id] == len(values) - len(present)
    is_float = isinstance(kind, FloatType | DoubleType)
    assert nan_counts.get(field_id) == (len(present) - len(numbers) if is_float else None)
    bounds = (file.lower_bounds or {}).get(field_id), (file.upper_bounds or {}).get(field_id)
    if not numbers:
        assert bounds == (None, None)
        return
    low, high = min(numbers, key=order), max(numbers, key=order)
    if is_float:
        # A zero bound is written with the sign that surely bounds.
        low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
    assert bounds == (encode_value(kind, low), encode_value(kind, high)), kind


def test_bounds_and_counts_span_all_row_groups(tmp_path: Path) -> None:
    table = schema(optional(1, "d", DoubleType()), optional(2, "s", StringType()))
    target = Target(f"file:{tmp_path}/t", table)
    groups: list[list[list[object]]] = [
        [[NAN, None], ["b", None]],
        [[3.0, -1.0], ["z", "c"]],
        [[NAN, 9.5], [None, "a"]],
    ]
    batches = [batch_of(table, columns) for columns in groups]
    [file] = write_rows(target, *batches, limits=WriterLimits(row_group_bytes=514))
    assert pq.ParquetFile(file.file_path.removeprefix("file:")).num_row_groups == 3
    check(file, 1, DoubleType(), [NAN, None, 3.0, -1.0, NAN, 9.5])
    check(file, 2, StringType(), ["b", None, "z", "c", None, "a"])


# --- Bounds ---------------------------------------------------------------------------------------


def test_nan_is_no_bound_and_infinities_are(tmp_path: Path) -> None:
    assert one_column(tmp_path, DoubleType(), [NAN, 1.0, None]) == (1.0, 1.0)
    assert one_column(tmp_path, DoubleType(), [NAN, INF, -INF]) == (-INF, INF)
    assert one_column(tmp_path, FloatType(), [NAN, NAN]) == (None, None)
    assert one_column(tmp_path, FloatType(), [None]) == (None, None)


def test_zero_bounds_have_the_sign_that_bounds_both_zeros(tmp_path: Path) -> None:
    for values in ([0.0], [-0.0], [0.0, -0.0]):
        low, high = one_column(tmp_path, DoubleType(), values)
        assert (str(low), str(high)) == ("-0.0", "0.0")


def test_long_texts_are_cut_to_sixteen_code_points_by_default(tmp_path: Path) -> None:
    cut = "truncate(16)"
    assert one_column(tmp_path, StringType(), ["a" * 17], cut) == ("a" * 16, "a" * 15 + "b")
    assert one_column(tmp_path, StringType(), ["é" * 16], cut) == ("é" * 16, "é" * 16)
    emoji = one_column(tmp_path, StringType(), ["😀" * 20], cut)
    assert emoji == ("😀" * 16, "😀" * 15 + "😁")
    assert one_column(tmp_path, StringType(), [TOP * 20], cut) == (TOP * 16, None)
    assert one_column(tmp_path, BinaryType(), [b"\xff" * 17], cut) == (b"\xff" * 16, None)


def test_texts_that_a_footer_has_no_bounds_of_are_bounded_by_their_rows(tmp_path: Path) -> None:
    long, longer = "m" * 5000, "z" * 4097
    assert one_column(tmp_path, StringType(), [long, None, longer, "n"]) == (long, longer)
    cut = one_column(tmp_path, StringType(), [long, longer], "truncate(2)")
    assert cut == ("mm", "z{")
    assert one_column(tmp_path, BinaryType(), [b"a", b"\x80" * 9000]) == (b"a", b"\x80" * 9000)


def test_long_and_short_row_groups_are_bounded_together(tmp_path: Path) -> None:
    table = schema(optional(1, "s", StringType()))
    target = Target(
        f"file:{tmp_path}/t",
        table,
        properties={
            "write.parquet.row-group-size-bytes": "500",
            "write.metadata.metrics.default": "truncate(3)",
        },
    )
    groups = [["k" * 600], ["p" * 5000], ["b" * 600]]
    [file] = write_rows(target, *(batch_of(table, [values]) for values in groups))
    assert (file.lower_bounds, file.upper_bounds) == ({1: b"bbb"}, {1: b"ppq"})


# --- Modes ----------------------------------------------------------------------------------------


def test_modes_say_what_is_kept_of_each_column(tmp_path: Path) -> None:
    table = schema(*(optional(n, name, StringType()) for n, name in enumerate("abcde", 1)))
    batch = batch_of(table, [["x" * 20]] * 5)
    prefix = "write.metadata.metrics.column."
    properties = {
        f"{prefix}a": "none",
        f"{prefix}b": "counts",
        f"{prefix}c": "truncate(2)",
        f"{prefix}d": "full",
    }
    [file] = write_rows(Target(f"file:{tmp_path}/t", table, properties=properties), batch)
    assert file.column_sizes is not None and file.value_counts is not None
    assert set(file.column_sizes) == set(file.value_counts) == {2, 3, 4, 5}
    assert file.lower_bounds == {3: b"xx", 4: b"x" * 20, 5: b"x" * 16}
    assert file.upper_bounds == {3: b"xy", 4: b"x" * 20, 5: b"x" * 15 + b"y"}


def test_a_wide_table_has_metrics_of_its_first_hundred_columns(tmp_path: Path) -> None:
    table = schema(*(optional(n, f"c{n}", LongType()) for n in range(1, 151)))
    file = one_file(tmp_path, table, batch_of(table, [[1]] * 150))
    assert set(file.value_counts or {}) == set(range(1, 101))


@pytest.mark.parametrize("sorted_by", ["c150", "truncate(10, c150), bucket(4, c149)"])
def test_columns_of_the_tables_sort_order_have_bounds_however_wide_the_table(
    tmp_path: Path, sorted_by: str
) -> None:
    """Also in a file whose own rows are not sorted, as a compaction writes them."""
    table = schema(*(optional(n, f"c{n}", LongType()) for n in range(1, 151)))
    order = parse_sort_order(sorted_by, table)
    target = Target(f"file:{tmp_path}/t", table, table_order=order)
    [file] = write_rows(target, batch_of(table, [[1]] * 150))
    assert file.sort_order_id == 0
    assert set(file.lower_bounds or {}) == set(file.upper_bounds or {}) == {*range(1, 101), 150}


@pytest.mark.parametrize("default", ["none", "counts"])
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_columns_of_the_tables_sort_order_have_bounds_whatever_the_default(
    tmp_path: Path, default: str, file_format: str
) -> None:
    table = schema(optional(1, "id", LongType()), optional(2, "s", StringType()))
    target = Target(
        f"file:{tmp_path}/t",
        table,
        properties={
            "write.metadata.metrics.default": default,
            "write.format.default": file_format,
        },
        table_order=parse_sort_order("s", table),
    )
    [file] = write_rows(target, batch_of(table, [[1], ["x" * 20]]))
    assert (file.lower_bounds, file.upper_bounds) == ({2: b"x" * 16}, {2: b"x" * 15 + b"y"})


def test_sizes_and_offsets_are_those_of_the_file(tmp_path: Path) -> None:
    table = schema(optional(1, "id", LongType()), optional(2, "s", StringType()))
    target = Target(
        f"file:{tmp_path}/t", table, properties={"write.parquet.row-group-size-bytes": "9000"}
    )
    batch = batch_of(table, [list(range(1000)), ["text"] * 1000])
    [file] = write_rows(target, batch, batch, limits=WriterLimits(staged_bytes=4000))
    path = Path(file.file_path.removeprefix("file:"))
    footer = pq.read_metadata(path)
    assert file.file_size_in_bytes == path.stat().st_size
    assert footer.num_row_groups > 1
    assert len(file.split_offsets or ()) == footer.num_row_groups
    assert list(file.split_offsets or ()) == sorted(file.split_offsets or ())
    assert (file.split_offsets or ())[0] == 4
    total = sum(footer.row_group(n).column(0).total_compressed_size
                for n in range(footer.num_row_groups))  # fmt: skip
    assert (file.column_sizes or {})[1] == total


# --- Nested, and Iceberg Java's own ---------------------------------------------------------------


def test_leaves_in_lists_and_maps_have_sizes_only(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "point": {"x": NAN, "y": 3, "deep": {"text": "t"}},
        "tags": ["a", "b"],
        "attributes": [("k", 1.0)],
        "points": [{"x": 1, "at": None}],
        "matrix": [[1.0]],
    }
    batch = pa.RecordBatch.from_pylist([row], schema=arrow_schema(nested()))
    file = one_file(tmp_path, nested(), batch)
    assert set(file.column_sizes or {}) == {1, 10, 11, 13, 14, 15, 16, 18, 19, 21}
    assert file.value_counts == {1: 1, 10: 1, 11: 1, 13: 1}
    assert file.nan_value_counts == {10: 1}
    assert set(file.lower_bounds or {}) == {1, 11, 13}


@pytest.mark.parametrize(
    "name",
    [
        "v2_all_types",
        "v3_all_types",
        "v2_nested",
        "v2_metrics_modes",
        "v2_odd_names",
        "v2_time_all",
    ],
)
def test_rows_of_iceberg_java_written_again_have_the_metrics_that_it_recorded(
    tmp_path: Path, name: str
) -> None:
    folder = table_dir(name)
    expected = json.loads((folder / "expected.json").read_text())
    [metadata] = [
        json.loads(path.read_text())
        for path in (folder / "metadata").glob("*.metadata.json")
        if path.name == expected["metadata_location"].rpartition("/")[2]
    ]
    [current] = [s for s in metadata["schemas"] if s["schema-id"] == metadata["current-schema-id"]]
    table = parse_schema(current)
    for number, recorded in enumerate(expected["live_data_files"]):
        source = folder / recorded["file_path"].partition(f"/{name}/")[2]
        rows = pq.ParquetFile(source).read().combine_chunks()
        original = [column.name for column in table.fields]
        batch = rows.rename_columns(original).to_batches()[0]
        target = Target(
            f"file:{tmp_path}/{number}", table, properties=metadata.get("properties", {})
        )
        matched = match_columns(batch.schema, table)
        [file] = write_rows(target, matched.conform(batch))
        assert java_metrics(recorded) == {
            "record_count": file.record_count,
            "sized": set(file.column_sizes or {}),
            "value_counts": file.value_counts,
            "null_value_counts": file.null_value_counts,
            "nan_value_counts": file.nan_value_counts,
            "lower_bounds": file.lower_bounds,
            "upper_bounds": file.upper_bounds,
        }


def java_metrics(recorded: dict[str, Any]) -> dict[str, object]:
    def numbers(key: str) -> dict[int, int]:
        return {int(field_id): count for field_id, count in recorded[key].items()}

    def bounds(key: str) -> dict[int, bytes]:
        return {int(i): bytes.fromhex(bound["hex"]) for i, bound in recorded[key].items()}

    return {
        "record_count": recorded["record_count"],
        "sized": {int(field_id) for field_id in recorded["column_sizes"]},
        "value_counts": numbers("value_counts"),
        "null_value_counts": numbers("null_value_counts"),
        "nan_value_counts": numbers("nan_value_counts"),
        "lower_bounds": bounds("lower_bounds"),
        "upper_bounds": bounds("upper_bounds"),
    }


def test_a_variant_has_its_counts_and_neither_bounds_nor_sizes(tmp_path: Path) -> None:
    """As Iceberg Java has it for the same rows."""
    table = schema(optional(1, "v", VariantType()), optional(2, "s", StringType()))
    variants = [{"metadata": b"M", "value": b"V"}, None, {"metadata": b"M", "value": b"W"}]
    batch = pa.record_batch([variants, ["a", "b", "c"]], schema=arrow_schema(table))
    [file] = write_rows(Target(f"file:{tmp_path}/t", table), batch)
    assert (file.value_counts, file.null_value_counts) == ({1: 3, 2: 3}, {1: 1, 2: 0})
    assert set(file.column_sizes or {}) == {2}
    assert (file.lower_bounds, file.upper_bounds) == ({2: b"a"}, {2: b"c"})
