"""No table gets a column with the name of a metadata column; a table that has it may change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.evolution.schema_evolution import SchemaUpdate
from committer.iceberg.evolution.union_by_name import union_by_name
from committer.iceberg.metadata.metadata_check import check_new_table
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.metadata_columns import METADATA_COLUMNS, RESERVED_NAMES
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import LongType, NestedField, StructType
from tests.support.iceberg.metadata_builders import build_table

CHANGELOG = {"_change_type", "_change_ordinal", "_commit_snapshot_id"}


def columns(*names: str, first_id: int = 1) -> tuple[NestedField, ...]:
    return tuple(
        NestedField(first_id + at, name, LongType(), False) for at, name in enumerate(names)
    )


def update(table: TableMetadata, *, case_sensitive: bool = True) -> SchemaUpdate:
    return SchemaUpdate(
        table.current_schema,
        last_column_id=table.last_column_id,
        format_version=table.format_version,
        case_sensitive=case_sensitive,
    )


def of_another_writer() -> TableMetadata:
    """Return a table with columns `id` and `_pos`, as another writer may have made it."""
    return replace(build_table(), schemas=(Schema(columns("id", "_pos")),))


def reserved(name: str) -> str:
    return f"column `{name}`: Iceberg reserves this name"


def test_the_names_are_those_that_a_reader_answers() -> None:
    assert {*RESERVED_NAMES} == {*METADATA_COLUMNS, "_partition"} - CHANGELOG


@pytest.mark.parametrize("name", [*RESERVED_NAMES, "_FILE"])
def test_a_reserved_name_is_refused_wherever_a_table_gets_it(name: str) -> None:
    table = build_table()
    with pytest.raises(InvalidMetadataError, match=reserved(name)):
        build_table(schema=Schema(columns("id", name)))
    with pytest.raises(InvalidMetadataError, match=reserved(name)):
        update(table).add_column(name, LongType()).apply()
    with pytest.raises(InvalidMetadataError, match=reserved(name)):
        update(table).rename_column("id", name).apply()
    with pytest.raises(InvalidMetadataError, match=reserved(name)):
        union_by_name(update(table), Schema(columns("id", name))).apply()
    with pytest.raises(InvalidMetadataError, match=reserved(name)):
        check_new_table(replace(table, schemas=(Schema(columns("id", name)),)))


@pytest.mark.parametrize("name", ["_change_type", "file", "pos", "file_path", "_files", "row_id"])
def test_a_name_that_iceberg_reads_as_a_column_is_free(name: str) -> None:
    check_new_table(build_table(schema=Schema(columns("id", name))))


@pytest.mark.parametrize("name", RESERVED_NAMES)
def test_a_field_inside_of_a_column_may_have_the_name(name: str) -> None:
    inner = NestedField(1, "deep", StructType(columns(name, first_id=2)), False)
    table = build_table(schema=Schema((inner,)))
    check_new_table(table)
    update(table).add_column(f"{name}_", LongType(), parent="deep").apply()


def test_a_table_that_has_such_a_column_changes_and_can_rename_it() -> None:
    table = of_another_writer()
    added = update(table).add_column("more", LongType()).apply().schema
    assert [field.name for field in added.fields] == ["id", "_pos", "more"]
    renamed = update(table).rename_column("_pos", "place").apply().schema
    check_new_table(replace(table, schemas=(renamed,)))
    with pytest.raises(InvalidMetadataError, match=reserved("_pos")):
        update(table).delete_column("_pos").add_column("_pos", LongType()).apply()
