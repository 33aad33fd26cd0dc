"""ORC data files: what our own reader finds in them, and what is refused."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import orc

from committer.errors import PublishError, UnsupportedError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.single_value import decode_value
from committer.iceberg.values.types import (
    BinaryType,
    DoubleType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    VariantType,
)
from tests.support.workers.tables import nested, optional, required, schema, struct
from tests.support.workers.write_target import Target, files_below, path_of, spec_of, write_rows
from tests.workers.edge_rows import edge_rows, v2_primitives, whole_seconds
from tests.workers.format_rows import (
    TWO,
    batch_of,
    by_us,
    many_nested_rows,
    nested_rows,
    typed,
    write_file,
)
from workers.arrow.arrow_schema import arrow_schema
from workers.files.file_writer import WriterLimits

ORC = {"write.format.default": "orc"}


def write(folder: Path, table: Schema, rows: pa.RecordBatch, **properties: str) -> DataFile:
    return write_file(folder, "orc", table, rows, **properties)


# --- Values --------------------------------------------------------------------------------------


def test_every_type_is_read_back_with_its_extremes(tmp_path: Path) -> None:
    table, rows = v2_primitives(), whole_seconds(edge_rows())
    file = write(tmp_path, table, rows)
    assert list(map(repr, by_us(file, table))) == list(map(repr, rows.to_pylist()))


def test_lists_maps_and_structs_may_be_null_or_empty_at_every_level(tmp_path: Path) -> None:
    batch = batch_of(nested(), nested_rows())
    file = write(tmp_path, nested(), batch)
    assert repr(by_us(file, nested())) == repr(batch.to_pylist())


def test_rows_that_are_a_part_of_a_batch_are_written_and_no_others(tmp_path: Path) -> None:
    """pyarrow alone writes the nulls of other rows."""
    batch = many_nested_rows()
    file = write(tmp_path, nested(), batch.slice(7, 20))
    assert by_us(file, nested()) == batch.to_pylist()[7:27]


def test_what_is_inside_of_a_null_struct_is_no_value(tmp_path: Path) -> None:
    """pyarrow alone writes it where the struct is in another one in a list."""
    inner = struct(required(4, "text", StringType()))
    table = schema(optional(1, "c", ListType(2, struct(optional(3, "inner", inner)), False)))
    structs = [None, {"text": "a"}, None, {"text": "b"}, None, {"text": "d"}]
    rows: list[dict[str, Any]] = [{"c": [{"inner": one} for one in structs]}, {"c": None}]
    assert by_us(write(tmp_path, table, batch_of(table, rows)), table) == rows


@pytest.mark.thorough
@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_rows_of_random_types_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    ids = [0]
    kind, values = data.draw(typed(ids))
    is_required = data.draw(st.booleans())
    table = schema((required if is_required else optional)(ids[0] + 1, "c", kind))
    rows = data.draw(st.lists(values if is_required else st.none() | values, max_size=12))
    batch = batch_of(table, [{"c": value} for value in rows])
    part = batch.slice(len(rows) // 3)
    if not part.num_rows:
        return
    file = write(tmp_path_factory.mktemp("o"), table, part)
    assert by_us(file, table) == part.to_pylist()


# --- Times before 1970 ---------------------------------------------------------------------------


def one(kind: IcebergType, value: object) -> tuple[Schema, pa.RecordBatch]:
    table = schema(optional(1, "c", kind))
    return table, batch_of(table, [{"c": None}, {"c": value}])


OLD = datetime(1969, 12, 31, 23, 59, 58, 500_000)
_OLD_TIMES: list[tuple[IcebergType, object, str]] = [
    (TimestampType(), OLD, "c"),
    (TimestamptzType(), OLD, "c"),
    (TimestampNanoType(), -1, "c"),
    (ListType(2, TimestampType(), False), [None, OLD], "c.element"),
    (MapType(2, StringType(), 3, TimestampType(), False), [("a", OLD)], "c.value"),
    (struct(optional(2, "at", TimestampType())), {"at": OLD}, "c.at"),
]


@pytest.mark.parametrize(("kind", "value", "path"), _OLD_TIMES, ids=lambda one: str(one)[:20])
def test_a_fraction_of_a_second_before_1970_is_refused_and_leaves_no_file(
    tmp_path: Path, kind: IcebergType, value: object, path: str
) -> None:
    table, rows = one(kind, value)
    with pytest.raises(PublishError, match=rf"column `{path}`: 1969-12-31 23:59:5\S+: ORC files"):
        write(tmp_path, table, rows)
    assert files_below(tmp_path) == []


@pytest.mark.parametrize(
    "moment",
    [datetime(1969, 12, 31, 23, 59, 59), datetime(1970, 1, 1, 0, 0, 0, 1), datetime(1700, 1, 1)],
)
def test_other_times_are_written(tmp_path: Path, moment: datetime) -> None:
    table, rows = one(TimestampType(), moment)
    assert by_us(write(tmp_path, table, rows), table) == [{"c": None}, {"c": moment}]


def test_an_old_time_inside_of_a_null_is_not_looked_at(tmp_path: Path) -> None:
    """Nobody reads what is inside of a null."""
    table = schema(optional(1, "c", struct(optional(2, "at", TimestampType()))))
    inner = pa.array([OLD, None], pa.timestamp("us"))
    kind = arrow_schema(table).field("c").type
    column = pa.StructArray.from_arrays([inner], fields=list(kind), mask=pa.array([True, False]))
    rows = pa.RecordBatch.from_arrays([column], schema=arrow_schema(table))
    assert by_us(write(tmp_path, table, rows), table) == [{"c": None}, {"c": {"at": None}}]


# --- Metrics -------------------------------------------------------------------------------------


def bounds(file: DataFile, number: int, kind: IcebergType) -> list[object]:
    return [
        None if found is None or number not in found else decode_value(kind, found[number])
        for found in (file.lower_bounds, file.upper_bounds)
    ]


def test_metrics_are_of_all_rows_of_a_file(tmp_path: Path) -> None:
    table = schema(optional(1, "d", DoubleType()), optional(2, "s", StringType()))
    batches = [
        batch_of(table, [{"d": number, "s": text} for number, text in rows])
        for rows in (
            [(1.5, "m"), (math.nan, None), (None, "x" * 20)],
            [(-math.inf, "b"), (0.0, "é"), (math.nan, None)],
        )
    ]
    limits = WriterLimits(row_group_bytes=1)
    target = Target(f"file:{tmp_path}/t", table, properties=ORC)
    [file] = write_rows(target, *batches, limits=limits)
    assert orc.ORCFile(path_of(file)).nstripes == 2
    assert (file.record_count, file.value_counts) == (6, {1: 6, 2: 6})
    assert (file.null_value_counts, file.nan_value_counts) == ({1: 1, 2: 2}, {1: 2})
    assert bounds(file, 1, DoubleType()) == [-math.inf, 1.5]
    assert bounds(file, 2, StringType()) == ["b", "é"]
    assert (file.file_format, path_of(file).suffix) == ("ORC", ".orc")
    assert file.file_size_in_bytes == path_of(file).stat().st_size


def test_bounds_hold_zeros_of_both_signs_and_cut_texts(tmp_path: Path) -> None:
    table = schema(optional(1, "d", DoubleType()), optional(2, "s", StringType()))
    rows = batch_of(table, [{"d": 0.0, "s": "a" * 20}, {"d": -0.0, "s": "a" * 20}])
    file = write(tmp_path, table, rows)
    assert repr(bounds(file, 1, DoubleType())) == "[-0.0, 0.0]"
    assert bounds(file, 2, StringType()) == ["a" * 16, "a" * 15 + "b"]


def test_columns_of_nothing_but_nulls_or_nan_and_binaries_have_no_bounds(tmp_path: Path) -> None:
    kinds: dict[str, IcebergType] = {"d": DoubleType(), "s": StringType(), "b": BinaryType()}
    table = schema(*(optional(at, name, kind) for at, (name, kind) in enumerate(kinds.items(), 1)))
    file = write(tmp_path, table, batch_of(table, [{"d": math.nan, "s": None, "b": b"a"}]))
    assert (file.lower_bounds, file.upper_bounds) == ({}, {})


def test_metrics_are_those_that_the_table_wants(tmp_path: Path) -> None:
    properties = {
        **ORC,
        "write.metadata.metrics.column.id": "none",
        "write.metadata.metrics.column.text": "counts",
    }
    target = Target(f"file:{tmp_path}/t", TWO, properties=properties)
    [file] = write_rows(target, batch_of(TWO, [{"id": 1, "text": "a"}]))
    assert (file.value_counts, file.lower_bounds) == ({2: 1}, {})


# --- Columns, stripes and codecs -----------------------------------------------------------------


def test_columns_have_their_attributes_at_every_level(tmp_path: Path) -> None:
    file = write(tmp_path, nested(), batch_of(nested(), nested_rows()))
    stored = orc.ORCFile(path_of(file)).schema
    assert stored.field("id").metadata == {
        b"iceberg.id": b"1",
        b"iceberg.required": b"true",
        b"iceberg.long-type": b"LONG",
    }
    point = stored.field("point").type
    assert point.field("y").metadata == {b"iceberg.id": b"11", b"iceberg.required": b"true"}
    attributes = stored.field("attributes").type
    assert attributes.key_field.metadata[b"iceberg.id"] == b"15"
    assert attributes.item_field.metadata[b"iceberg.id"] == b"16"


def thousands(count: int = 40_000) -> pa.RecordBatch:
    numbers = np.random.default_rng(7).integers(0, 1 << 40, count)
    texts = [f"text {number % 1000}" for number in numbers]
    arrays = [pa.array(numbers), pa.array(texts)]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(TWO))


@pytest.mark.parametrize(
    ("codec", "written"),
    [
        ("", "ZLIB"),
        ("zlib", "ZLIB"),
        ("ZSTD", "ZSTD"),
        ("snappy", "SNAPPY"),
        ("lz4", "LZ4"),
        ("none", "UNCOMPRESSED"),
    ],
)
def test_files_have_the_codec_of_the_table(tmp_path: Path, codec: str, written: str) -> None:
    given = {"compression_codec": codec} if codec else {}
    file = write(tmp_path, TWO, thousands(), **given)
    assert orc.ORCFile(path_of(file)).compression == written
    assert by_us(file, TWO) == thousands().to_pylist()


def test_each_write_is_one_stripe_and_none_of_it_waits(tmp_path: Path) -> None:
    properties = {**ORC, "write.orc.stripe-size-bytes": "100000"}
    target = Target(f"file:{tmp_path}/t", TWO, properties=properties)
    limits = WriterLimits(staged_bytes=200_000, row_group_bytes=400_000)
    [file] = write_rows(target, *(thousands() for _ in range(3)), limits=limits)
    stored = orc.ORCFile(path_of(file))
    assert 4 < stored.nstripes < 60
    assert stored.nrows == 120_000


def test_files_are_split_at_their_target_size_and_by_partition(tmp_path: Path) -> None:
    properties = {**ORC, "write.target-file-size-bytes": "150000"}
    spec = spec_of((1, "part", "bucket[2]"))
    target = Target(f"file:{tmp_path}/t", TWO, spec, properties)
    limits = WriterLimits(buffered_bytes=600_000, staged_bytes=100_000, row_group_bytes=100_000)
    files = write_rows(target, *(thousands() for _ in range(3)), limits=limits)
    assert {file.partition for file in files} == {(0,), (1,)}
    assert len(files) > 4
    assert max(file.file_size_in_bytes for file in files) < 260_000
    found = [row for file in files for row in by_us(file, TWO, spec)]
    assert sorted(map(repr, found)) == sorted(map(repr, thousands().to_pylist() * 3))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("compression_codec", "lzo"),
        ("compression_strategy", "best"),
        ("stripe_size_bytes", "0"),
    ],
)
def test_what_no_writer_knows_is_refused_before_a_file_is_made(
    tmp_path: Path, name: str, text: str
) -> None:
    with pytest.raises(UnsupportedError, match=f"write.orc.{name.replace('_', '-')}` is `{text}`"):
        write(tmp_path, TWO, thousands(1), **{name: text})
    assert files_below(tmp_path) == []


def test_a_variant_is_refused_before_a_file_is_made(tmp_path: Path) -> None:
    table = schema(optional(1, "n", LongType()), optional(2, "v", VariantType()))
    with pytest.raises(UnsupportedError, match="column `v`: ORC files hold no variants"):
        write(tmp_path, table, batch_of(table, [{"n": 1, "v": None}]))
    assert files_below(tmp_path) == []


def test_a_file_that_fails_is_deleted(tmp_path: Path) -> None:
    table, old = one(TimestampType(), OLD)
    _, young = one(TimestampType(), datetime(2026, 1, 1))
    target = Target(f"file:{tmp_path}/t", table, properties=ORC)
    with pytest.raises(PublishError, match="ORC files hold no time"):
        write_rows(target, young, old, limits=WriterLimits(row_group_bytes=1))
    assert files_below(tmp_path) == []
