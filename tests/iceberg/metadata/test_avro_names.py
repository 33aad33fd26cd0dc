"""Names that become one name in Avro are refused wherever a table gets them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.evolution.partition_evolution import PartitionSpecUpdate
from committer.iceberg.evolution.schema_evolution import SchemaUpdate
from committer.iceberg.metadata.metadata_check import check_new_table
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.updates.metadata_update import AddPartitionSpec, AddSchema, apply_updates
from committer.iceberg.values.transforms import IDENTITY
from committer.iceberg.values.types import (
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)
from tests.support.iceberg.metadata_builders import START_MS, build_table

S, T = NestedField(1, "s", StringType(), False), NestedField(2, "t", StringType(), False)
TABLE = build_table(schema=Schema((S, T)))
ONE = PartitionField((1,), 1000, "1", IDENTITY)
SPEC = PartitionSpec(0, (ONE, PartitionField((2,), 1001, "_1", IDENTITY)))


def columns(*names: str, first_id: int = 1) -> tuple[NestedField, ...]:
    return tuple(
        NestedField(first_id + at, name, LongType(), False) for at, name in enumerate(names)
    )


def struct(*names: str) -> StructType:
    return StructType(columns(*names, first_id=10))


def refused(*names: str) -> str:
    first, second = map(str, names)
    return f"`{first}` and `{second}`: both are named "


@pytest.mark.parametrize("names", [("1", "_1"), ("a b", "a_x20b")])
@pytest.mark.parametrize("is_deep", [False, True])
def test_columns_of_a_new_table_or_schema(names: tuple[str, str], is_deep: bool) -> None:
    deep = NestedField(1, "deep", ListType(5, struct(*names), False), False)
    schema = Schema((deep,) if is_deep else columns(*names))
    with pytest.raises(InvalidMetadataError, match=refused(*names)):
        build_table(schema=schema)
    with pytest.raises(InvalidMetadataError, match=refused(*names)):
        apply_updates(TABLE, (AddSchema(schema),), now_ms=START_MS, base_location=None)


@pytest.mark.parametrize("names", [("\u00e9", "e\u0301"), ("x", "X"), ("1", "__1")])
def test_columns_that_stay_two_names(names: tuple[str, str]) -> None:
    build_table(schema=Schema(columns(*names)))


def test_a_column_that_is_added_or_renamed() -> None:
    table = build_table(schema=Schema(columns("1", "b")))

    def update() -> SchemaUpdate:
        return SchemaUpdate(
            table.current_schema,
            last_column_id=table.last_column_id,
            format_version=2,
            specs=table.partition_specs,
        )

    for changed in (
        update().add_column("_1", LongType()),
        update().rename_column("b", "_1"),
    ):
        with pytest.raises(InvalidMetadataError, match=refused("1", "_1")):
            changed.apply()


def test_partition_fields_of_a_new_table_and_of_a_new_spec() -> None:
    with pytest.raises(InvalidMetadataError, match="partition fields " + refused("1", "_1")):
        build_table(schema=Schema((S, T)), partition_spec=SPEC)
    with pytest.raises(InvalidMetadataError, match=refused("1", "_1")):
        apply_updates(TABLE, (AddPartitionSpec(SPEC),), now_ms=START_MS, base_location=None)


def test_a_partition_field_that_is_added_or_renamed() -> None:
    table = build_table(schema=Schema((S, T)), partition_spec=PartitionSpec(0, (ONE,)))

    def update() -> PartitionSpecUpdate:
        return PartitionSpecUpdate(
            table.default_spec,
            table.current_schema,
            specs=table.partition_specs,
            last_partition_id=table.last_partition_id,
            format_version=2,
        )

    with pytest.raises(InvalidMetadataError, match=refused("1", "_1")):
        update().add_field("t", IDENTITY, "_1").apply()
    update().add_field("t", IDENTITY, "_2").apply()
    with pytest.raises(InvalidMetadataError, match=refused("_x20", " ")):
        update().rename_field("1", "_x20").add_field("t", IDENTITY, " ").apply()


def of_another_writer() -> TableMetadata:
    """Return a table whose partition fields have such names, as another writer may have made it."""
    return replace(TABLE, partition_specs=(SPEC,), last_partition_id=1001)


def test_a_table_of_another_writer_is_read_and_not_taken_up() -> None:
    with pytest.raises(InvalidMetadataError, match=refused("1", "_1")):
        check_new_table(of_another_writer())
    renamed = replace(TABLE, schemas=(Schema(columns("1", "_1")),))
    with pytest.raises(InvalidMetadataError, match=refused("1", "_1")):
        check_new_table(renamed)
    check_new_table(TABLE)
