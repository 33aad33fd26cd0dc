"""Changes of a schema and layout as people type them: text in, documents of a request out.

    amount decimal(9, 2) not null default 0 comment 'in EUR'
    place.zip string
    amount after id
    bucket(16, id) as shard

Errors of every function: `ValueError` saying what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from committer.iceberg.schema.schema import print_schema
from committer.iceberg.schema.table_text import parse_columns, parse_partition_term, parse_sort_keys
from committer.iceberg.values.type_json import print_type

Document = Mapping[str, object]

_TEXT = r"'(?:[^']|'')*'"
_COLUMN = re.compile(
    rf"(?P<column>.*?\S)(?:\s+default\s+(?P<default>{_TEXT}|\S.*?))?"
    rf"(?:\s+(?:comment\s+)?(?P<doc>{_TEXT}))?",
    re.IGNORECASE | re.DOTALL,
)
_MOVE = re.compile(r"(\S+)\s+(?:(first)|(before|after)\s+(\S+))", re.IGNORECASE)


def add_column(text: str) -> Document:
    """Parse `name type [not null] [default VALUE] [[comment] 'TEXT']`."""
    found = _COLUMN.fullmatch(text.strip())
    column, default, doc = found.group("column", "default", "doc") if found else (text, None, None)
    name, kind, required = _column(column)
    parent, _, own = name.rpartition(".")
    return {
        "action": "add-column",
        "name": own,
        **({"parent": parent} if parent else {}),
        "type": kind,
        "required": required,
        **({"doc": _value(doc)} if doc else {}),
        **({"default": _value(default)} if default else {}),
    }


def widen(text: str) -> Document:
    """Parse `name type`."""
    name, kind, _ = _column(text)
    return {"action": "update-column-type", "name": name, "type": kind}


def _column(text: str) -> tuple[str, object, bool]:
    columns = parse_columns(text).fields
    if len(columns) != 1:
        raise ValueError(f"expected one column such as `id long`, found `{text}`")
    return columns[0].name, print_type(columns[0].field_type), columns[0].required


def _value(text: str) -> str | None:
    """Return a text without its quotes, None for `null`. The committer reads it as its type."""
    if re.fullmatch(_TEXT, text):
        return text[1:-1].replace("''", "'")
    if text[0] in "'\"":
        raise ValueError(f"expected a text in quotes such as 'it''s', found `{text}`")
    return None if text.lower() == "null" else text


def pair(text: str) -> tuple[str, str]:
    """Parse `OLD=NEW`."""
    old, sign, new = (part.strip() for part in text.partition("="))
    if not (old and sign):
        raise ValueError(f"expected `NAME=VALUE`, found `{text}`")
    return old, new


def rename(text: str) -> Document:
    """Parse `old=new`."""
    old, new = pair(text)
    if "." in new:
        raise ValueError(f"`{text}`: expected the last part of the new name only, without a dot")
    return {"action": "rename-column", "name": old, "new-name": new}


def doc(text: str) -> Document:
    """Parse `name=text`; without text, it is removed."""
    name, said = pair(text)
    return {"action": "update-column-doc", "name": name, **({"doc": said} if said else {})}


def default(text: str) -> Document:
    """Parse `name=value`; without a value, it is removed."""
    name, said = pair(text)
    value = {"default": _value(said)} if said else {}
    return {"action": "update-column-default", "name": name, **value}


def move(text: str) -> Document:
    """Parse `name first`, `name before other` or `name after other`."""
    found = _MOVE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"expected `a first`, `a before b` or `a after b`, found `{text}`")
    place = {"first": True} if found[2] else {found[3].lower(): found[4]}
    return {"action": "move-column", "name": found[1], **place}


def identifier_fields(text: str) -> Document:
    """Parse `id, region`; no text has no columns."""
    names = [part.strip() for part in text.split(",")] if text.strip() else []
    return {"action": "set-identifier-fields", "names": names}


def add_partition_field(text: str) -> Document:
    """Parse `bucket(16, id) as shard`."""
    source, transform, name = parse_partition_term(text)
    return {
        "action": "add-partition-field",
        "source": source,
        "transform": str(transform),
        **({"name": name} if name else {}),
    }


def rename_partition_field(text: str) -> Document:
    """Parse `old=new`."""
    old, new = pair(text)
    return {"action": "rename-partition-field", "name": old, "new-name": new}


def sort_order(text: str) -> Document:
    """Parse `at desc nulls last, bucket(8, name)`; no text is unsorted."""
    fields = [
        {
            "source": source,
            "transform": str(transform),
            "direction": direction,
            **({"null-order": nulls} if nulls else {}),
        }
        for source, transform, direction, nulls in parse_sort_keys(text)
    ]
    return {"action": "replace-sort-order", "fields": fields}


def union_by_name(text: str) -> Document:
    """Parse `id long, at date`."""
    return {"action": "union-by-name", "schema": print_schema(parse_columns(text))}
