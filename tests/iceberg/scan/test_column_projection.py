"""Columns come from where the specification says, and rows are those that Java reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.evolution.schema_evolution import SchemaUpdate
from committer.iceberg.scan.column_projection import (
    Constant,
    FileColumn,
    FileContext,
    Inherited,
    RowNumber,
    file_context,
    project_columns,
)
from committer.iceberg.schema.metadata_columns import (
    FILE_PATH,
    IS_DELETED,
    LAST_UPDATED_SEQUENCE_NUMBER,
    METADATA_COLUMNS,
    ROW_ID,
    ROW_POSITION,
    SPEC_ID,
    is_metadata_column,
    partition_column,
)
from committer.iceberg.schema.name_mapping import NAME_MAPPING_PROPERTY, parse_name_mapping
from committer.iceberg.schema.partition_spec import (
    PartitionField,
    PartitionSpec,
    parse_partition_spec,
)
from committer.iceberg.schema.schema import FIELD_ID_MAX, Schema, parse_schema
from committer.iceberg.values.single_value import parse_json_value
from committer.iceberg.values.transforms import DAY, IDENTITY
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
    UnknownType,
    VariantType,
)
from tests.iceberg.parquet_rows import read_rows
from tests.iceberg.schema_strategies import schemas
from tests.support.builders.fixtures import expected, read_bytes, table_names
from tests.support.builders.partition_values import read_partition
from tests.support.iceberg.row_projection import project_row

NOTHING = FileContext({})


def optional(field_id: int, name: str, kind: IcebergType, default: object = None) -> NestedField:
    return NestedField(field_id, name, kind, False, initial_default=default)


def required(field_id: int, name: str, kind: IcebergType) -> NestedField:
    return NestedField(field_id, name, kind, True)


def project(
    wanted: Sequence[NestedField],
    stored: Sequence[NestedField],
    *row: object,
    context: FileContext = NOTHING,
    position: int = 0,
) -> tuple[object, ...]:
    fields = project_columns(wanted, StructType(tuple(stored)), context)
    return project_row(fields, row, position)


# --- Rows that Java reads ------------------------------------------------------------------------


def plain_tables() -> list[str]:
    """Return the tables without deletes with all rows listed, in columns that pyarrow reads."""
    found = []
    for name in table_names():
        said = expected(name)
        files = said["live_data_files"]
        if not files or said["live_delete_files"] or "rows" not in said.get("table_rows", ()):
            continue
        is_whole = said["table_rows"]["count"] == len(said["table_rows"]["rows"])
        is_parquet = all(file["file_format"] == "PARQUET" for file in files)
        if is_whole and is_parquet and not any(map(is_variant, said["schemas"][-1]["fields"])):
            found.append(name)
    return found


def is_variant(field: dict[str, Any]) -> bool:
    return bool(field["type"] == "variant")


@pytest.mark.thorough
def test_rows_of_all_plain_tables_are_those_that_java_reads() -> None:
    names = plain_tables()
    assert len(names) > 25
    assert {"v3_defaults", "v2_schema_evolution", "v2_name_mapping", "v2_nested"} <= set(names)
    for name in names:
        said = expected(name)
        schema = current_schema(said)
        rows = [java_row(row, schema) for row in said["table_rows"]["rows"]]
        if name == "v2_name_mapping":
            rows = [with_mapped_struct(row) for row in rows]
        assert ordered(our_rows(said, schema)) == ordered(rows), name


def with_mapped_struct(row: tuple[object, ...]) -> tuple[object, ...]:
    """Map `st.a`, which is null for Java 1.12: when it reads rows, it maps top-level columns only.

    By the specification it is mapped, and Java's own metrics of the file have its bounds.
    """
    key, title, st, z = row
    return (key, title, (key,), z) if st == (None,) else row


def current_schema(said: dict[str, Any]) -> Schema:
    schemas = {schema["schema-id"]: parse_schema(schema) for schema in said["schemas"]}
    return schemas[said["current_schema_id"]]


def our_rows(said: dict[str, Any], schema: Schema) -> list[tuple[object, ...]]:
    specs = {spec["spec-id"]: parse_partition_spec(spec) for spec in said["partition_specs"]}
    text = said["properties"].get(NAME_MAPPING_PROPERTY)
    mapping = None if text is None else parse_name_mapping(text)
    rows = []
    for file in said["live_data_files"]:
        spec = specs[file["spec_id"]]
        data_file = DataFile(
            file_path=file["file_path"],
            partition=read_partition(spec, schema, file["partition"]),
            record_count=file["record_count"],
            file_size_in_bytes=file["file_size_in_bytes"],
            spec_id=file["spec_id"],
        )
        stored, stored_rows = read_rows(read_bytes(file["file_path"]))
        fields = project_columns(schema.fields, stored, file_context(data_file, spec), mapping)
        rows += [project_row(fields, row, place) for place, row in enumerate(stored_rows)]
    return rows


def java_row(row: dict[str, Any], schema: Schema) -> tuple[object, ...]:
    return tuple(java_value(field.field_type, row[field.name]) for field in schema.fields)


def java_value(kind: IcebergType, value: Any) -> object:
    """Read a value of `table_rows`: its forms are Java's texts, and pairs for maps."""
    if value is None:
        return None
    match kind:
        case StructType(fields):
            return tuple(java_value(each.field_type, value[each.name]) for each in fields)
        case ListType():
            return [java_value(kind.element_type, each) for each in value]
        case MapType():
            return {
                java_value(kind.key_type, key): java_value(kind.value_type, each)
                for key, each in value
            }
        case BinaryType() | FixedType():
            return bytes.fromhex(value.removeprefix("0x"))
        case FloatType() | DoubleType():
            return float(value)
        case DecimalType():
            return Decimal(value)
        case TimestampNanoType() if isinstance(value, int):
            return value
        case _:
            return parse_json_value(kind, value)


