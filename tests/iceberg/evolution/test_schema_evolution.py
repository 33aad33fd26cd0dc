"""Schemas evolve by the specification's rules, and everything else is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.evolution.schema_evolution import EvolvedSchema, SchemaUpdate
from committer.iceberg.evolution.union_by_name import union_by_name
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema, parse_schema, print_schema
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
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
    UnknownType,
    UUIDType,
    VariantType,
)
from tests.support.builders.fixtures import expected, table_names

POINT = StructType(
    (NestedField(7, "x", FloatType(), True), NestedField(8, "y", FloatType(), False))
)
SCHEMA = Schema(
    (
        NestedField(1, "id", IntegerType(), True),
        NestedField(2, "Name", StringType(), False, doc="who"),
        NestedField(3, "day", DateType(), False),
        NestedField(4, "place", POINT, True),
        NestedField(
            5,
            "points",
            ListType(9, StructType((NestedField(10, "x", IntegerType(), False),)), False),
            False,
        ),
        NestedField(
            6,
            "by_key",
            MapType(
                11,
                StructType((NestedField(13, "k", IntegerType(), False),)),
                12,
                StructType((NestedField(14, "v", IntegerType(), False),)),
                True,
            ),
            False,
        ),
    ),
    schema_id=2,
)
LAST = 20
Change = Callable[[SchemaUpdate], object]


def update_of(
    schema: Schema = SCHEMA,
    *,
    format_version: int = 3,
    specs: tuple[PartitionSpec, ...] = (),
    case_sensitive: bool = True,
) -> SchemaUpdate:
    return SchemaUpdate(
        schema,
        last_column_id=LAST,
        format_version=format_version,
        specs=specs,
        case_sensitive=case_sensitive,
    )


def column(evolved: EvolvedSchema, name: str) -> NestedField:
    found = evolved.schema.find(name)
    assert found is not None, name
    return found


def names(evolved: EvolvedSchema) -> list[str]:
    return [field.name for field in evolved.schema.fields]


# --- Add, delete, rename, move -------------------------------------------------------------------


def test_ids_go_on_from_the_last_that_was_ever_given_a_level_before_what_is_in_it() -> None:
    inner = StructType(
        (
            NestedField(1, "l", ListType(2, LongType(), True), True),
            NestedField(3, "m", MapType(4, StringType(), 5, LongType(), True), False),
        )
    )
    evolved = update_of().add_column("a", inner).add_column("b", LongType()).apply()
    ids = {name: field.field_id for name, field in evolved.schema.walk() if field.field_id > LAST}
    assert ids == {
        "a": 21,
        "a.l": 22,
        "a.m": 23,
        "a.l.element": 24,
        "a.m.key": 25,
        "a.m.value": 26,
        "b": 27,
    }
    assert evolved.last_column_id == 27
    assert evolved.schema.schema_id == SCHEMA.schema_id


def test_update_without_changes_gives_the_same_schema() -> None:
    assert update_of().apply() == EvolvedSchema(SCHEMA, LAST)
    same = update_of().make_column_optional("Name").update_column("id", IntegerType())
    assert same.apply() == EvolvedSchema(SCHEMA, LAST)


def test_fields_are_added_to_structs_also_in_lists_and_in_the_values_of_maps() -> None:
    for parent, name in (
        ("place", "place.n"),
        ("points", "points.element.n"),
        ("points.element", "points.element.n"),
        ("by_key", "by_key.value.n"),
    ):
        evolved = update_of().add_column("n", LongType(), parent=parent, doc="new").apply()
        added = NestedField(21, "n", LongType(), False, "new")
        assert column(evolved, name) == added
    assert column(evolved, "by_key.n") == added


def test_name_that_is_deleted_is_given_to_a_new_column_with_a_new_id() -> None:
    evolved = update_of().delete_column("Name").add_column("Name", LongType()).apply()
    assert column(evolved, "Name").field_id == 21
    assert names(evolved)[-1] == "Name"


def test_renamed_column_keeps_all_but_its_name_and_can_change_in_other_ways_too() -> None:
    evolved = (
        update_of()
        .rename_column("id", "key")
        .update_column("id", LongType())
        .update_column_doc("id", "the key")
        .rename_column("place.x", "lon")
        .apply()
    )
    assert column(evolved, "key") == NestedField(1, "key", LongType(), True, "the key")
    assert column(evolved, "place.lon") == replace(POINT.fields[0], name="lon")


def test_columns_move_within_their_struct_also_new_ones() -> None:
    evolved = (
        update_of()
        .add_column("n", LongType())
        .move_first("day")
        .move_after("n", "day")
        .move_before("id", "by_key")
        .move_first("place.y")
        .apply()
    )
    assert names(evolved) == ["day", "n", "Name", "place", "points", "id", "by_key"]
    place = column(evolved, "place").field_type
    assert isinstance(place, StructType)
    assert [field.name for field in place.fields] == ["y", "x"]


def test_names_are_found_in_any_case_where_that_is_asked_for() -> None:
    update = update_of(case_sensitive=False)
    evolved = update.rename_column("NAME", "who").add_column("N", LongType()).move_first("n")
    assert names(evolved.apply())[:3] == ["N", "id", "who"]
    with pytest.raises(InvalidMetadataError, match="a name that is free"):
        update_of(case_sensitive=False).add_column("ID", LongType())
    with pytest.raises(InvalidMetadataError, match="expected a column `NAME`"):
        update_of().rename_column("NAME", "who")


@pytest.mark.parametrize(
    "change",
    [
        lambda update: update.rename_column("id", "NAME"),
        lambda update: update.rename_column("place.y", "X"),
        lambda update: update.delete_column("id").rename_column("name", "D").add_column("d", POINT),
    ],
)
def test_names_that_differ_in_case_alone_collide_where_case_does_not_count(change: Change) -> None:
    update = update_of(case_sensitive=False)
    with pytest.raises(InvalidMetadataError, match="several columns are called `"):
        change(update)
        update.apply()


# --- Types ---------------------------------------------------------------------------------------

PRIMITIVES: tuple[IcebergType, ...] = (
    *(BooleanType(), IntegerType(), LongType(), FloatType(), DoubleType(), DateType()),
    *(TimestampType(), TimestamptzType(), TimestampNanoType(), TimestamptzNanoType()),
    *(StringType(), UUIDType(), BinaryType(), FixedType(4), FixedType(5)),
    *(DecimalType(9, 2), DecimalType(18, 2), DecimalType(18, 3)),
    *(UnknownType(), VariantType(), GeometryType(), GeographyType()),
)
PROMOTIONS = {
    ("int", "long"),
    ("float", "double"),
    ("decimal(9, 2)", "decimal(18, 2)"),
}
V3_PROMOTIONS = {
    *PROMOTIONS,
    ("date", "timestamp"),
    ("date", "timestamp_ns"),
    *(("unknown", str(kind)) for kind in PRIMITIVES if kind != UnknownType()),
}


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_types_are_promoted_as_the_format_version_allows_and_in_no_other_way(
    format_version: int,
) -> None:
    done = set()
    for old in PRIMITIVES:
        schema = Schema((NestedField(1, "a", old, False),))
        for new in PRIMITIVES:
            update = update_of(schema, format_version=format_version)
            try:
                update.update_column("a", new)
            except InvalidMetadataError:
                continue
            if new != old:
                done.add((str(old), str(new)))
                evolved = replace(schema.fields[0], field_type=new)
                assert update.apply().schema.fields == (evolved,)
    assert done == (V3_PROMOTIONS if format_version == 3 else PROMOTIONS)


def test_unknown_column_becomes_a_nested_one_with_ids_of_its_own() -> None:
    schema = Schema((NestedField(1, "a", UnknownType(), False),))
    evolved = update_of(schema).update_column("a", POINT).apply()
    assert column(evolved, "a.x").field_id == 21
    assert evolved.last_column_id == 22


@pytest.mark.parametrize(
    ("transform", "allowed"),
    [
        ("year", True),
        ("month", True),
        ("day", True),
        ("void", True),
        ("identity", False),
        ("bucket[4]", False),
        ("zorder", False),
    ],
)
def test_date_is_not_promoted_where_partition_values_would_change(
    transform: str, allowed: bool
) -> None:
    field = PartitionField((3,), 1000, "p", parse_transform(transform))
    update = update_of(specs=(PartitionSpec(), PartitionSpec(1, (field,))))
    if allowed:
        evolved = update.update_column("day", TimestampType()).apply()
        assert column(evolved, "day").field_type == TimestampType()
    else:
        with pytest.raises(InvalidMetadataError, match="partition field `p`"):
            update.update_column("day", TimestampType())


def test_transforms_that_allow_a_promotion_give_equal_partition_values() -> None:
    for text in ("year", "month", "day"):
        transform = parse_transform(text)
        for day in (-800_000, -1, 0, 1, 20_454):
            wanted = transform.apply(DateType(), day)
            assert transform.apply(TimestampType(), day * 86_400_000_000) == wanted
    bucket = parse_transform("bucket[16]")
    for number in (-5, 0, 34):
        assert bucket.apply(IntegerType(), number) == bucket.apply(LongType(), number)
    value = Decimal("14.20")
    assert bucket.apply(DecimalType(9, 2), value) == bucket.apply(DecimalType(38, 2), value)


def test_no_column_takes_the_name_of_a_partition_field_of_another() -> None:
    day = PartitionField((3,), 1000, "p", parse_transform("day"))
    gone = PartitionField((99,), 1001, "q", parse_transform("void"))
    specs = (PartitionSpec(0, (day,)), PartitionSpec(1, (gone,)))
    for change in (
        update_of(specs=specs).add_column("p", LongType()),
        update_of(specs=specs).rename_column("id", "p"),
    ):
        with pytest.raises(InvalidMetadataError, match="partition field `p`: another column"):
            change.apply()
    evolved = update_of(specs=specs).rename_column("day", "p").add_column("q", LongType()).apply()
    assert names(evolved)[-1] == "q"


# --- Defaults and nulls --------------------------------------------------------------------------


def test_default_of_a_new_column_is_its_initial_and_its_write_default() -> None:
    evolved = update_of().add_column("n", LongType(), required=True, default=7).apply()
    assert column(evolved, "n") == NestedField(21, "n", LongType(), True, None, 7, 7)
    evolved = update_of(evolved.schema).update_column_default("n", 9).apply()
    assert column(evolved, "n") == NestedField(21, "n", LongType(), True, None, 7, 9)


def test_defaults_are_promoted_with_their_column() -> None:
    schema = Schema((NestedField(1, "a", DateType(), False, None, 1, -1),))
    evolved = update_of(schema).update_column("a", TimestampNanoType()).apply()
    day = 86_400_000_000_000
    assert column(evolved, "a") == NestedField(1, "a", TimestampNanoType(), False, None, day, -day)
    far = Schema((NestedField(1, "a", DateType(), False, None, 2**30, None),))
    with pytest.raises(InvalidMetadataError, match="column `a`: a date is out of the range"):
        update_of(far).update_column("a", TimestampNanoType())


def test_float_default_is_what_four_bytes_hold() -> None:
    evolved = update_of().add_column("f", FloatType(), default=0.1).apply()
    found = column(evolved, "f")
    assert found.initial_default == 0.10000000149011612
    assert parse_schema(print_schema(evolved.schema)) == evolved.schema


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (LongType(), "7"),
        (LongType(), 2**63),
        (IntegerType(), True),
        (StringType(), 7),
        (DoubleType(), float("nan")),
        (FloatType(), 1e300),
        (DateType(), "2017-11-16"),
        (DecimalType(9, 2), Decimal("1.234")),
        (DecimalType(4, 2), Decimal("123.45")),
        (FixedType(4), b"123"),
        (UUIDType(), "f79c3e09-677c-4bbd-a479-3f349cb785e7-"),
        (BinaryType(), "zz"),
        (VariantType(), 1),
        (UnknownType(), 1),
        (GeometryType(), b"\0"),
    ],
    ids=str,
)
def test_default_that_does_not_fit_its_type_is_refused(kind: IcebergType, default: object) -> None:
    with pytest.raises(InvalidMetadataError, match="column `n`"):
        update_of().add_column("n", kind, default=default)


def test_default_of_a_nested_type_is_not_written() -> None:
    with pytest.raises(UnsupportedError, match="nested type"):
        update_of().add_column("n", POINT, default=(None, None))


def test_a_new_column_is_required_only_with_a_default_and_others_become_optional() -> None:
    filled = update_of().add_column("n", LongType(), required=True, default=1).apply()
    assert column(filled, "n").required
    with pytest.raises(InvalidMetadataError, match="required"):
        update_of().add_column("n", LongType(), required=True)
    optional = update_of().make_column_optional("id").make_column_optional("place.x").apply()
    assert not column(optional, "id").required
    assert not column(optional, "place.x").required


# --- Identifier fields ---------------------------------------------------------------------------


def test_identifier_fields_keep_their_ids_when_they_are_renamed() -> None:
    identified = update_of().set_identifier_fields("id").apply().schema
    assert identified.identifier_field_ids == (1,)
    renamed = update_of(identified).rename_column("id", "key").apply()
    assert renamed.schema.identifier_field_ids == (1,)
    new = update_of(identified).add_column("n", LongType(), required=True, default=1)
    assert new.set_identifier_fields("n", "id").apply().schema.identifier_field_ids == (1, 21)
    assert update_of(identified).set_identifier_fields().apply().schema.identifier_field_ids == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda update: update.delete_column("id"),
        lambda update: update.make_column_optional("id"),
        lambda update: update.set_identifier_fields("Name"),
        lambda update: update.set_identifier_fields("place.x"),
        lambda update: update.set_identifier_fields("place"),
        lambda update: update.set_identifier_fields("nothing"),
    ],
)
def test_identifier_field_is_there_and_never_null(change: Change) -> None:
    schema = replace(SCHEMA, identifier_field_ids=(1,))
    update = update_of(schema)
    with pytest.raises(InvalidMetadataError, match=r"identifier field|expected a column"):
        change(update)
        update.apply()


def test_identifier_field_is_deleted_once_it_is_none() -> None:
    schema = replace(SCHEMA, identifier_field_ids=(1,))
    update = update_of(schema).set_identifier_fields().delete_column("id")
    assert update.apply().schema.field(1) is None


# --- What is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda u: u.add_column("id", LongType()), "a name that is free"),
        (lambda u: u.add_column("", LongType()), "a name that is free"),
        (lambda u: u.add_column("x", LongType(), parent="place"), "a name that is free"),
        (lambda u: u.add_column("v", LongType(), parent="by_key"), "a name that is free"),
        (lambda u: u.add_column("n", LongType()).add_column("n", LongType()), "that is free"),
        (lambda u: u.add_column("n", LongType(), parent="id"), "expected a struct"),
        (lambda u: u.add_column("n", LongType(), parent="nothing"), "expected a column"),
        (lambda u: u.add_column("n", LongType(), parent="by_key.key"), "keys of a map"),
        (lambda u: u.add_column("n", UnknownType(), required=True, default=None), "required"),
        (lambda u: u.delete_column("nothing"), "expected a column"),
        (lambda u: u.delete_column("points.element"), "a field of a struct"),
        (lambda u: u.delete_column("by_key.value"), "a field of a struct"),
        (lambda u: u.delete_column("by_key.key.k"), "keys of a map"),
        (lambda u: u.rename_column("place.x", "l").delete_column("place"), "is changed"),
        (lambda u: u.add_column("n", LongType(), parent="points").delete_column("points"), "chan"),
        (lambda u: u.delete_column("place").rename_column("place.x", "l"), "is deleted"),
        (lambda u: u.delete_column("id").update_column("id", LongType()), "is deleted"),
        (lambda u: u.rename_column("points.element", "e"), "a field of a struct"),
        (lambda u: u.rename_column("by_key.key.k", "e"), "keys of a map"),
        (lambda u: u.rename_column("id", ""), "a new name"),
        (lambda u: u.rename_column("id", "Name"), "both called `Name`"),
        (lambda u: u.update_column("place", LongType()), "cannot become"),
        (lambda u: u.update_column("by_key.key.k", LongType()), "keys of a map"),
        (lambda u: u.update_column_doc("points.element", "x"), "a field of a struct"),
        (lambda u: u.update_column_default("points.element", None), "a field of a struct"),
        (lambda u: u.move_first("nothing"), "expected a column"),
        (lambda u: u.move_before("id", "id"), "another field of the same struct"),
        (lambda u: u.move_after("id", "place.x"), "another field of the same struct"),
        (lambda u: u.move_first("points.element"), "a field of a struct"),
        (lambda u: u.move_first("id").delete_column("id"), "it is deleted"),
        (lambda u: u.move_after("id", "day").delete_column("day"), "it is deleted"),
    ],
)
def test_change_that_the_rules_forbid_is_refused(change: Change, message: str) -> None:
    update = update_of()
    with pytest.raises(InvalidMetadataError, match=message):
        change(update)
        update.apply()


def test_what_came_with_version_3_is_refused_before() -> None:
    changes: tuple[Change, ...] = (
        lambda update: update.add_column("n", TimestampNanoType()),
        lambda update: update.add_column("n", LongType(), default=1),
    )
    for change in changes:
        update = update_of(format_version=2)
        change(update)
        with pytest.raises(InvalidMetadataError, match="needs format version 3"):
            update.apply()


# --- Union by name -------------------------------------------------------------------------------


def test_union_takes_over_what_the_other_schema_has_more() -> None:
    new = Schema(
        (
            NestedField(1, "z", LongType(), True, "last", 5, 6),
            NestedField(
                2,
                "points",
                ListType(
                    3,
                    StructType(
                        (
                            NestedField(4, "x", LongType(), False, "wide"),
                            NestedField(5, "y", LongType(), False),
                        )
                    ),
                    False,
                ),
                False,
            ),
            NestedField(6, "id", LongType(), False),
            NestedField(7, "Name", StringType(), True, write_default="nobody"),
        )
    )
    evolved = union_by_name(update_of(), new).apply()
    assert names(evolved) == [*(field.name for field in SCHEMA.fields), "z"]
    # Nested fields come first.
    assert column(evolved, "points.y") == NestedField(21, "y", LongType(), False)
    assert column(evolved, "z") == NestedField(22, "z", LongType(), False, "last", 5, 6)
    assert column(evolved, "points.x") == NestedField(10, "x", LongType(), False, "wide")
    assert column(evolved, "id") == NestedField(1, "id", LongType(), False)
    assert column(evolved, "Name") == NestedField(
        2, "Name", StringType(), False, "who", None, "nobody"
    )


def test_union_with_a_narrower_schema_changes_nothing() -> None:
    wide = update_of().update_column("id", LongType()).update_column("place.x", DoubleType())
    schema = wide.apply().schema
    assert union_by_name(update_of(schema), SCHEMA).apply().schema == schema
    dates = Schema((NestedField(1, "a", TimestampType(), False),))
    narrower = Schema((NestedField(1, "a", DateType(), False),))
    assert union_by_name(update_of(dates), narrower).apply().schema == dates
    nothing = Schema((NestedField(1, "place", UnknownType(), False),))
    assert not column(union_by_name(update_of(), nothing).apply(), "place").required


@pytest.mark.parametrize(
    "kind",
    [StringType(), POINT, ListType(1, LongType(), False)],
    ids=str,
)
def test_union_of_types_that_do_not_go_together_is_refused(kind: IcebergType) -> None:
    for name in ("id", "by_key"):
        with pytest.raises(InvalidMetadataError, match=f"column `{name}`"):
            union_by_name(update_of(), Schema((NestedField(1, name, kind, False),)))


def test_union_of_the_schemas_of_a_table_has_every_column_that_java_gave_it() -> None:
    """From its first schema on, each added as it was: ids come out as they did in Java."""
    compared = 0
    for table in table_names():
        schemas = [parse_schema(schema) for schema in expected(table)["schemas"]]
        for before, after in itertools.pairwise(schemas):
            added = after.field_ids - before.field_ids
            if not added:
                continue
            update = SchemaUpdate(before, last_column_id=min(added) - 1, format_version=3)
            evolved = union_by_name(update, renamed_back(before, after)).apply()
            assert {evolved.schema.column_name(each) for each in added} == {
                after.column_name(each) for each in added
            }, table
            compared += 1
    assert compared > 5


def renamed_back(before: Schema, after: Schema) -> Schema:
    """Return the later schema, its old top-level columns under their old names."""
    return Schema(
        tuple(
            field
            if (old := before.field(field.field_id)) is None
            else replace(field, name=old.name)
            for field in after.fields
        )
    )
