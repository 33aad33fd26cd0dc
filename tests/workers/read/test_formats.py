"""ORC and Avro files: the same rows as from Parquet, of every type that Iceberg stores in them."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.container import encode_header, read_header
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.scan.task_part import TaskPart
from committer.iceberg.schema.metadata_columns import ROW_POSITION
from committer.iceberg.schema.name_mapping import create_name_mapping
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from tests.support.workers.reading import entry_of, read_all, read_of, rows_of, task_of
from tests.support.workers.tables import optional, required, schema, struct
from workers.arrow.arrow_types import children
from workers.read.read_types import read_array

IDS = schema(required(1, "id", LongType()), optional(2, "name", StringType()))
U = UUID(int=7 << 100)


def orc_file(folder: Path, table: pa.Table, known: Schema, **options: Any) -> DataFile:
    """Write a file as Iceberg's writers do, each column with its id."""
    ids = iter(range(1, 100))

    def with_id(field: pa.Field) -> pa.Field:
        metadata = {"iceberg.id": str(next(ids))}
        inner = [with_id(one) for one in children(field.type)]
        kind = field.type
        if pa.types.is_struct(kind):
            kind = pa.struct(inner)
        return pa.field(field.name, kind, field.nullable, metadata)

    path = folder / "data.orc"
    fields = pa.schema([with_id(field) for field in table.schema])
    orc.write_table(pa.Table.from_arrays(table.columns, schema=fields), path, **options)
    return entry_of(path, table.num_rows)


def avro_file(folder: Path, fields: list[Any], rows: list[Any], **options: Any) -> DataFile:
    path = folder / "data.avro"
    with path.open("wb") as file:
        schema_json = {"type": "record", "name": "table", "fields": fields}
        fastavro.writer(file, schema_json, rows, **options)
    return entry_of(path, len(rows))


AVRO_IDS = [
    {"name": "id", "type": "long", "field-id": 1},
    {"name": "name", "type": ["null", "string"], "field-id": 2},
]


def ten_of(folder: Path, format: str) -> DataFile:
    names = [None if at == 4 else f"n{at}" for at in range(10)]
    if format == "orc":
        table = pa.table({"id": pa.array(range(10), pa.int64()), "name": names})
        return orc_file(folder, table, IDS)
    rows = [{"id": at, "name": names[at]} for at in range(10)]
    return avro_file(folder, AVRO_IDS, rows, sync_interval=40)


@pytest.mark.parametrize("format", ["orc", "avro"])
def test_wanted_columns_are_read_by_id_with_positions_and_filters(
    tmp_path: Path, format: str
) -> None:
    turned = schema(optional(2, "id", StringType()), required(1, "n", LongType()))
    task = task_of(ten_of(tmp_path, format), residual=parse_where("n > 7 or id is null"))
    read = read_of(turned, columns=[turned.fields[0], ROW_POSITION])
    assert rows_of(read, task) == [(None, 4), ("n8", 8), ("n9", 9)]
    assert read_all(read_of(turned, columns=[]), task_of(task.file)).num_rows == 10


@pytest.mark.parametrize("format", ["orc", "avro"])
def test_a_file_is_read_by_the_part_that_has_its_start(tmp_path: Path, format: str) -> None:
    task = task_of(ten_of(tmp_path, format))
    assert len(rows_of(read_of(IDS), TaskPart(task, 0, 1))) == 10
    assert rows_of(read_of(IDS), TaskPart(task, 1, 10_000)) == []


@pytest.mark.parametrize("format", ["orc", "avro"])
def test_delete_files_may_have_any_format(tmp_path: Path, format: str) -> None:
    (tmp_path / "d").mkdir()
    file = ten_of(tmp_path, format)
    deletes = replace(
        ten_of(tmp_path / "d", format),
        content=DataFileContent.EQUALITY_DELETES,
        equality_ids=(1,),
    )
    assert rows_of(read_of(IDS), task_of(file, deletes)) == []


# --- ORC -----------------------------------------------------------------------------------------