def ordered(rows: list[tuple[object, ...]]) -> list[str]:
    """Return rows as text, as NaN is not equal to itself."""
    return sorted(map(repr, rows))


# --- Where columns come from ---------------------------------------------------------------------


def test_columns_are_found_by_id_whatever_their_names_and_places() -> None:
    stored = (
        optional(1, "a", IntegerType()),
        optional(2, "b", StringType()),
        optional(3, "c", DoubleType()),
    )
    wanted = (
        optional(3, "measurement", DoubleType()),
        optional(2, "name", StringType()),
        optional(4, "a", IntegerType()),
    )
    assert project(wanted, stored, 7, "x", 1.5) == (1.5, "x", None)


def test_missing_column_has_its_initial_default_or_null() -> None:
    wanted = (optional(1, "a", LongType(), 7), optional(2, "b", LongType()))
    assert project(wanted, ()) == (7, None)
    written = replace(wanted[0], initial_default=None, write_default=9)
    assert project((written,), ()) == (None,)


def test_missing_struct_is_null_or_made_of_the_defaults_of_its_fields() -> None:
    point = StructType(
        (
            optional(2, "x", LongType(), 0),
            optional(3, "y", LongType(), 5),
            optional(4, "z", StringType()),
        )
    )
    assert project((optional(1, "p", point),), ()) == (None,)
    assert project((optional(1, "p", point, (None, None, None)),), ()) == ((0, 5, None),)
    stored = (optional(1, "p", StructType((optional(2, "x", LongType()),))),)
    assert project((optional(1, "p", point),), stored, (3,)) == ((3, 5, None),)
    assert project((optional(1, "p", point),), stored, None) == (None,)


def test_required_column_that_is_nowhere_is_refused() -> None:
    inner = StructType((required(2, "x", LongType()),))
    with pytest.raises(InvalidMetadataError, match=r"`p\.x`: required"):
        project_columns(
            (optional(1, "p", inner),),
            StructType((optional(1, "p", StructType(())),)),
            NOTHING,
        )
    filled = replace(required(1, "a", LongType()), initial_default=3)
    assert project((filled,), ()) == (3,)


