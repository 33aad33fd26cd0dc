"""The partition type of a table whose specs have changed."""

from __future__ import annotations

from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.table_partition import partition_in, table_partition_type
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import (
    DateType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType(), True),
        NestedField(2, "at", TimestampType(), False),
        NestedField(3, "name", StringType(), False),
    )
)


def spec(spec_id: int, *fields: tuple[int, int, str, str]) -> PartitionSpec:
    parts = (
        PartitionField((source,), field_id, name, parse_transform(transform))
        for source, field_id, name, transform in fields
    )
    return PartitionSpec(spec_id, tuple(parts))


def optional(field_id: int, name: str, kind: object) -> NestedField:
    return NestedField(field_id, name, kind, False)  # type: ignore[arg-type]


FIRST = spec(0, (2, 1000, "at_day", "day"), (3, 1001, "name", "identity"))
SECOND = spec(1, (1, 1002, "bucket", "bucket[4]"), (3, 1001, "label", "identity"))
THIRD = spec(2, (2, 1000, "at_day", "void"))


def test_it_has_the_fields_of_all_specs_by_id_with_their_newest_names() -> None:
    assert table_partition_type([FIRST, SECOND], SCHEMA).fields == (
        optional(1000, "at_day", DateType()),
        optional(1001, "label", StringType()),
        optional(1002, "bucket", IntegerType()),
    )


def test_a_void_field_has_the_type_that_it_had_before() -> None:
    kind = table_partition_type([THIRD, FIRST], SCHEMA)
    assert kind.fields[0] == optional(1000, "at_day", DateType())


def test_a_partition_has_null_where_its_spec_has_no_field() -> None:
    kind = table_partition_type([FIRST, SECOND], SCHEMA)
    assert partition_in(kind, SECOND, (3, "a")) == (None, "a", 3)
    assert partition_in(StructType(()), spec(0), ()) is None