ORC_KINDS: list[tuple[IcebergType, pa.DataType, list[Any]]] = [
    (TimeType(), pa.int64(), [5, None]),
    (TimestampType(), pa.timestamp("us"), [-1, 1 << 50]),
    (TimestampNanoType(), pa.timestamp("ns"), [-1, 1 << 60]),
    (UUIDType(), pa.binary(), [U.bytes, None]),
    (FixedType(2), pa.binary(), [b"ab", None]),
    (DecimalType(9, 2), pa.decimal128(9, 2), [Decimal("1.25"), None]),
    (StringType(), pa.string(), ["é", None]),
]


@pytest.mark.parametrize(("kind", "stored", "values"), ORC_KINDS, ids=lambda one: str(one))
def test_types_that_orc_does_not_have_are_those_of_the_table(
    tmp_path: Path, kind: IcebergType, stored: pa.DataType, values: list[Any]
) -> None:
    if pa.types.is_timestamp(stored):
        column = pa.array(values, pa.int64()).view(stored)
    else:
        column = pa.array(values, stored)
    known = schema(optional(1, "c", kind))
    file = orc_file(tmp_path, pa.table({"c": column}), known)
    found = read_all(read_of(known), task_of(file)).column(0).combine_chunks()
    wanted = [U if value == U.bytes else value for value in values]
    assert found.equals(read_array(wanted, kind))


def test_parts_of_structs_are_wanted_of_orc_files_too(tmp_path: Path) -> None:
    inner = struct(optional(2, "x", LongType()), optional(3, "y", StringType()))
    known = schema(optional(1, "s", inner), optional(4, "z", LongType()))
    rows = pa.table({"s": [{"x": 1, "y": "a"}, None], "z": [1, 2]})
    file = orc_file(tmp_path, rows, known)
    narrow = optional(1, "s", struct(optional(3, "y", StringType())))
    assert rows_of(read_of(known, columns=[narrow]), task_of(file)) == [({"y": "a"},), (None,)]


def test_a_name_with_a_dot_is_not_a_path(tmp_path: Path) -> None:
    rows = pa.table({"a": [{"b": 1}], "a.b": pa.array([3], pa.int64())})
    known = schema(optional(3, "a.b", LongType()))
    file = orc_file(tmp_path, rows, known)
    assert rows_of(read_of(known), task_of(file)) == [(3,)]


def test_a_time_that_arrow_cannot_hold_is_an_error_and_no_other_time(tmp_path: Path) -> None:
    known = schema(optional(1, "c", TimestampType()))
    far = pa.array([253402300799000000], pa.int64()).view(pa.timestamp("us"))
    file = orc_file(tmp_path, pa.table({"c": far}), known)
    with pytest.raises(InvalidMetadataError, match=r"data\.orc.*range"):
        rows_of(read_of(known), task_of(file))


# --- Avro ----------------------------------------------------------------------------------------


def logical(kind: Any, name: str, **more: Any) -> Any:
    return {**(kind if isinstance(kind, dict) else {"type": kind}), "logicalType": name, **more}


FIXED16 = {"type": "fixed", "name": "f16", "size": 16}
AVRO_KINDS: list[tuple[IcebergType, Any, list[Any], list[Any]]] = [
    (TimeType(), logical("long", "time-micros"), [5], [5]),
    (TimeType(), logical("int", "time-millis"), [5], [5_000]),
    (TimestampType(), logical("long", "timestamp-micros", **{"adjust-to-utc": False}), [-7], [-7]),
    (TimestampType(), logical("long", "timestamp-micros"), [-7], [-7]),
    (TimestamptzType(), logical("long", "timestamp-millis"), [-7], [-7_000]),
    (TimestampNanoType(), logical("long", "timestamp-nanos"), [7], [7]),
    (UUIDType(), logical(FIXED16, "uuid"), [U.bytes], [U]),
    (UUIDType(), logical("string", "uuid"), [str(U)], [U]),
    (UUIDType(), FIXED16, [U.bytes], [U]),
    (
        DecimalType(9, 2),
        logical({"type": "fixed", "name": "d", "size": 4}, "decimal", precision=9, scale=2),
        [b"\xff\xff\xff\x83"],
        [Decimal("-1.25")],
    ),
    (FixedType(16), FIXED16, [U.bytes], [U.bytes]),
]


