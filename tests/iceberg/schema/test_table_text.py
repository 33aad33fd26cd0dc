from __future__ import annotations

import pytest

from committer.iceberg.schema.partition_spec import print_partition_fields
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import print_sort_order
from committer.iceberg.schema.table_text import parse_columns, parse_partition, parse_sort_order

COLUMNS = "id long not null, name string, at timestamptz, price decimal(9, 2), at_day date"


def columns() -> Schema:
    return parse_columns(COLUMNS)


def partition(text: str) -> list[tuple[object, ...]]:
    spec = parse_partition(text, columns())
    return [
        (field["name"], field["transform"], field["source-id"])
        for field in print_partition_fields(spec)
    ]


def test_columns_have_names_types_and_needs() -> None:
    assert [(one.name, str(one.field_type), one.required) for one in columns().fields] == [
        ("id", "long", True),
        ("name", "string", False),
        ("at", "timestamptz", False),
        ("price", "decimal(9, 2)", False),
        ("at_day", "date", False),
    ]


def test_nested_types_have_ids_of_their_own() -> None:
    schema = parse_columns(
        "tags list<string>, props map<string, struct<x: double, y: list<int>>>, id bigint"
    )
    assert [str(field.field_type) for field in schema.fields] == [
        "list<string>",
        "map<string, struct<6: x: optional double, 7: y: optional list<int>>>",
        "long",
    ]
    assert sorted(field.field_id for _, field in schema.walk()) == list(range(1, 10))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id", "such as `id long`"),
        ("id lon", "unknown type `lon`"),
        ("id long, id string", "`id` is there twice"),
        ("id long,", "expected a list like"),
        ("id list<int", "expected a list like"),
        ("id map<int>", "`map<type, type>`"),
        ("price decimal(99, 2)", "precision 99"),
    ],
)
def test_wrong_columns_are_named(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected.replace("(", r"\(")):
        parse_columns(text)


def test_partition_fields_are_named_as_engines_name_them() -> None:
    assert partition("month(at), bucket(8, name), truncate(name, 3), id, years(at_day)") == [
        ("at_month", "month", 3),
        ("name_bucket", "bucket[8]", 2),
        ("name_trunc", "truncate[3]", 2),
        ("id", "identity", 1),
        ("at_day_year", "year", 5),
    ]


def test_a_partition_field_may_be_given_a_name() -> None:
    assert partition("day(at) as d, day(at_day) AS e") == [("d", "day", 3), ("e", "day", 5)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("month(nope)", "no column `nope`: the schema has id, name"),
        ("month(name)", "month does not take a column of type string"),
        ("mont(at)", "no transform `mont`"),
        ("bucket(8, 9)", "of one column"),
        ("bucket(0, id)", "from 1 to"),
        ("bucket(8, id), bucket(9, id)", "two partition fields are called `id_bucket`"),
        ("day(at)", "`at_day` is called like a column"),
    ],
)
def test_wrong_partitions_are_named(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        partition(text)


def test_ascending_puts_nulls_first_and_descending_last() -> None:
    order = parse_sort_order("at desc, bucket(8, name), id asc nulls last", columns())
    assert print_sort_order(order) == {
        "order-id": 1,
        "fields": [
            {
                "transform": "identity",
                "source-id": 3,
                "direction": "desc",
                "null-order": "nulls-last",
            },
            {
                "transform": "bucket[8]",
                "source-id": 2,
                "direction": "asc",
                "null-order": "nulls-first",
            },
            {
                "transform": "identity",
                "source-id": 1,
                "direction": "asc",
                "null-order": "nulls-last",
            },
        ],
    }


@pytest.mark.parametrize("quote", ["`", '"'])
def test_a_quoted_name_may_hold_any_character(quote: str) -> None:
    names = ("order id", "a,b", "f(x)", "sold as x", "n desc", f"it{quote}s", "8")
    typed = [quote + name.replace(quote, quote * 2) + quote for name in names]
    schema = parse_columns(", ".join(f"{name} long" for name in typed))
    assert [field.name for field in schema.fields] == list(names)
    spec = parse_partition(", ".join(f"bucket(4, {name})" for name in typed), schema)
    assert [field.source_id for field in spec.fields] == list(range(1, len(names) + 1))
    assert [field.name for field in spec.fields] == [f"{name}_bucket" for name in names]
    named = parse_partition(f"{typed[0]} as {quote}the id{quote}, {typed[3]}", schema)
    assert [(field.name, field.source_id) for field in named.fields] == [
        ("the id", 1),
        ("sold as x", 4),
    ]
    order = parse_sort_order(f"{typed[4]} desc, bucket(4, {typed[0]}), {typed[2]} asc", schema)
    assert [(key.source_id, key.direction) for key in order.fields] == [
        (5, "desc"),
        (1, "asc"),
        (3, "asc"),
    ]


def test_each_part_of_a_nested_name_may_be_quoted() -> None:
    schema = parse_columns("place struct<`zip code`: int, town: string>")
    spec = parse_partition("truncate(2, place.`zip code`), `place`.town", schema)
    assert [field.name for field in spec.fields] == ["place.zip code_trunc", "place.town"]
    assert [schema.column_name(field.source_id) for field in spec.fields] == [
        "place.zip code",
        "place.town",
    ]


def test_a_quote_that_does_not_end_is_named() -> None:
    with pytest.raises(ValueError, match="expected a list like"):
        partition("bucket(8, `name)")
