"""Schemas, partition specs and sort orders as people type them. Pure text in, values out.

    id long, name string not null, at timestamptz, tags list<string>, price decimal(9, 2)
    month(at), bucket(8, name), identity(id) as the_id
    at desc nulls last, bucket(8, name)

Type names are the specification's; `bigint`, `integer` and `bool` are understood too. A name with
spaces, commas or brackets stands in backticks or double quotes, which are doubled inside of it.
Column ids count up in order of appearance. Errors of every function: `ValueError` saying what was
expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from committer.errors import InvalidMetadataError
from committer.iceberg.schema.partition_spec import (
    PARTITION_FIELD_ID_START,
    PartitionField,
    PartitionSpec,
)
from committer.iceberg.schema.schema import Schema, validate_schema
from committer.iceberg.schema.sort_order import SortField, SortOrder
from committer.iceberg.values.near_names import did_you_mean
from committer.iceberg.values.transforms import (
    IDENTITY,
    Transform,
    UnknownTransform,
    parse_transform,
)
from committer.iceberg.values.type_json import parse_type
from committer.iceberg.values.types import IcebergType, ListType, MapType, NestedField, StructType

_OPENING, _CLOSING, _QUOTES = "(<[", ")>]", '`"'
_TYPE_ALIASES = {"bigint": "long", "integer": "int", "bool": "boolean"}
_TYPES = (
    *("boolean", "int", "long", "float", "double", "decimal(P, S)", "date", "time"),
    *("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "string", "uuid"),
    *("fixed[L]", "binary", "variant", "geometry", "geography", "unknown"),
)
_NESTING = ("struct<…>", "list<…>", "map<…, …>")
_TRANSFORMS = ("identity", "year", "month", "day", "hour", "bucket", "truncate", "void")
_REQUIRED = re.compile(r"\s+(not\s+null|required)$", re.IGNORECASE)
_OPTIONAL = re.compile(r"\s+(null|optional)$", re.IGNORECASE)
_NESTED = re.compile(r"(struct|list|array|map)\s*<(.*)>", re.IGNORECASE | re.DOTALL)
_TERM = re.compile(r"(\w+)\s*\((.*)\)", re.DOTALL)
_QUOTED = r"`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\""
_PART = re.compile(rf"{_QUOTED}|[^.`\"]+")
_PATH = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
_NAMED = re.compile(rf"(.*\S)\s+as\s+({_QUOTED}|[^\s`\"]+)", re.IGNORECASE | re.DOTALL)
_COLUMN = re.compile(rf"({_QUOTED}|[^\s:<>(),`\"][^\s:<>(),]*)(?:\s*:\s*|\s+)(\S.*)", re.DOTALL)
_NULLS = re.compile(r"(.*\S)\s+nulls\s+(first|last)", re.IGNORECASE | re.DOTALL)
_DIRECTION = re.compile(r"(.*\S)\s+(asc|desc)", re.IGNORECASE | re.DOTALL)
_SUFFIXES = {"truncate": "trunc"}


def _split(text: str) -> list[str]:
    """Cut at commas outside brackets and quotes; parts are stripped, and none may be empty."""
    parts, depth, start, quote = [], 0, 0, ""
    for position, character in enumerate(text):
        if quote or character in _QUOTES:
            quote = "" if character == quote else quote or character
            continue
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    if depth or quote or not all(parts):
        raise ValueError(f"expected a list like `a, b(1, c)`, found `{text}`")
    return parts


def _unquoted(name: str) -> str:
    """Return a dotted name without the quotes of its parts; as it is where it is not quoted."""
    if not _PATH.fullmatch(name):
        return name
    return ".".join(map(_unquoted_part, _PART.findall(name)))


def _unquoted_part(part: str) -> str:
    quote = part[0]
    return part[1:-1].replace(quote * 2, quote) if quote in _QUOTES else part


# --- Schemas -------------------------------------------------------------------------------------


def parse_columns(text: str) -> Schema:
    """Parse `id long, name string not null, …` to a schema."""
    ids = count(1)
    try:
        schema = Schema(_parse_fields(_split(text), ids))
        validate_schema(schema)
    except InvalidMetadataError as error:
        raise ValueError(str(error)) from None
    return schema


def _parse_fields(texts: list[str], ids: Iterator[int]) -> tuple[NestedField, ...]:
    fields = tuple(_parse_field(text, ids) for text in texts)
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"column `{name}` is there twice")
    return fields


def _parse_field(text: str, ids: Iterator[int]) -> NestedField:
    found = _COLUMN.fullmatch(text)
    if not found:
        raise ValueError(f"expected a column such as `id long`, found `{text}`")
    name, rest = _unquoted_part(found[1]), found[2].strip()
    kind = _OPTIONAL.sub("", _REQUIRED.sub("", rest))
    field_id = next(ids)
    return NestedField(
        field_id, name, _parse_type(kind, ids), required=bool(_REQUIRED.search(rest))
    )


def _parse_type(text: str, ids: Iterator[int]) -> IcebergType:
    nested = _NESTED.fullmatch(text.strip())
    if not nested:
        return _parse_primitive(text)
    word, inside = nested[1].lower(), nested[2]
    if word == "struct":
        return StructType(_parse_fields(_split(inside), ids))
    parts = _split(inside)
    if word == "map" and len(parts) == 2:
        key_id, value_id = next(ids), next(ids)
        key, value = (_parse_type(part, ids) for part in parts)
        return MapType(key_id, key, value_id, value, False)
    if word != "map" and len(parts) == 1:
        return ListType(next(ids), _parse_type(parts[0], ids), False)
    raise ValueError(f"expected `list<type>` or `map<type, type>`, found `{text}`")


def _parse_primitive(text: str) -> IcebergType:
    try:
        return parse_type(_TYPE_ALIASES.get(text.strip().lower(), text))
    except InvalidMetadataError as error:
        near = did_you_mean(_first_word(text), map(_first_word, (*_TYPES, *_NESTING)))
        known = ", ".join((*_TYPES, *_NESTING))
        raise ValueError(f"{error}; expected one of {known}; {near}".rstrip("; ")) from None


def _first_word(text: str) -> str:
    return re.split(r"[\s(<\[]", text.strip().lower(), maxsplit=1)[0]


# --- Partition specs and sort orders -------------------------------------------------------------


def parse_partition(text: str, schema: Schema) -> PartitionSpec:
    """Parse `month(at), bucket(8, name)` to a spec; fields are named as engines name them."""
    fields = tuple(
        _partition_field(part, PARTITION_FIELD_ID_START + position, schema)
        for position, part in enumerate(_split(text))
    )
    for field in fields:
        _check_name(field, fields, schema)
    return PartitionSpec(0, fields)


def _partition_field(text: str, field_id: int, schema: Schema) -> PartitionField:
    column, transform, name = parse_partition_term(text)
    source = _find(column, schema)
    _check_takes(text, transform, source)
    word = str(transform).partition("[")[0]
    derived = column if word == "identity" else f"{column}_{_SUFFIXES.get(word, word)}"
    return PartitionField((source.field_id,), field_id, name or derived, transform)


def _check_name(field: PartitionField, fields: tuple[PartitionField, ...], schema: Schema) -> None:
    if sum(other.name == field.name for other in fields) > 1:
        raise ValueError(f"two partition fields are called `{field.name}`: name one with `as`")
    column = schema.find(field.name)
    is_its_value = field.transform == IDENTITY and column == schema.field(field.source_id)
    if column is not None and not is_its_value:
        raise ValueError(
            f"partition field `{field.name}` is called like a column: name it with `as`"
        )


def parse_sort_order(text: str, schema: Schema) -> SortOrder:
    """Parse `at desc nulls last, bucket(8, name)` to an order; ascending puts nulls first."""
    return SortOrder(1, tuple(_sort_field(part, schema) for part in _split(text)))


def _sort_field(text: str, schema: Schema) -> SortField:
    column, transform, direction, null_order = _sort_key(text)
    source = _find(column, schema)
    _check_takes(text, transform, source)
    default = "nulls-first" if direction == "asc" else "nulls-last"
    return SortField((source.field_id,), transform, direction, null_order or default)


def parse_partition_term(text: str) -> tuple[str, Transform, str | None]:
    """Parse `bucket(8, name) as shard`: the column, the transform and the name, if there is one."""
    named = _NAMED.fullmatch(text.strip())
    transform, column = _bare_term(named[1] if named else text)
    return column, transform, _unquoted_part(named[2]) if named else None


def parse_sort_keys(text: str) -> list[tuple[str, Transform, str, str | None]]:
    """Parse `at desc nulls last, bucket(8, name)`: the column, the transform, the direction, and
    where nulls are, if it says so. No text has no keys."""
    return [_sort_key(part) for part in _split(text)] if text.strip() else []


def _sort_key(text: str) -> tuple[str, Transform, str, str | None]:
    nulls = _NULLS.fullmatch(text)
    rest = nulls[1] if nulls else text
    directed = _DIRECTION.fullmatch(rest)
    transform, column = _bare_term(directed[1] if directed else rest)
    direction = directed[2].lower() if directed else "asc"
    return column, transform, direction, f"nulls-{nulls[2].lower()}" if nulls else None


def _check_takes(text: str, transform: Transform, column: NestedField) -> None:
    if not transform.can_transform(column.field_type):
        raise ValueError(
            f"`{text}`: {transform} does not take a column of type {column.field_type}"
        )


def _bare_term(text: str) -> tuple[Transform, str]:
    """Parse `column`, `month(column)`, `bucket(8, column)` or `bucket(column, 8)`."""
    term = _TERM.fullmatch(text.strip())
    word, arguments = (term[1], _split(term[2])) if term else ("identity", [text.strip()])
    numbers = [argument for argument in arguments if argument.isdecimal()]
    columns = [argument for argument in arguments if not argument.isdecimal()]
    if len(columns) != 1 or len(numbers) > 1:
        raise ValueError(f"expected a transform of one column such as `day(at)`, found `{text}`")
    # Engines also write `days(at)`.
    word = word.lower().removesuffix("s")
    return _transform(word + (f"[{numbers[0]}]" if numbers else "")), _unquoted(columns[0])


def _transform(text: str) -> Transform:
    try:
        transform = parse_transform(text)
    except InvalidMetadataError as error:
        raise ValueError(str(error)) from None
    if isinstance(transform, UnknownTransform):
        near = did_you_mean(text.partition("[")[0].lower(), _TRANSFORMS)
        raise ValueError(
            f"no transform `{text}`: expected identity, year, month, day, hour,"
            f" bucket(n, column), truncate(width, column) or void; {near}".rstrip("; ")
        )
    return transform


def _find(name: str, schema: Schema) -> NestedField:
    field = schema.find(name)
    if field is None:
        columns = ", ".join(column.name for column in schema.fields)
        raise ValueError(f"no column `{name}`: the schema has {columns}")
    return field