@pytest.mark.parametrize(
    ("kind", "stored", "written", "wanted"), AVRO_KINDS, ids=lambda one: str(one)[:40]
)
def test_every_logical_type_of_avro_is_read(
    tmp_path: Path, kind: IcebergType, stored: Any, written: list[Any], wanted: list[Any]
) -> None:
    rows = [{"c": value} for value in (*written, None)]
    plain = {key: value for key, value in stored.items() if key != "logicalType"}
    file = avro_file(tmp_path, [{"name": "c", "type": ["null", plain], "field-id": 1}], rows)
    # The test's writer would take values of Python's types, which write the same bytes.
    path = tmp_path / "data.avro"
    typed = [{"name": "c", "type": ["null", stored], "field-id": 1}]
    path.write_bytes(with_fields(path.read_bytes(), typed))
    known = schema(optional(1, "c", kind))
    found = read_all(read_of(known), task_of(file))
    assert found.column(0).combine_chunks().equals(read_array([*wanted, None], kind))


def with_fields(content: bytes, fields: list[Any]) -> bytes:
    """Return the blocks of a file behind a header with other fields."""
    header = read_header(content)
    schema_json = {"type": "record", "name": "table", "fields": fields}
    metadata = {"avro.schema": json.dumps(schema_json).encode(), "avro.codec": b"null"}
    return encode_header(metadata, header.sync) + content[header.end_offset :]


def test_nested_columns_of_avro_are_read(tmp_path: Path) -> None:
    uuid = {"type": "string", "logicalType": "uuid"}

    def record(first_id: int) -> dict[str, Any]:
        types = [("x", "long"), ("u", uuid)]
        fields = [
            {"name": name, "type": ["null", kind], "field-id": first_id + at}
            for at, (name, kind) in enumerate(types)
        ]
        return {"type": "record", "name": f"r{first_id}", "fields": fields}

    pair = {"type": "record", "name": "k7_v8", "fields": [
        {"name": "key", "type": "long", "field-id": 7},
        {"name": "value", "type": ["null", "string"], "field-id": 8},
    ]}  # fmt: skip
    points = {"type": "array", "items": record(20), "element-id": 9}
    pairs = {"type": "array", "logicalType": "map", "items": pair}
    texts = {"type": "map", "values": "long", "key-id": 10, "value-id": 11}
    fields = [
        {"name": "s", "type": ["null", record(5)], "field-id": 1},
        {"name": "l", "type": ["null", points], "field-id": 2},
        {"name": "m", "type": pairs, "field-id": 3},
        {"name": "t", "type": texts, "field-id": 4},
    ]
    one, none = {"x": 1, "u": str(U)}, {"x": None, "u": None}
    rows = [
        {"s": one, "l": [one, none], "m": [{"key": 1, "value": "a"}], "t": {"k": 2}},
        {"s": None, "l": None, "m": [], "t": {}},
    ]
    kind = struct(optional(5, "x", LongType()), optional(6, "u", UUIDType()))
    element = struct(optional(20, "x", LongType()), optional(21, "u", UUIDType()))
    known = schema(
        optional(1, "s", kind),
        optional(2, "l", ListType(9, element, False)),
        optional(3, "m", MapType(7, LongType(), 8, StringType(), False)),
        optional(4, "t", MapType(10, StringType(), 11, LongType(), True)),
    )
    found = rows_of(read_of(known), task_of(avro_file(tmp_path, fields, rows)))
    first = {"x": 1, "u": U}
    assert found == [
        (first, [first, {"x": None, "u": None}], [(1, "a")], [("k", 2)]),
        (None, None, [], []),
    ]


def test_columns_without_ids_are_found_by_a_name_mapping(tmp_path: Path) -> None:
    fields = [{key: field[key] for key in ("name", "type")} for field in AVRO_IDS]
    file = avro_file(tmp_path, fields, [{"id": 1, "name": "a"}])
    read = read_of(IDS, mapping=create_name_mapping(IDS))
    assert rows_of(read, task_of(file)) == [(1, "a")]


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_damaged_avro_file_is_named(tmp_path: Path, cut: int) -> None:
    file = ten_of(tmp_path, "avro")
    path = tmp_path / "data.avro"
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(InvalidMetadataError, match=r"data\.avro"):
        rows_of(read_of(IDS), task_of(file))