def test_values_are_promoted_also_inside_lists_and_maps() -> None:
    stored = (
        optional(1, "d", DateType()),
        optional(2, "l", ListType(3, DateType(), False)),
        optional(4, "m", MapType(5, IntegerType(), 6, DateType(), False)),
        optional(7, "i", IntegerType()),
        optional(8, "n", DecimalType(9, 2)),
    )
    wanted = (
        optional(1, "d", TimestampType()),
        optional(2, "l", ListType(3, TimestampNanoType(), False)),
        optional(4, "m", MapType(5, LongType(), 6, TimestampType(), False)),
        optional(7, "i", LongType()),
        optional(8, "n", DecimalType(18, 2)),
    )
    row = (-1, [1, None], {7: 2, 8: None}, 5, Decimal("1.25"))
    day = 86_400_000_000
    assert project(wanted, stored, *row) == (
        -day,
        [day * 1_000, None],
        {7: 2 * day, 8: None},
        5,
        Decimal("1.25"),
    )


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (LongType(), IntegerType()),
        (StringType(), LongType()),
        (DecimalType(18, 2), DecimalType(9, 2)),
        (StructType(()), LongType()),
        (LongType(), StructType(())),
        (ListType(2, LongType(), False), MapType(2, LongType(), 3, LongType(), False)),
    ],
    ids=str,
)
def test_type_that_cannot_be_read_as_the_wanted_one_is_refused(
    stored: IcebergType, wanted: IcebergType
) -> None:
    with pytest.raises(InvalidMetadataError, match="column `a`"):
        project((optional(1, "a", wanted),), (optional(1, "a", stored),))


def test_list_of_other_elements_is_not_the_wanted_list() -> None:
    stored = (optional(1, "a", ListType(2, LongType(), False)),)
    assert project((optional(1, "a", ListType(9, LongType(), False)),), stored, [1]) == (None,)


def test_unknown_column_is_null_whatever_the_file_has() -> None:
    wanted = (optional(1, "a", UnknownType()),)
    assert project(wanted, (optional(1, "a", LongType()),), 5) == (None,)
    assert project((optional(1, "a", LongType()),), (optional(1, "a", UnknownType()),), None) == (
        None,
    )


def test_variants_pass_as_they_are() -> None:
    field = optional(1, "v", VariantType())
    assert project((field,), (field,), (b"m", b"v")) == ((b"m", b"v"),)


def test_value_of_an_identity_partition_fills_a_missing_column_and_no_other() -> None:
    spec = PartitionSpec(
        3,
        (
            PartitionField((1,), 1000, "a", IDENTITY),
            PartitionField((2,), 1001, "b_day", DAY),
            PartitionField((4,), 1002, "c", IDENTITY),
        ),
    )
    file = DataFile(
        file_path="f", partition=(7, 8, None), record_count=1, file_size_in_bytes=1, spec_id=3
    )
    context = file_context(file, spec)
    wanted = (
        optional(1, "a", LongType()),
        optional(2, "b", DateType()),
        optional(4, "c", LongType(), 9),
    )
    assert project(wanted, (), context=context) == (7, None, None)
    assert project(wanted, wanted[:1], 5, context=context) == (5, None, None)


def test_name_mapping_counts_for_files_without_ids_behind_partition_values() -> None:
    mapping = parse_name_mapping(
        '[{"field-id": 1, "names": ["a", "old"]}, {"field-id": 2, "names": ["l"], "fields":'
        ' [{"field-id": 3, "names": ["element"]}]}, {"field-id": 4, "names": ["p"]}]'
    )
    stored = StructType(
        (
            optional(-1, "old", LongType()),
            optional(-1, "l", ListType(-1, LongType(), False)),
            optional(-1, "p", LongType()),
            optional(-1, "x", LongType()),
        )
    )
    wanted = (
        optional(1, "now", LongType()),
        optional(2, "l", ListType(3, LongType(), False)),
        optional(4, "p", LongType()),
        optional(5, "x", LongType()),
    )
    row = (7, [8], 9, 10)
    fields = project_columns(wanted, stored, FileContext({4: 0}), mapping)
    assert project_row(fields, row, 0) == (7, [8], 0, None)
    assert project_row(project_columns(wanted, stored, NOTHING), row, 0) == (None,) * 4
    # One id is enough: then names mean nothing.
    with_id = StructType((optional(5, "x", LongType()), *stored.fields[:3]))
    fields = project_columns(wanted, with_id, NOTHING, mapping)
    assert project_row(fields, (10, 7, [8], 9), 0) == (None, None, None, 10)


