"""Properties that name columns go with the columns."""

from __future__ import annotations

from committer.iceberg.evolution.schema_evolution import SchemaUpdate
from committer.iceberg.evolution.schema_properties import evolved_properties
from committer.iceberg.schema.name_mapping import (
    NAME_MAPPING_PROPERTY,
    create_name_mapping,
    mapped_field,
    parse_name_mapping,
    print_name_mapping,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import LongType, NestedField, StructType

PLACE = StructType((NestedField(4, "x", LongType(), False),))
SCHEMA = Schema(
    (
        NestedField(1, "a", LongType(), False),
        NestedField(2, "b", LongType(), False),
        NestedField(3, "place", PLACE, False),
    )
)
METRICS = "write.metadata.metrics.column."


def test_settings_follow_renamed_columns_and_go_with_deleted_ones() -> None:
    update = SchemaUpdate(SCHEMA, last_column_id=4, format_version=2)
    update.rename_column("a", "id").rename_column("place", "at").delete_column("b")
    properties = {
        f"{METRICS}a": "full",
        f"{METRICS}b": "none",
        f"{METRICS}place.x": "counts",
        f"{METRICS}unheard": "full",
        "write.parquet.bloom-filter-enabled.column.a": "true",
        "write.parquet.stats-enabled.column.b": "false",
        "write.metadata.metrics.default": "counts",
        "a": "b",
    }
    assert evolved_properties(properties, SCHEMA, update.apply().schema) == {
        f"{METRICS}id": "full",
        f"{METRICS}at.x": "counts",
        f"{METRICS}unheard": "full",
        "write.parquet.bloom-filter-enabled.column.id": "true",
        "write.metadata.metrics.default": "counts",
        "a": "b",
    }


def test_name_mapping_learns_the_new_names() -> None:
    evolved = SchemaUpdate(SCHEMA, last_column_id=4, format_version=2).rename_column("a", "id")
    before = {NAME_MAPPING_PROPERTY: print_name_mapping(create_name_mapping(SCHEMA))}
    after = evolved_properties(before, SCHEMA, evolved.apply().schema)
    mapping = parse_name_mapping(after[NAME_MAPPING_PROPERTY])
    found = mapped_field(mapping.fields, "id")
    assert found is not None
    assert found.names == ("a", "id")


def test_name_mapping_stays_as_it_was_written_where_nothing_is_to_learn() -> None:
    for text in ('[ {"field-id": 1,\n "names": ["a"]} ]', "not JSON"):
        properties = {NAME_MAPPING_PROPERTY: text}
        assert evolved_properties(properties, SCHEMA, SCHEMA) == properties
