"""Each column of a file finds the table's, by id or by name, or is named with what is wrong."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from committer.iceberg.schema.name_mapping import NAME_MAPPING_PROPERTY
from committer.iceberg.schema.partition_spec import UNPARTITIONED
from committer.iceberg.schema.schema import FIELD_ID_MAX
from committer.iceberg.values.types import (
    BinaryType,
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
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
)
from tests.support.workers.parquet_files import (
    adopt,
    parquet_bytes,
    problems,
    target_of,
    with_ids,
)
from tests.support.workers.tables import nested, optional, required, schema, struct
from workers.adoption.adopt_file import Adopted
from workers.adoption.adoption_target import AdoptionTarget
from workers.arrow.arrow_schema import arrow_schema

PLAIN = schema(optional(1, "id", LongType()), optional(2, "name", StringType()))


def with_mapping(target: AdoptionTarget, text: str) -> AdoptionTarget:
    properties = {**target.properties, NAME_MAPPING_PROPERTY: text}
    return replace(target, properties=properties)


def is_adopted(table: pa.Table, kind: IcebergType, **options: object) -> bool:
    target = target_of(schema(optional(1, "c", kind)))
    return isinstance(adopt(parquet_bytes(table, **options), target), Adopted)


# --- Ids and names --------------------------------------------------------------------------------


def test_columns_without_ids_are_found_by_name_in_any_order() -> None:
    outcome = adopt(pa.table({"name": ["a"], "id": [1]}), target_of(PLAIN))
    assert isinstance(outcome, Adopted) and outcome.is_mapped
    assert outcome.file.value_counts == {1: 1, 2: 1}
    assert (outcome.file.lower_bounds or {})[2] == b"a"


def test_a_name_mapping_of_the_table_goes_before_its_names() -> None:
    text = '[{"field-id": 1, "names": ["number", "id"]}, {"field-id": 2, "names": ["name"]}]'
    target = with_mapping(target_of(PLAIN), text)
    assert isinstance(adopt(pa.table({"number": [1]}), target), Adopted)
    twice = problems(adopt(pa.table({"number": [1], "id": [1]}), target))
    assert twice == ("column id: found a second column of one field, expected one",)


def test_a_name_mapping_that_cannot_be_read_is_named() -> None:
    target = with_mapping(target_of(PLAIN), "[{]")
    assert NAME_MAPPING_PROPERTY in problems(adopt(pa.table({"id": [1]}), target))[0]


def test_columns_with_ids_are_found_by_id_under_any_name_that_the_field_had() -> None:
    older = schema(optional(1, "number", LongType()), optional(2, "name", StringType()))
    target = target_of(PLAIN, UNPARTITIONED, older)
    table = with_ids(pa.table({"number": [1], "name": ["a"]}), 1, 2)
    outcome = adopt(table, target)
    assert isinstance(outcome, Adopted) and not outcome.is_mapped


def test_an_id_under_a_foreign_name_is_refused() -> None:
    table = with_ids(pa.table({"amount": [1]}), 1)
    [problem] = problems(adopt(table, target_of(PLAIN)))
    assert "column amount" in problem and "`id`" in problem and "another table" in problem


def test_a_column_without_an_id_among_others_with_ids_is_not_found_by_name() -> None:
    table = pa.table({"id": [1], "name": ["a"]})
    mixed = with_ids(table.select(["id"]), 1).append_column("name", table["name"])
    assert "column name" in problems(adopt(mixed, target_of(PLAIN)))[0]


def test_a_column_that_is_called_like_the_tables_is_no_extra_column() -> None:
    shouted = problems(adopt(pa.table({"ID": [1]}), target_of(PLAIN, extra=True)))
    assert shouted == (
        f"column ID: found no `{NAME_MAPPING_PROPERTY}` for this name, expected one that finds the"
        " table's column `id`",
    )
    old = with_mapping(target_of(PLAIN, extra=True), '[{"field-id": 2, "names": ["name"]}]')
    assert "column id: found no" in problems(adopt(pa.table({"id": [1]}), old))[0]
    mixed = with_ids(pa.table({"id": [1]}), 1).append_column("name", pa.array(["a"]))
    assert "found no field id" in problems(adopt(mixed, target_of(PLAIN, extra=True)))[0]


def test_extra_columns_are_refused_unless_they_are_allowed_or_were_dropped() -> None:
    table = pa.table({"id": [1], "rest": [2]})
    assert problems(adopt(table, target_of(PLAIN))) == (
        "column rest: found a column that the table does not have, expected no such column",
    )
    assert isinstance(adopt(table, target_of(PLAIN, extra=True)), Adopted)
    older = schema(*PLAIN.fields, optional(3, "rest", LongType()))
    dropped = target_of(PLAIN, UNPARTITIONED, older)
    assert isinstance(adopt(with_ids(table, 1, 3), dropped), Adopted)


def test_columns_of_row_lineage_are_refused_even_if_extra_ones_are_allowed() -> None:
    table = with_ids(pa.table({"id": [1], "_row_id": [7]}), 1, FIELD_ID_MAX + 93)
    [problem] = problems(adopt(table, target_of(PLAIN, extra=True)))
    assert "a column of metadata" in problem


def test_two_columns_with_one_id_are_refused() -> None:
    table = with_ids(pa.table([[1], [2]], names=["id", "id"]), 1, 1)
    assert "a second column" in problems(adopt(table, target_of(PLAIN)))[0]


# --- Nulls ----------------------------------------------------------------------------------------


def test_a_required_column_may_be_optional_in_a_file_without_nulls() -> None:
    target = target_of(schema(required(1, "id", LongType())))
    assert isinstance(adopt(pa.table({"id": [1, 2]}), target), Adopted)
    assert "is required" in problems(adopt(pa.table({"id": [1, None]}), target))[0]
    uncounted = parquet_bytes(pa.table({"id": [1, 2]}), write_statistics=False)
    assert "is required" in problems(adopt(uncounted, target))[0]
    absent = target_of(schema(required(1, "id", LongType()), optional(2, "a", LongType())))
    assert "no such column" in problems(adopt(pa.table({"a": [1]}), absent))[0]


def test_required_parts_of_nested_columns_must_have_no_nulls() -> None:
    point = struct(required(2, "x", LongType()))
    target = target_of(schema(optional(1, "p", point)))
    whole = pa.table({"p": [{"x": 1}, {"x": 2}]})
    assert isinstance(adopt(whole, target), Adopted)
    assert "p.x" in problems(adopt(pa.table({"p": [{"x": None}]}), target))[0]
    tags = target_of(schema(optional(1, "l", ListType(2, LongType(), True))))
    assert isinstance(adopt(pa.table({"l": [[1], [2]]}), tags), Adopted)
    assert "l.element" in problems(adopt(pa.table({"l": [[1], [None]]}), tags))[0]


# --- Types ----------------------------------------------------------------------------------------

FITTING: list[tuple[pa.DataType, IcebergType]] = [
    (pa.int8(), IntegerType()),
    (pa.uint16(), IntegerType()),
    (pa.int32(), LongType()),
    (pa.float32(), DoubleType()),
    (pa.decimal128(5, 2), DecimalType(9, 2)),
    (pa.large_string(), StringType()),
    (pa.dictionary(pa.int32(), pa.string()), StringType()),
    (pa.duration("us"), LongType()),
    (pa.time32("ms"), TimeType()),
    (pa.timestamp("ms", "Europe/Berlin"), TimestamptzType()),
    (pa.timestamp("us"), TimestampType()),
    (pa.timestamp("ns"), TimestampNanoType()),
    (pa.binary(4), FixedType(4)),
]
UNFITTING: list[tuple[pa.DataType, IcebergType]] = [
    (pa.int64(), IntegerType()),
    (pa.uint32(), LongType()),
    (pa.uint64(), LongType()),
    (pa.float64(), FloatType()),
    (pa.float16(), FloatType()),
    (pa.decimal128(9, 2), DecimalType(5, 2)),
    (pa.decimal128(9, 2), DecimalType(9, 3)),
    (pa.string(), LongType()),
    (pa.string(), BinaryType()),
    (pa.binary(), StringType()),
    (pa.timestamp("us"), TimestamptzType()),
    (pa.timestamp("us", "UTC"), TimestampType()),
    (pa.timestamp("ns"), TimestampType()),
    (pa.date32(), TimestampType()),
    (pa.time64("ns"), TimeType()),
    (pa.binary(4), FixedType(5)),
    (pa.list_(pa.int64()), LongType()),
    (pa.int64(), ListType(2, LongType(), False)),
    (pa.struct({"x": pa.int64()}), MapType(2, StringType(), 3, LongType(), False)),
]


def nulls(kind: pa.DataType) -> pa.Table:
    return pa.table({"c": pa.nulls(1, kind)})


@pytest.mark.parametrize(("kind", "wanted"), FITTING, ids=str)
def test_types_that_readers_take_for_the_columns_fit(
    kind: pa.DataType, wanted: IcebergType
) -> None:
    assert is_adopted(nulls(kind), wanted)


@pytest.mark.parametrize(("kind", "wanted"), UNFITTING, ids=str)
def test_other_types_are_refused_with_both(kind: pa.DataType, wanted: IcebergType) -> None:
    [problem] = problems(adopt(nulls(kind), target_of(schema(optional(1, "c", wanted)))))
    assert problem.startswith("column c: found ") and "expected " in problem


def test_timestamps_of_twelve_bytes_may_be_either_and_have_no_bounds() -> None:
    table = pa.table({"c": pa.array([1, 2], pa.timestamp("us"))})
    for kind in (TimestampType(), TimestamptzType()):
        target = target_of(schema(optional(1, "c", kind)))
        content = parquet_bytes(table, use_deprecated_int96_timestamps=True)
        outcome = adopt(content, target)
        assert isinstance(outcome, Adopted)
        assert outcome.file.lower_bounds == {}
    wrong = target_of(schema(optional(1, "c", DateType())))
    content = parquet_bytes(table, use_deprecated_int96_timestamps=True)
    assert "found INT96" in problems(adopt(content, wrong))[0]


def test_every_nested_column_of_the_table_fits_with_ids_and_without() -> None:
    columns = arrow_schema(nested())
    rows = {
        "id": 1,
        "point": {"x": 1.0, "y": 2, "deep": {"text": "a"}},
        "tags": ["a"],
        "attributes": [("a", 1.0)],
        "points": [{"x": 1, "at": None}],
        "matrix": [[1.0]],
    }
    table = pa.Table.from_pylist([rows], schema=columns)
    bare = pa.Table.from_pylist([rows], schema=_without_ids(columns))
    with_id, without = (adopt(one, target_of(nested())) for one in (table, bare))
    assert isinstance(with_id, Adopted) and isinstance(without, Adopted)
    assert (with_id.is_mapped, without.is_mapped) == (False, True)
    assert set(with_id.file.column_sizes or {}) == set(without.file.column_sizes or {})
    assert with_id.file.value_counts == without.file.value_counts
    assert set(with_id.file.value_counts or {}) == {1, 10, 11, 13}


def _without_ids(columns: pa.Schema) -> pa.Schema:
    return pa.schema([_bare(field) for field in columns])


def _bare(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_bare(kind.field(at)) for at in range(kind.num_fields)])
    elif pa.types.is_map(kind):
        kind = pa.map_(_bare(kind.key_field), _bare(kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(_bare(kind.value_field))
    return pa.field(field.name, kind, nullable=field.nullable)


def test_milliseconds_become_microseconds_in_bounds() -> None:
    table = pa.table({"c": pa.array([1, 5], pa.timestamp("ms", "UTC"))})
    outcome = adopt(table, target_of(schema(optional(1, "c", TimestamptzType()))))
    assert isinstance(outcome, Adopted)
    assert outcome.file.lower_bounds == {1: (1_000).to_bytes(8, "little")}
    assert outcome.file.upper_bounds == {1: (5_000).to_bytes(8, "little")}
