"""A table takes the columns that a DataFrame has and it lacks, and nothing else of it."""

from __future__ import annotations

from uuid import UUID

import pytest
from pyspark.sql import types as spark

from committer.errors import PublishError, UnsupportedError
from committer.iceberg.metadata.table_metadata import TableMetadata, new_table_metadata
from committer.iceberg.schema.partition_spec import UNPARTITIONED
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.schema.table_text import parse_columns, parse_partition
from workers.creation.wider_schema import wider_schema

COLUMNS = "id long not null, n int, u uuid, d date, s struct<x: int not null>, l list<int>"


def table(columns: str = COLUMNS, partition: str = "", format_version: int = 2) -> TableMetadata:
    schema = parse_columns(columns)
    return new_table_metadata(
        table_uuid=UUID(int=1),
        location="file:///t",
        schema=schema,
        partition_spec=parse_partition(partition, schema) if partition else UNPARTITIONED,
        sort_order=UNSORTED,
        properties={},
        format_version=format_version,
        now_ms=0,
    )


def described(schema: Schema | None) -> dict[str, str]:
    assert schema is not None
    return {
        name: f"{field.field_id} {field.field_type}{' required' if field.required else ''}"
        for name, field in schema.walk()
        if field.field_type.is_primitive
    }


def struct(**kinds: spark.DataType) -> spark.StructType:
    return spark.StructType([spark.StructField(name, kind) for name, kind in kinds.items()])


LONG, INT, STRING = spark.LongType(), spark.IntegerType(), spark.StringType()


def test_new_columns_get_the_next_ids_at_every_level_and_are_optional() -> None:
    source = struct(more=LONG, s=struct(y=STRING), ID=LONG)
    found = described(wider_schema(table(), source))
    assert found["more"] in ("9 long", "10 long")
    assert {found["more"], found["s.y"]} <= {"9 long", "10 string", "9 string", "10 long"}
    assert found["id"] == "1 long required"
    assert found["s.x"] == "7 int required"


def test_a_wider_type_widens_the_column_and_a_narrower_one_changes_nothing() -> None:
    source = struct(n=LONG, id=INT, l=spark.ArrayType(LONG))
    found = described(wider_schema(table(), source))
    assert (found["n"], found["id"], found["l.element"]) == ("2 long", "1 long required", "8 long")


@pytest.mark.parametrize(
    "source",
    [
        struct(id=LONG, n=INT),
        struct(u=STRING),
        struct(d=spark.TimestampNTZType()),
        struct(nothing=spark.NullType()),
        spark.StructType([spark.StructField("id", LONG, True, {"comment": "new"})]),
    ],
    ids=["same", "uuid as text", "a promotion of version 3", "only nulls", "a comment"],
)
def test_what_the_table_has_already_is_no_reason_to_change_it(source: spark.StructType) -> None:
    assert wider_schema(table(), source) is None


def test_a_column_that_cannot_be_added_is_refused_with_a_sentence() -> None:
    with pytest.raises(PublishError, match=r"cannot be united with the table's: .*n_trunc"):
        wider_schema(table(partition="truncate(2, n)"), struct(n_trunc=LONG))


def test_a_column_that_iceberg_reserves_is_not_added() -> None:
    with pytest.raises(PublishError, match="column `_file`: Iceberg reserves this name"):
        wider_schema(table(), struct(id=LONG, _file=STRING))


def test_lists_of_nothing_fit_a_column_and_make_none() -> None:
    nothing = spark.ArrayType(spark.NullType())
    assert wider_schema(table(), struct(l=nothing)) is None
    with pytest.raises(UnsupportedError, match=r"column `more`: Spark knows no type for its elem"):
        wider_schema(table(), struct(more=nothing))
