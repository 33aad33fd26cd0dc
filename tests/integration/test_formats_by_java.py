"""Avro and ORC data files of ours beside Iceberg Java.

It reads from them the rows of our Parquet files, and for the same rows it writes files with the
same columns and metrics.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyarrow import orc

from committer.iceberg.avro.container import read_header
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
    VariantType,
)
from tests.support.integration.java_engine import JavaEngine, java_engine
from tests.support.integration.readers import local
from tests.support.integration.real_harness import RealHarness
from tests.support.integration.written_table import Row, WrittenTable
from tests.support.workers.reading import read_all, read_of, task_of
from workers.arrow.arrow_types import children

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(180)]

FORMATS = ("avro", "orc")
VERSIONS = (1, 2, 3)
FORMER = [pytest.param(version, marks=pytest.mark.heavy) for version in (1, 2)]


def _schema(start: int, **columns: IcebergType) -> tuple[NestedField, ...]:
    numbered = enumerate(columns.items(), start)
    return tuple(NestedField(at, name, kind, False) for at, (name, kind) in numbered)


POINT = StructType(
    (NestedField(50, "x", DoubleType(), False), NestedField(51, "y", LongType(), True))
)
INNER = StructType((NestedField(62, "text", StringType(), True),))
# Types that Spark has.
SPARKS = _schema(
    1,
    id=LongType(),
    b=BooleanType(),
    i=IntegerType(),
    f=FloatType(),
    d=DoubleType(),
    d4=DecimalType(4, 1),
    d9=DecimalType(9, 2),
    d18=DecimalType(18, 4),
    d38=DecimalType(38, 10),
    dt=DateType(),
    ts=TimestampType(),
    tz=TimestamptzType(),
    s=StringType(),
    bn=BinaryType(),
    u=UUIDType(),
    fx=FixedType(3),
    point=POINT,
    tags=ListType(52, StringType(), False),
    points=ListType(53, StructType(
        (NestedField(54, "at", DateType(), False), NestedField(55, "n", IntegerType(), True))
    ), False),
    counts=MapType(56, StringType(), 57, LongType(), False),
    pairs=MapType(58, IntegerType(), 59, StringType(), False),
    deep=ListType(60, StructType((NestedField(61, "inner", INNER, False),)), False),
)  # fmt: skip
OTHERS = _schema(40, tm=TimeType())
NANOS = _schema(41, tn=TimestampNanoType(), tzn=TimestamptzNanoType())
VARIANTS = _schema(43, v=VariantType())

MOMENTS: list[datetime | None] = [
    datetime(1677, 9, 22),
    datetime(1969, 12, 31, 23, 59, 58),
    None,
    datetime(2026, 2, 3, 4, 5, 6, 789),
]
VALUES: dict[str, list[Any]] = {
    "id": [-(2**63), 0, 2**63 - 1, 1],
    "b": [True, False, None, True],
    "i": [-(2**31), 0, 2**31 - 1, None],
    "f": [1.5, math.nan, math.inf, None],
    "d": [-math.inf, 0.0, 5e-324, math.nan],
    "d4": [Decimal("-999.9"), Decimal("0.1"), None, Decimal("999.9")],
    "d9": [Decimal("-9999999.99"), Decimal("0.01"), None, Decimal("1.00")],
    "d18": [Decimal("-99999999999999.9999"), None, Decimal("0"), Decimal("0.0001")],
    "d38": [Decimal("-9999999999999999999999999999.9999999999"), Decimal(1), None, None],
    "dt": [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31), None],
    "ts": MOMENTS,
    "tz": MOMENTS,
    "s": ["", "é😀" * 20, None, "z" * 5000],
    "bn": [b"", b"\xff" * 20, None, b"\x80"],
    "u": [UUID(int=0), UUID(int=2**128 - 1), None, UUID(int=1)],
    "fx": [b"\x00\x00\x00", b"\xff\x00\xff", None, b"abc"],
    "point": [{"x": 1.5, "y": 2}, {"x": None, "y": -1}, None, {"x": math.nan, "y": 0}],
    "tags": [["a", None, ""], [], None, ["b"]],
    "points": [[{"at": date(1969, 1, 1), "n": 1}, None], [], None, [{"at": None, "n": 2}]],
    "counts": [[("k", 1), ("", None)], [], None, [("m", -1)]],
    "pairs": [[(1, "a"), (-2, None)], [], None, [(0, "")]],
    "deep": [
        # pyarrow alone shifts the texts behind a null.
        [{"inner": None}, {"inner": {"text": "a"}}, {"inner": {"text": "c"}}],
        [{"inner": None}, {"inner": {"text": "b"}}],
        None,
        [],
    ],
    "tm": [time(0), time(23, 59, 59, 999_999), None, time(12)],
    "tn": [-(10**9), 0, None, 10**18 + 1],
    "tzn": [-(10**18), 1, None, 0],
    "v": [{"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"}, None, None, None],
}


def rows_of(table: Schema) -> list[Row]:
    names = [field.name for field in table.fields]
    columns = [VALUES[name] for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def sparks_schema() -> Schema:
    return Schema(SPARKS)


@dataclass(slots=True)
class Written:
    """The same rows in our files of each format, and in files of Java."""

    java: JavaEngine
    tables: dict[str, WrittenTable]

    def sql(self, name: str) -> list[list[Any]]:
        """Return the rows of a table as Spark reads them, as texts."""
        columns = ", ".join(
            f"hex(`{each.name}`)" if each.field_type in (BinaryType(), FixedType(3))
            else f"CAST(`{each.name}` AS STRING)"
            for each in self.tables[name].metadata.current_schema.fields
        )  # fmt: skip
        return self.java.sql(f"SELECT {columns} FROM frazil.db.{name} ORDER BY id")


def build(
    folder: Path, fields: tuple[NestedField, ...], version: int, **named: str
) -> WrittenTable:
    properties = {f"write.{name.replace('_', '.')}": text for name, text in named.items()}
    return WrittenTable.create(
        folder, Schema(fields), format_version=version, properties=properties
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    folder = tmp_path_factory.mktemp("formats")
    harness = RealHarness(folder)
    harness.warehouse.mkdir()
    tables: dict[str, WrittenTable] = {}
    for version in VERSIONS:
        for name in ("parquet", *FORMATS):
            table = build(folder / f"{name}_v{version}", SPARKS, version, format_default=name)
            table.append(rows_of(Schema(SPARKS)))
            tables[f"{name}_v{version}"] = table
            tables[f"java_{name}_v{version}"] = build(
                folder / f"java_{name}_v{version}", SPARKS, version, format_default=name
            )
    with java_engine(harness) as java:
        java.sql("CREATE NAMESPACE frazil.db")
        for name, table in tables.items():
            java.sql(
                f"CALL frazil.system.register_table(table => 'db.{name}',"
                f" metadata_file => '{table.metadata_location}')"
            )
            if name.startswith("java_"):
                source = name.replace(name.split("_")[1], "parquet", 1).removeprefix("java_")
                java.sql(f"INSERT INTO frazil.db.{name} SELECT * FROM frazil.db.{source}")
                [[location]] = java.sql(
                    f"SELECT file FROM frazil.db.{name}.metadata_log_entries"
                    " ORDER BY timestamp DESC LIMIT 1"
                )
                table.reload(location)
        yield Written(java, tables)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FORMATS)
def test_spark_reads_every_row_of_our_files(written: Written, name: str, version: int) -> None:
    wanted = written.sql(f"parquet_v{version}")
    assert len(wanted) == 4
    assert written.sql(f"{name}_v{version}") == wanted


@pytest.mark.parametrize("version", [*FORMER, 3])
@pytest.mark.parametrize("name", FORMATS)
def test_spark_finds_rows_by_what_they_hold(written: Written, name: str, version: int) -> None:
    for condition in (
        "i = 0",
        "dt < DATE '1970-01-01'",
        "ts < TIMESTAMP_NTZ '1970-01-01 00:00:00'",
        "s > 'y'",
        "d9 <= 0.01",
        "d = 5e-324",
        "isnan(d)",
        "point.y < 0",
        "tags IS NULL",
        "bn = X'80'",
        "NOT b",
    ):
        query = f"SELECT id FROM frazil.db.{{}}_v{version} WHERE {condition} ORDER BY id"
        found, wanted = (written.java.sql(query.format(each)) for each in (name, "parquet"))
        assert found == wanted and 0 < len(found) < 4, condition


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FORMATS)
def test_we_read_every_row_of_java_s_files(written: Written, name: str, version: int) -> None:
    found, wanted = (
        _by_us(written.tables[f"{each}_v{version}"]) for each in (f"java_{name}", "parquet")
    )
    assert len(wanted) == 4
    assert found == wanted


def _by_us(table: WrittenTable) -> list[str]:
    tasks = [task_of(entry.data_file) for entry in table.live()]
    return sorted(map(repr, read_all(read_of(table.metadata.current_schema), *tasks).to_pylist()))


BOUNDS = ("lower_bounds", "upper_bounds", "nan_value_counts")
COUNTS = ("value_counts", "null_value_counts")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FORMATS)
def test_the_metrics_of_our_files_are_java_s(written: Written, name: str, version: int) -> None:
    ours, java = (
        written.tables[f"{each}_v{version}"].live()[0].data_file for each in (name, f"java_{name}")
    )
    assert (ours.file_format, ours.record_count) == (java.file_format, java.record_count)
    assert ours.file_format == name.upper()
    assert [getattr(ours, each) for each in BOUNDS] == [getattr(java, each) for each in BOUNDS]
    assert [plain_counts(ours, each) for each in COUNTS] == [
        plain_counts(java, each) for each in COUNTS
    ]


def plain_counts(file: DataFile, name: str) -> dict[int, int] | None:
    """Return the counts of primitive columns. Java counts nulls of lists, maps and structs in ORC
    files, too; but no null of a required member of a struct that is null (24)."""
    counts: Mapping[int, int] | None = getattr(file, name)
    if counts is None:
        return None
    plain = {field.field_id for field in SPARKS if field.field_type.is_primitive} | {23}
    return {number: count for number, count in counts.items() if number in plain}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_columns_of_our_orc_files_have_java_s_attributes(
    written: Written, version: int
) -> None:
    ours, java = (
        orc.ORCFile(local(written.tables[name].live()[0].data_file.file_path))
        for name in (f"orc_v{version}", f"java_orc_v{version}")
    )
    assert attributes(ours.schema) == attributes(java.schema)
    assert (ours.compression, ours.row_index_stride) == (java.compression, java.row_index_stride)


def attributes(fields: Iterable[pa.Field]) -> list[Any]:
    """Return the names, types and attributes of columns, and of what is inside of them."""
    return [
        (field.name, str(field.type), field.metadata, attributes(children(field.type)))
        for field in fields
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_headers_of_our_avro_files_are_java_s(written: Written, version: int) -> None:
    ours, java = (
        read_header(Path(local(written.tables[name].live()[0].data_file.file_path)).read_bytes())
        for name in (f"avro_v{version}", f"java_avro_v{version}")
    )
    assert ours.schema_json == java.schema_json
    assert json.loads(ours.metadata["iceberg.schema"]) == json.loads(
        java.metadata["iceberg.schema"]
    )
    assert ours.codec == java.codec


def test_spark_reads_variants_of_our_avro_files(written: Written, tmp_path: Path) -> None:
    found = {}
    for name in ("parquet", "avro"):
        fields = (*SPARKS[:1], *VARIANTS)
        table = build(tmp_path / f"variants_{name}", fields, 3, format_default=name)
        table.append(rows_of(Schema(fields)))
        written.java.sql(
            f"CALL frazil.system.register_table(table => 'db.variants_{name}',"
            f" metadata_file => '{table.metadata_location}')"
        )
        query = f"SELECT id, to_json(v) FROM frazil.db.variants_{name} ORDER BY id"
        found[name] = written.java.sql(query)
    assert found["avro"] == found["parquet"]
    assert found["avro"][0] == [-(2**63), "7"]


def test_java_reads_fractions_of_seconds_before_1970(written: Written, tmp_path: Path) -> None:
    """Only ORC has none of them."""
    moments = [
        datetime(1969, 12, 31, 23, 59, 58, 500_000),
        datetime(1969, 12, 31, 23, 59, 59, 999_999),
        datetime(1960, 1, 1, 0, 0, 0, 1),
    ]
    fields = _schema(1, ts=TimestampType(), tz=TimestamptzType(), tn=TimestampNanoType())
    table = build(tmp_path / "old", fields, 3, format_default="avro")
    table.append([{"ts": one, "tz": one, "tn": -1 - at} for at, one in enumerate(moments)])
    found = written.java.records(table.metadata_location)
    assert found == [
        ["1969-12-31T23:59:58.500", "1969-12-31T23:59:58.500Z", "1969-12-31T23:59:59.999999999"],
        [
            "1969-12-31T23:59:59.999999",
            "1969-12-31T23:59:59.999999Z",
            "1969-12-31T23:59:59.999999998",
        ],
        [
            "1960-01-01T00:00:00.000001",
            "1960-01-01T00:00:00.000001Z",
            "1969-12-31T23:59:59.999999997",
        ],
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_java_reads_the_first_and_the_last_times(
    written: Written, tmp_path: Path, name: str
) -> None:
    """Frazil itself reads no times of ORC outside of 1677 to 2262."""
    fields = _schema(1, ts=TimestampType(), tz=TimestamptzType())
    table = build(tmp_path / "far", fields, 2, format_default=name)
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999)
    table.append([{"ts": one, "tz": one} for one in (datetime(1, 1, 1), last)])
    assert written.java.records(table.metadata_location) == [
        ["0001-01-01T00:00", "0001-01-01T00:00Z"],
        ["9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999Z"],
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_java_s_library_reads_the_types_that_spark_lacks(
    written: Written, tmp_path: Path, name: str
) -> None:
    texts = {}
    for each in ("parquet", name):
        flat = (field for field in SPARKS if field.field_type.is_primitive)
        fields = (*flat, *OTHERS, *NANOS)
        table = build(tmp_path / each, fields, 3, format_default=each)
        table.append(rows_of(Schema(fields)))
        texts[each] = sorted(map(repr, written.java.records(table.metadata_location)))
    assert len(texts["parquet"]) == 4
    assert texts[name] == texts["parquet"]
