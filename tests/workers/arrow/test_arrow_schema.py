"""A DataFrame's columns find their table columns by name, or every misfit is named at once."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import count
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from committer.errors import PublishError, UnsupportedError
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UnknownType,
    UUIDType,
    VariantType,
)
from tests.support.workers.tables import all_primitives, nested, optional, required, schema, struct
from workers.arrow.arrow_schema import arrow_schema, match_columns
from workers.arrow.arrow_types import children, field_id, iceberg_type


def conformed(columns: dict[str, pa.Array], table: Schema) -> pa.RecordBatch:
    batch = pa.record_batch(columns)
    result = match_columns(batch.schema, table).conform(batch)
    result.validate(full=True)
    return result


def complaint(found: pa.Schema, table: Schema) -> str:
    with pytest.raises(PublishError) as raised:
        match_columns(found, table)
    return str(raised.value)


def ids_in(kind: pa.Schema | pa.DataType) -> list[int | None]:
    fields = list(kind) if isinstance(kind, pa.Schema) else children(kind)
    return [number for f in fields for number in (field_id(f), *ids_in(f.type))]


def test_every_level_of_a_schema_carries_its_field_id() -> None:
    assert ids_in(arrow_schema(nested())) == [
        1, 2, 10, 11, 12, 13, 3, 14, 4, 15, 16, 5, 17, 18, 19, 6, 20, 21
    ]  # fmt: skip


def test_a_written_file_has_the_field_ids_of_every_level(tmp_path) -> None:  # type: ignore[no-untyped-def]
    target = arrow_schema(nested())
    pq.write_table(target.empty_table(), tmp_path / "f.parquet", store_schema=False)
    text = str(pq.ParquetFile(tmp_path / "f.parquet").schema)
    for number in (1, 2, 10, 11, 12, 13, 3, 14, 4, 15, 16, 5, 17, 18, 19, 6, 20, 21):
        assert f"field_id={number} " in text
    assert "required int32 field_id=11 y" in text
    assert "required binary field_id=14 element" in text


@pytest.mark.parametrize("table", [all_primitives(), nested()])
def test_an_arrow_schema_names_the_iceberg_types_it_was_made_from(table: Schema) -> None:
    kind = iceberg_type(pa.struct(list(arrow_schema(table))), count(1))
    assert isinstance(kind, StructType)
    again = Schema(kind.fields)
    assert arrow_schema(again).equals(arrow_schema(table), check_metadata=False)
    assert len(again.field_ids) == len(table.field_ids)
    assert [f.required for f in again.fields] == [f.required for f in table.fields]


def test_an_arrow_type_without_a_counterpart_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="duration"):
        iceberg_type(pa.duration("us"), count(1))


def test_columns_are_matched_by_name_in_any_order_and_case() -> None:
    table = schema(optional(1, "id", LongType()), optional(2, "Name", StringType()))
    batch = conformed({"NAME": pa.array(["x"]), "id": pa.array([7])}, table)
    assert batch.to_pylist() == [{"id": 7, "Name": "x"}]


def test_an_exact_name_wins_over_one_of_another_case() -> None:
    table = schema(optional(1, "a", LongType()), optional(2, "A", LongType()))
    batch = conformed({"A": pa.array([1]), "a": pa.array([2])}, table)
    assert batch.to_pylist() == [{"a": 2, "A": 1}]


def test_two_columns_for_one_are_refused() -> None:
    table = schema(optional(1, "id", LongType()))
    found = pa.schema([("id", pa.int64()), ("ID", pa.int64())])
    assert "ID: found a second column beside `id`" in complaint(found, table)


def test_a_column_that_fits_is_not_copied() -> None:
    column = pa.array(range(1000), pa.int64())
    batch = conformed({"id": column}, schema(required(1, "id", LongType())))
    assert batch.column(0).buffers()[1].address == column.buffers()[1].address
    assert field_id(batch.schema.field(0)) == 1


def test_all_problems_are_listed_at_once() -> None:
    table = schema(
        required(1, "id", LongType()),
        optional(2, "price", DoubleType()),
        optional(3, "amount", DecimalType(9, 2)),
        optional(4, "place", struct(required(5, "city", StringType()))),
    )
    found = pa.schema(
        [
            ("price", pa.string()),
            ("amount", pa.bool_()),
            ("place", pa.struct([("zip", pa.int32())])),
            ("extra", pa.list_(pa.int32())),
        ]
    )
    assert complaint(found, table).splitlines() == [
        "6 columns do not fit the table:",
        "  extra: found list<int>, expected no such column",
        "  id: found nothing, expected long, required",
        "  price: found string, expected double",
        "  amount: found boolean, expected decimal(9, 2)",
        "  place.zip: found int, expected no such column",
        "  place.city: found nothing, expected string, required",
    ]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.int8(), IntegerType()),
        (pa.int16(), LongType()),
        (pa.int32(), LongType()),
        (pa.float32(), DoubleType()),
        (pa.decimal128(9, 2), DecimalType(18, 2)),
        (pa.large_string(), StringType()),
        (pa.string_view(), StringType()),
        (pa.dictionary(pa.int32(), pa.string()), StringType()),
        (pa.timestamp("us", "Europe/Berlin"), TimestamptzType()),
        (pa.timestamp("ms"), TimestampType()),
        (pa.binary(), FixedType(4)),
        (pa.null(), MapType(2, StringType(), 3, LongType(), False)),
    ],
)
def test_what_fits_without_loss_is_written(found: pa.DataType, wanted: IcebergType) -> None:
    batch = conformed({"c": pa.nulls(2, found)}, schema(optional(1, "c", wanted)))
    assert batch.schema.equals(arrow_schema(schema(optional(1, "c", wanted))))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.bool_(), IntegerType()),
        (pa.uint32(), LongType()),
        (pa.timestamp("us"), TimestamptzType()),
        (pa.date32(), TimestamptzType()),
        (pa.timestamp("ns"), TimestampType()),
        (pa.binary(5), FixedType(4)),
        (pa.string(), DateType()),
        (pa.list_(pa.int64()), LongType()),
        (pa.int64(), ListType(2, LongType(), False)),
        (pa.list_(pa.string()), ListType(2, IntegerType(), False)),
        (pa.map_(pa.string(), pa.string()), MapType(2, StringType(), 3, LongType(), False)),
        (pa.duration("s"), LongType()),
    ],
)
def test_what_store_assignment_refuses_is_refused(found: pa.DataType, wanted: IcebergType) -> None:
    assert complaint(pa.schema([("c", found)]), schema(optional(1, "c", wanted)))


def test_promotion_keeps_every_value() -> None:
    table = schema(
        optional(1, "i", LongType()),
        optional(2, "f", DoubleType()),
        optional(3, "t", TimestamptzType()),
    )
    instant = datetime(2013, 1, 1, 5, tzinfo=UTC)
    columns = {
        "i": pa.array([-(2**31), None], pa.int32()),
        "f": pa.array([0.5, None], pa.float32()),
        "t": pa.array([instant, None], pa.timestamp("us", "America/New_York")),
    }
    assert conformed(columns, table).to_pylist()[0] == {"i": -(2**31), "f": 0.5, "t": instant}


def test_a_missing_optional_column_is_filled_with_its_write_default_or_null() -> None:
    table = schema(
        required(1, "id", LongType()),
        optional(2, "note", StringType()),
        optional(3, "day", DateType(), default=1),
        required(4, "key", UUIDType(), default=UUID(int=5)),
        optional(5, "place", struct(optional(6, "city", StringType(), default="x")), default={}),
        optional(7, "list", ListType(8, LongType(), False)),
    )
    row = {
        "id": 1,
        "note": None,
        "day": date(1970, 1, 2),
        "key": UUID(int=5),
        "place": {"city": "x"},
        "list": None,
    }
    assert conformed({"id": pa.array([1, 1])}, table).to_pylist() == [row, row]


def test_columns_that_parquet_cannot_hold_are_left_out_unless_they_are_given() -> None:
    table = schema(
        optional(1, "id", LongType()),
        optional(3, "u", UnknownType()),
        optional(4, "g", GeometryType()),
    )
    batch = conformed({"id": pa.array([1]), "u": pa.nulls(1)}, table)
    assert batch.schema.names == ["id"]
    given = pa.schema([("id", pa.int64()), ("g", pa.binary())])
    assert "g: found binary, expected nothing: columns of type geometry" in complaint(given, table)


def test_nulls_in_a_required_column_are_found_when_rows_come() -> None:
    table = schema(required(1, "id", LongType()))
    with pytest.raises(PublishError, match="column id is required"):
        conformed({"id": pa.array([1, None])}, table)


def test_nested_columns_are_matched_filled_and_promoted() -> None:
    place = pa.struct([("Y", pa.int32()), ("x", pa.float32())])
    columns = {
        "id": pa.array([1, 2, 3], pa.int32()),
        "point": pa.array([{"x": 0.5, "Y": 1}, None, {"x": None, "Y": 3}], place),
        "tags": pa.array([["a"], None, []], pa.large_list(pa.string())),
        "attributes": pa.array([[("k", 0.5)], [], None], pa.map_(pa.string(), pa.float32())),
        "points": pa.array([[{"x": 1}, None], None, []], pa.list_(pa.struct([("x", pa.int32())]))),
    }
    batch = conformed(columns, nested())
    assert batch.schema.equals(arrow_schema(nested()), check_metadata=True)
    deep = {"deep": None}
    assert batch.to_pylist() == [
        {
            "id": 1,
            "point": {"x": 0.5, "y": 1, **deep},
            "tags": ["a"],
            "attributes": [("k", 0.5)],
            "points": [{"x": 1, "at": None}, None],
            "matrix": None,
        },
        {"id": 2, "point": None, "tags": None, "attributes": [], "points": None, "matrix": None},
        {
            "id": 3,
            "point": {"x": None, "y": 3, **deep},
            "tags": [],
            "attributes": None,
            "points": [],
            "matrix": None,
        },
    ]


def test_slices_of_nested_columns_conform_to_their_own_rows_alone() -> None:
    kind = arrow_schema(nested()).field("points").type
    points = pa.array([[{"x": 1}], None, [{"x": 2}, {"x": 3}], []], kind)
    attributes = pa.array([[("a", 1.0)], [("b", 2.0), ("c", None)], None, []],
                          pa.map_(pa.string(), pa.float64()))  # fmt: skip
    whole = {"id": pa.array([0, 1, 2, 3]), "points": points, "attributes": attributes}
    expected = conformed(whole, nested()).to_pylist()
    for start in range(4):
        part = {name: column.slice(start, 2) for name, column in whole.items()}
        assert conformed(part, nested()).to_pylist() == expected[start : start + 2]


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (struct(required(2, "y", LongType())), [{"y": 1}, {"y": None}]),
        (ListType(2, LongType(), True), [[1], [None]]),
        (MapType(2, StringType(), 3, LongType(), True), [[("a", None)]]),
        (ListType(2, struct(required(3, "y", LongType())), False), [[{"y": 1}, {"y": None}]]),
    ],
)
def test_nulls_in_required_fields_inside_are_found(kind: IcebergType, rows: list[object]) -> None:
    loose = {
        "StructType": pa.struct([("y", pa.int64())]),
        "MapType": pa.map_(pa.string(), pa.int64()),
    }
    arrow = loose.get(type(kind).__name__)
    if arrow is None:
        inside = isinstance(rows[0][0], dict)  # type: ignore[index]
        arrow = pa.list_(loose["StructType"] if inside else pa.int64())
    with pytest.raises(PublishError, match="required"):
        conformed({"c": pa.array(rows, arrow)}, schema(optional(1, "c", kind)))


def test_a_null_struct_excuses_the_required_fields_in_it() -> None:
    inner = struct(required(3, "y", struct(required(4, "z", LongType()))))
    kind = pa.struct([("y", pa.struct([("z", pa.int64())]))])
    rows = [None, {"y": {"z": 1}}]
    batch = conformed({"c": pa.array(rows, kind)}, schema(optional(1, "c", inner)))
    assert batch.column(0).to_pylist() == rows


def test_a_null_struct_excuses_what_it_hides_at_any_depth() -> None:
    table = schema(optional(1, "c", struct(optional(2, "y", struct(required(3, "z", LongType()))))))
    visible = pa.StructArray.from_arrays([pa.array([None, 1], pa.int64())], names=["z"])
    outer = pa.StructArray.from_arrays([visible], names=["y"], mask=pa.array([True, False]))
    assert conformed({"c": outer}, table).column(0).to_pylist() == [None, {"y": {"z": 1}}]


def test_elements_that_a_null_list_hides_are_not_looked_at() -> None:
    child = pa.array([None, 5], pa.int64())
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), child, mask=pa.array([True, False])
    )
    table = schema(optional(1, "c", ListType(2, LongType(), True)))
    assert conformed({"c": hidden}, table).column(0).to_pylist() == [None, [5]]


def test_texts_become_uuids_as_spark_hands_them_over() -> None:
    table = schema(optional(1, "u", UUIDType()))
    text = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
    assert conformed({"u": pa.array([text, None])}, table).column(0).to_pylist() == [
        UUID(text),
        None,
    ]
    with pytest.raises(PublishError, match="column u holds a value"):
        conformed({"u": pa.array(["no uuid"])}, table)


def test_a_binary_of_another_length_than_the_fixed_column_is_refused() -> None:
    table = schema(optional(1, "f", FixedType(4)))
    assert conformed({"f": pa.array([b"abcd"])}, table).column(0).to_pylist() == [b"abcd"]
    with pytest.raises(PublishError, match="column f holds a value"):
        conformed({"f": pa.array([b"abcde"])}, table)


def test_names_that_avro_would_not_take_are_written_as_iceberg_writes_them() -> None:
    batch = conformed({"a.b": pa.array([1])}, schema(optional(1, "a.b", LongType())))
    assert batch.schema.names == ["a_x2Eb"]


def spark_variant() -> pa.DataType:
    """Return the type of a variant in Spark's batches."""
    mark = {"variant": "true"}
    parts = [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, mark)]
    return pa.struct(parts)


