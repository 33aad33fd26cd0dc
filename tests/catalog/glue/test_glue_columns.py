"""The columns that Glue shows, and what Glue cannot carry."""

from __future__ import annotations

from dataclasses import replace

from committer.catalog.glue.glue_columns import print_columns
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import IntegerType, LongType, NestedField, StructType
from tests.support.builders.table_builders import build_metadata


def with_schemas(*schemas: tuple[NestedField, ...]) -> list[tuple[str, dict[str, str]]]:
    """Return names and parameters of the columns of a table whose last schema is current."""
    numbered = tuple(Schema(fields, schema_id=number) for number, fields in enumerate(schemas))
    metadata = replace(
        build_metadata(location="memory://t"),
        schemas=numbered,
        current_schema_id=len(numbered) - 1,
    )
    return [(one["Name"], dict(one["Parameters"])) for one in print_columns(metadata, ())]


def test_columns_of_earlier_schemas_follow_and_are_marked() -> None:
    first = (NestedField(1, "id", IntegerType(), True), NestedField(2, "old", LongType(), False))
    now = (NestedField(3, "new", LongType(), False), NestedField(1, "id", LongType(), True))
    found = with_schemas(first, now)
    assert [(name, one["iceberg.field.current"]) for name, one in found] == [
        ("new", "true"),
        ("id", "true"),
        ("old", "false"),
    ]
    assert found[1][1]["iceberg.field.optional"] == "false"


def test_column_that_glue_cannot_carry_is_left_out_and_long_comments_are_cut() -> None:
    huge = StructType(
        tuple(NestedField(number, f"f{number:05d}", LongType(), False) for number in range(20_000))
    )
    fields = (
        NestedField(20_001, "id", LongType(), False, doc="a\nb" + "c" * 300),
        NestedField(20_002, "n" * 256, LongType(), False),
        NestedField(20_003, "new\nline", LongType(), False),
        NestedField(20_004, "huge", huge, False),
    )
    metadata = replace(build_metadata(location="memory://t"), schemas=(Schema(fields),))
    (column,) = print_columns(metadata, ())
    assert column["Name"] == "id"
    assert column["Comment"] == "a b" + "c" * 252