# --- Metadata columns ----------------------------------------------------------------------------


def test_metadata_columns_are_known_without_reading() -> None:
    spec = PartitionSpec(3, (PartitionField((1,), 1000, "a", IDENTITY),))
    file = DataFile(
        file_path="s3://b/f", partition=(7,), record_count=1, file_size_in_bytes=1, spec_id=3
    )
    partition = partition_column(StructType((optional(1000, "a", LongType()),)))
    wanted = (FILE_PATH, ROW_POSITION, SPEC_ID, partition, IS_DELETED)
    fields = project_columns(wanted, StructType(()), file_context(file, spec))
    assert project_row(fields, (), 4) == ("s3://b/f", 4, 3, (7,), False)
    assert project_row(fields, (), 0, is_deleted=True)[-1] is True


def test_ids_of_metadata_columns_are_those_of_the_specification() -> None:
    assert {name: column.field_id for name, column in METADATA_COLUMNS.items()} == {
        "_file": 2147483646,
        "_pos": 2147483645,
        "_deleted": 2147483644,
        "_spec_id": 2147483643,
        "_change_type": 2147483543,
        "_change_ordinal": 2147483542,
        "_commit_snapshot_id": 2147483541,
        "_row_id": 2147483540,
        "_last_updated_sequence_number": 2147483539,
    }
    assert partition_column(StructType(())).field_id == 2147483642
    assert all(is_metadata_column(column.field_id) for column in METADATA_COLUMNS.values())
    assert not is_metadata_column(FIELD_ID_MAX)


def test_lineage_is_what_the_file_says_or_what_its_rows_inherit() -> None:
    wanted = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
    context = FileContext({}, first_row_id=1000, sequence_number=5)
    assert project(wanted, (), context=context, position=3) == (1003, 5)
    assert project(wanted, wanted, 17, 2, context=context, position=3) == (17, 2)
    assert project(wanted, wanted, None, None, context=context, position=3) == (1003, 5)
    assert project(wanted, wanted, 17, 2, context=FileContext({}, None, 5)) == (None, None)
    fields = project_columns(wanted, StructType(wanted), context)
    assert fields[0].source == Inherited(FileColumn(0, LongType()), RowNumber(1000))
    assert fields[1].source == Inherited(FileColumn(1, LongType()), Constant(5))


# --- Random evolutions ---------------------------------------------------------------------------


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(schema=schemas(), chance=st.randoms(use_true_random=False))
def test_old_rows_are_read_under_any_later_schema(schema: Schema, chance: Any) -> None:
    """A model: values are told apart by the id of their column, which never changes."""
    update = SchemaUpdate(schema, last_column_id=schema.highest_field_id, format_version=3)
    for number, field in enumerate(schema.fields):
        match chance.randrange(4):
            case 0:
                update.delete_column(field.name)
                update.add_column(field.name, BooleanType(), default=True)
            case 1:
                update.rename_column(field.name, f"renamed_{number}")
            case 2:
                update.move_first(field.name)
    after = update.apply().schema
    row = tuple(mark(field.field_type, field.field_id) for field in schema.fields)
    read = project(after.fields, schema.fields, *row)
    for field, value in zip(after.fields, read, strict=True):
        old = schema.field(field.field_id)
        assert value == (True if old is None else mark(old.field_type, old.field_id))


def mark(kind: IcebergType, field_id: int) -> object:
    """Return a value that shows its column; its type does not matter to a projection."""
    match kind:
        case StructType(fields):
            return tuple(mark(each.field_type, each.field_id) for each in fields)
        case ListType():
            return [mark(kind.element_type, kind.element_id), None]
        case MapType():
            return {kind.key_id: mark(kind.value_type, kind.value_id)}
        case _:
            return field_id