def test_a_variant_becomes_the_two_binaries_of_parquet_and_may_be_null() -> None:
    table = schema(optional(1, "v", VariantType()), optional(2, "w", VariantType()))
    batch = conformed(
        {"v": pa.array([{"value": b"V", "metadata": b"M"}, None], spark_variant())}, table
    )
    assert [field.name for field in batch.schema.field("v").type] == ["metadata", "value"]
    assert batch.to_pylist() == [
        {"v": {"metadata": b"M", "value": b"V"}, "w": None},
        {"v": None, "w": None},
    ]
    assert batch.column(0).field(0).null_count == 0  # Parquet takes no null for a required field


def test_a_struct_that_only_looks_like_a_variant_is_refused() -> None:
    plain = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    table = schema(optional(1, "v", VariantType()))
    assert "v: found struct" in complaint(pa.schema([("v", plain)]), table)


def test_a_table_of_which_nothing_can_be_written_is_refused() -> None:
    table = schema(optional(1, "g", GeometryType()))
    assert "no column that could be written" in complaint(pa.schema([]), table)


@pytest.mark.parametrize(
    "element",
    [
        LongType(),
        UUIDType(),
        DecimalType(9, 2),
        VariantType(),
        struct(required(3, "y", LongType())),
        ListType(3, StringType(), False),
    ],
    ids=str,
)
def test_lists_that_spark_knows_no_type_of_are_written(element: IcebergType) -> None:
    rows = [[], None, [None, None]]
    table = schema(optional(1, "c", ListType(2, element, False)))
    batch = conformed({"c": pa.array(rows, pa.list_(pa.null()))}, table)
    assert batch.schema.equals(arrow_schema(table), check_metadata=True)
    assert batch.column(0).to_pylist() == rows


def test_maps_that_spark_knows_no_type_of_are_written_and_hold_nothing() -> None:
    table = schema(optional(1, "c", MapType(2, StringType(), 3, LongType(), False)))
    offsets, nothing = pa.array([0, 0, 0], pa.int32()), pa.nulls(0)
    rows = pa.MapArray.from_arrays(offsets, nothing, nothing)
    assert conformed({"c": rows}, table).column(0).to_pylist() == [[], []]


def test_a_null_in_a_list_of_nothing_is_none_of_a_required_element() -> None:
    table = schema(optional(1, "c", ListType(2, LongType(), True)))
    kind = pa.list_(pa.null())
    assert conformed({"c": pa.array([[]], kind)}, table).column(0).to_pylist() == [[]]
    with pytest.raises(PublishError, match="required"):
        conformed({"c": pa.array([[None]], kind)}, table)
