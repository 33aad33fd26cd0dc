"""Avro data files: what a library of Avro and our own reader find in them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from committer.errors import UnsupportedError
from committer.iceberg.avro.codecs import BLOCK_BYTES_MAX
from committer.iceberg.avro.container import iter_blocks, iter_raw_blocks, read_header
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    VariantType,
)
from tests.support.builders.fixtures import fixtures_dir
from tests.support.workers.reading import read_all, read_of, task_of
from tests.support.workers.tables import all_primitives, nested, optional, required, schema, struct
from tests.support.workers.write_target import Target, files_below, path_of, spec_of, write_rows
from tests.workers.edge_rows import edge_rows, v2_primitives
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

AVRO = {"write.format.default": "avro"}


def write(folder: Path, table: Schema, rows: pa.RecordBatch, **properties: str) -> DataFile:
    return write_file(folder, "avro", table, rows, **properties)


def by_fastavro(file: DataFile) -> list[Any]:
    with path_of(file).open("rb") as content:
        return list(fastavro.reader(content))


def headers(path: Path) -> Mapping[str, bytes]:
    return read_header(path.read_bytes()).metadata


# --- Values --------------------------------------------------------------------------------------


def test_every_type_is_read_back_with_its_extremes(tmp_path: Path) -> None:
    table, rows = v2_primitives(), edge_rows()
    file = write(tmp_path, table, rows)
    assert list(map(repr, by_us(file, table))) == list(map(repr, rows.to_pylist()))


def test_a_library_of_avro_reads_every_type(tmp_path: Path) -> None:
    table, rows = v2_primitives(), edge_rows()
    found = by_fastavro(write(tmp_path, table, rows))
    wanted = rows.to_pylist()
    for name in ("boolean", "int", "long", "double", "decimal9", "decimal18", "decimal38", "date"):
        assert repr([row[name] for row in found]) == repr([row[name] for row in wanted]), name
    for name in ("string", "fixed", "binary", "time"):
        assert [row[name] for row in found] == [row[name] for row in wanted], name
    # The library leaves a uuid that is no text as it is.
    assert [row["uuid"] and UUID(bytes=row["uuid"]) for row in found] == [
        row["uuid"] for row in wanted
    ]
    assert math.isnan(found[0]["float"]) and math.copysign(1, found[1]["float"]) == -1
    assert [row["timestamptz"] for row in found] == [row["timestamptz"] for row in wanted]


def test_nanoseconds_are_written_whole(tmp_path: Path) -> None:
    table = Schema(tuple(f for f in all_primitives().fields if f.name.endswith("_ns")))
    numbers = [-(2**63), -1, 0, 2**63 - 1, None]
    arrays = [pa.array(numbers, pa.int64()).cast(field.type) for field in arrow_schema(table)]
    rows = pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table))
    read = read_all(read_of(table), task_of(write(tmp_path, table, rows)))
    assert read.column("timestamp_ns").cast(pa.int64()).to_pylist() == numbers
    assert read.column("timestamptz_ns").cast(pa.int64()).to_pylist() == numbers


def test_lists_maps_and_structs_may_be_null_or_empty_at_every_level(tmp_path: Path) -> None:
    table = nested()
    rows = nested_rows()
    batch = batch_of(table, rows)
    file = write(tmp_path, table, batch)
    assert repr(by_us(file, table)) == repr(batch.to_pylist())
    for row in rows:
        row["attributes"] = None if row["attributes"] is None else dict(row["attributes"])
    assert repr(by_fastavro(file)) == repr(rows)


def test_rows_that_are_a_part_of_a_batch_are_written_and_no_others(tmp_path: Path) -> None:
    table = nested()
    batch = many_nested_rows()
    file = write(tmp_path, table, batch.slice(7, 20))
    assert by_us(file, table) == batch.to_pylist()[7:27]


def test_a_map_without_texts_as_keys_is_an_array_of_pairs(tmp_path: Path) -> None:
    kind = MapType(2, IntegerType(), 3, struct(optional(4, "a", LongType())), False)
    table = schema(optional(1, "m", kind))
    rows: list[dict[str, Any]] = [{"m": [(1, {"a": 5}), (-7, None)]}, {"m": None}, {"m": []}]
    file = write(tmp_path, table, batch_of(table, rows))
    assert by_us(file, table) == rows
    pairs = [{"key": 1, "value": {"a": 5}}, {"key": -7, "value": None}]
    assert by_fastavro(file) == [{"m": pairs}, {"m": None}, {"m": []}]


def test_a_variant_is_a_record_of_its_two_parts(tmp_path: Path) -> None:
    table = schema(optional(1, "v", VariantType()))
    rows: list[dict[str, Any]] = [
        {"v": {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"}},
        {"v": None},
    ]
    file = write(tmp_path, table, batch_of(table, rows))
    assert by_fastavro(file) == rows
    assert by_us(file, table) == rows


@pytest.mark.thorough
@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_rows_of_random_types_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    ids = [0]
    kind, values = data.draw(typed(ids))
    is_required = data.draw(st.booleans())
    column = (required if is_required else optional)(ids[0] + 1, "c", kind)
    table = schema(column)
    rows = data.draw(
        st.lists(values if is_required else st.none() | values, max_size=12, min_size=1)
    )
    batch = batch_of(table, [{"c": value} for value in rows])
    file = write(tmp_path_factory.mktemp("a"), table, batch)
    assert by_us(file, table) == batch.to_pylist()
    assert len(by_fastavro(file)) == len(rows)


# --- Headers, blocks and codecs ------------------------------------------------------------------


def test_headers_are_those_of_java(tmp_path: Path) -> None:
    [java] = (fixtures_dir() / "java" / "v2_formats" / "data").glob("*-0-00001.avro")
    table = schema(
        required(1, "id", LongType()),
        required(2, "name", StringType()),
        required(3, "v", v2_primitives().fields[4].field_type),
    )
    rows = batch_of(table, [{"id": 1, "name": "a", "v": 0.5}])
    assert headers(path_of(write(tmp_path, table, rows))) == headers(java)


def test_columns_have_their_ids_and_names_at_every_level(tmp_path: Path) -> None:
    tags = ListType(3, MapType(4, StringType(), 5, LongType(), False), True)
    table = schema(optional(1, "a b.c", StructType((required(2, "tags", tags),))))
    file = write(tmp_path, table, batch_of(table, [{"a_x20b_x2Ec": None}]))
    values = {"type": "map", "values": ["null", "long"], "key-id": 4, "value-id": 5}
    inner = {"type": "array", "items": values, "element-id": 3}
    fields = [{"name": "tags", "type": inner, "field-id": 2}]
    record = {"type": "record", "name": "r1", "fields": fields}
    assert read_header(path_of(file).read_bytes()).schema_json == {
        "type": "record",
        "name": "table",
        "fields": [
            {
                "name": "a_x20b_x2Ec",
                "type": ["null", record],
                "default": None,
                "iceberg-field-name": "a b.c",
                "field-id": 1,
            }
        ],
    }


def thousands(count: int = 20_000) -> pa.RecordBatch:
    numbers = np.random.default_rng(7).integers(0, 1000, count)
    texts = [f"text {number}" for number in numbers]
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers), pa.array(texts)], schema=arrow_schema(TWO)
    )


@pytest.mark.parametrize(
    ("codec", "written"),
    [
        ("gzip", "deflate"),
        ("ZSTD", "zstandard"),
        ("snappy", "snappy"),
        ("uncompressed", "null"),
    ],
)
def test_blocks_have_the_codec_of_the_table(tmp_path: Path, codec: str, written: str) -> None:
    file = write(tmp_path, TWO, thousands(), compression_codec=codec)
    assert headers(path_of(file))["avro.codec"] == written.encode()
    assert by_us(file, TWO) == thousands().to_pylist()


def test_the_level_of_the_table_is_that_of_its_codec(tmp_path: Path) -> None:
    sizes = {
        (codec, level): write(
            tmp_path / codec / level,
            TWO,
            thousands(),
            compression_codec=codec,
            compression_level=level,
        ).file_size_in_bytes
        for codec in ("gzip", "zstd")
        for level in ("1", "9")
    }
    assert sizes["gzip", "9"] < sizes["gzip", "1"]
    assert sizes["zstd", "9"] < sizes["zstd", "1"]


def test_a_block_ends_when_it_has_64000_bytes(tmp_path: Path) -> None:
    content = path_of(write(tmp_path, TWO, thousands(50_000))).read_bytes()
    blocks = [len(raw) for _, raw in iter_raw_blocks(content, read_header(content))]
    assert len(blocks) > 5
    assert all(64_000 <= size < 64_100 for size in blocks[:-1])


def test_rows_that_are_wider_than_a_block_have_one_each(tmp_path: Path) -> None:
    texts = ["x" * 70_000, "y" * 200_000, "", "z"]
    rows = batch_of(TWO, [{"id": n, "text": text} for n, text in enumerate(texts)])
    file = write(tmp_path, TWO, rows)
    content = path_of(file).read_bytes()
    assert [block.count for block in iter_blocks(content, read_header(content))] == [1, 1, 2]
    assert by_us(file, TWO) == rows.to_pylist()


@pytest.mark.thorough
@pytest.mark.parametrize("codec", ["gzip", "zstd", "uncompressed"])
def test_a_row_that_is_larger_than_a_block_of_a_manifest_may_be_is_read(
    tmp_path: Path, codec: str
) -> None:
    rows = batch_of(TWO, [{"id": 1, "text": "x" * (BLOCK_BYTES_MAX + 1)}])
    file = write(tmp_path, TWO, rows, compression_codec=codec)
    assert by_us(file, TWO) == rows.to_pylist()


@pytest.mark.parametrize(
    ("name", "text"), [("compression_codec", "brotli"), ("compression_level", "high")]
)
def test_what_no_writer_knows_is_refused_before_a_file_is_made(
    tmp_path: Path, name: str, text: str
) -> None:
    with pytest.raises(UnsupportedError, match=f"write.avro.{name.replace('_', '-')}` is `{text}`"):
        write(tmp_path, TWO, thousands(1), **{name: text})
    assert files_below(tmp_path) == []


# --- Files ---------------------------------------------------------------------------------------


def test_a_file_s_entry_has_its_rows_and_no_other_metrics(tmp_path: Path) -> None:
    file = write(tmp_path, TWO, thousands(10))
    assert (file.file_format, file.record_count) == ("AVRO", 10)
    assert file.file_size_in_bytes == path_of(file).stat().st_size
    assert path_of(file).suffix == ".avro"
    found = (file.column_sizes, file.value_counts, file.null_value_counts, file.nan_value_counts)
    assert found == (None, None, None, None)
    assert (file.lower_bounds, file.upper_bounds, file.split_offsets) == (None, None, None)


def test_files_are_split_at_their_target_size_and_by_partition(tmp_path: Path) -> None:
    properties = {**AVRO, "write.target-file-size-bytes": "60000"}
    properties["write.avro.compression-codec"] = "uncompressed"
    spec = spec_of((1, "part", "bucket[2]"))
    target = Target(f"file:{tmp_path}/t", TWO, spec, properties)
    limits = WriterLimits(buffered_bytes=400_000, staged_bytes=100_000, row_group_bytes=50_000)
    files = write_rows(target, *(thousands() for _ in range(3)), limits=limits)
    assert {file.partition for file in files} == {(0,), (1,)}
    assert len(files) > 5
    assert max(file.file_size_in_bytes for file in files) < 130_000
    found = [row for file in files for row in by_us(file, TWO, spec)]
    wanted = thousands().to_pylist() * 3
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_decimals_and_uuids_are_stored_in_the_bytes_that_they_need(tmp_path: Path) -> None:
    table, rows = v2_primitives(), edge_rows()
    parsed: Any = read_header(path_of(write(tmp_path, table, rows)).read_bytes()).schema_json
    kinds = {field["name"]: field["type"][1] for field in parsed["fields"]}
    assert [kinds[f"decimal{digits}"]["size"] for digits in (9, 18, 38)] == [4, 8, 16]
    assert kinds["uuid"] == {
        "type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid",
    }  # fmt: skip
    assert kinds["timestamptz"]["adjust-to-utc"] is True
    assert kinds["timestamp"]["adjust-to-utc"] is False
    assert (Decimal("0.01"), UUID(int=1)) == (rows["decimal9"][1].as_py(), rows["uuid"][0].as_py())
