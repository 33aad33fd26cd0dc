"""Changes of columns and layout as people type them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from committer.cli.changes import evolve_text as text
from committer.cli.changes.send import parse_changes

Document = Mapping[str, object]


def optional(name: str, **more: object) -> Document:
    return {"name": name, "type": "string", "required": False, **more}


@pytest.mark.parametrize(
    ("parse", "typed", "expected"),
    [
        (text.add_column, "tail string", {"name": "tail", "type": "string", "required": False}),
        (
            text.add_column,
            "place.zip bigint not null default 7 comment 'the ''real'' one'",
            {
                "name": "zip",
                "parent": "place",
                "type": "long",
                "required": True,
                "default": "7",
                "doc": "the 'real' one",
            },
        ),
        (
            text.add_column,
            "price decimal(9, 2) default 1.50 'in EUR'",
            {
                "name": "price",
                "type": "decimal(9, 2)",
                "required": False,
                "default": "1.50",
                "doc": "in EUR",
            },
        ),
        (
            text.add_column,
            "tags list<string> default 'x'",
            {
                "name": "tags",
                "type": {
                    "type": "list",
                    "element-id": 2,
                    "element": "string",
                    "element-required": False,
                },
                "required": False,
                "default": "x",
            },
        ),
        (
            text.add_column,
            "amount decimal(9, 2) not null default 0 comment 'in EUR'",
            {
                "name": "amount",
                "type": "decimal(9, 2)",
                "required": True,
                "default": "0",
                "doc": "in EUR",
            },
        ),
        (text.add_column, "q string default 'it''s'", optional("q", default="it's")),
        (text.add_column, "q string default ''", optional("q", default="")),
        (text.add_column, "q string default null", optional("q", default=None)),
        (text.add_column, "q string default 1 two", optional("q", default="1 two")),
        (
            text.add_column,
            "q string DEFAULT 'by default ''none''' Comment 'a default b'",
            optional("q", default="by default 'none'", doc="a default b"),
        ),
        (text.add_column, "q string 'a default ''b'''", optional("q", doc="a default 'b'")),
        (text.widen, "id long", {"name": "id", "type": "long"}),
        (text.rename, "a = b", {"name": "a", "new-name": "b"}),
        (text.doc, "a=x=y", {"name": "a", "doc": "x=y"}),
        (text.doc, "a=", {"name": "a"}),
        (text.default, "a=true", {"name": "a", "default": "true"}),
        (text.default, "a=plain", {"name": "a", "default": "plain"}),
        (text.default, "a='it''s'", {"name": "a", "default": "it's"}),
        (text.default, "a=''", {"name": "a", "default": ""}),
        (text.default, "a=", {"name": "a"}),
        (text.move, "a first", {"name": "a", "first": True}),
        (text.move, "a AFTER b.c", {"name": "a", "after": "b.c"}),
        (text.identifier_fields, "a, b.c", {"names": ["a", "b.c"]}),
        (text.identifier_fields, "", {"names": []}),
        (
            text.add_partition_field,
            "bucket(16, id) as shard",
            {"source": "id", "transform": "bucket[16]", "name": "shard"},
        ),
        (text.add_partition_field, "days(at)", {"source": "at", "transform": "day"}),
        (text.rename_partition_field, "a=b", {"name": "a", "new-name": "b"}),
        (text.sort_order, "", {"fields": []}),
        (
            text.sort_order,
            "at desc nulls last, bucket(8, id)",
            {
                "fields": [
                    {
                        "source": "at",
                        "transform": "identity",
                        "direction": "desc",
                        "null-order": "nulls-last",
                    },
                    {"source": "id", "transform": "bucket[8]", "direction": "asc"},
                ]
            },
        ),
    ],
)
def test_text_is_read_as_a_change_of_a_request(
    parse: Callable[[str], Document], typed: str, expected: Document
) -> None:
    found = dict(parse(typed))
    parse_changes([found])
    del found["action"]
    assert found == expected


@pytest.mark.parametrize(
    ("parse", "typed", "why"),
    [
        (text.add_column, "tail", "a column such as `id long`"),
        (text.add_column, "a int, b int", "expected one column"),
        (text.add_column, "a integr", "unknown type"),
        (text.widen, "id", "a column such as `id long`"),
        (text.rename, "a", "expected `NAME=VALUE`"),
        (text.rename, "place.zip=place.code", "the last part of the new name only"),
        (text.add_column, "q string default 'it's'", "a text in quotes such as"),
        (text.add_column, "q string default 'x' comment 'it's'", "a text in quotes such as"),
        (text.default, "a='it's'", "a text in quotes such as"),
        (text.default, 'a="x"', "a text in quotes such as"),
        (text.move, "a behind b", "expected `a first`"),
        (text.add_partition_field, "bucket(16)", "a transform of one column"),
        (text.add_partition_field, "zorder(a)", "no transform"),
        (text.sort_order, "at,", "expected a list"),
    ],
)
def test_text_that_is_no_change_is_refused(
    parse: Callable[[str], Document], typed: str, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        parse(typed)


def test_a_change_that_no_table_could_take_is_wrong_usage() -> None:
    """The error names the key, as a producer's request would be refused for it."""
    import typer

    with pytest.raises(typer.BadParameter, match="Frazil's own"):
        parse_changes([{"action": "set-properties", "updates": {"frazil.x": "1"}}])
