"""Expressions as JSON: read and printed.

Literals of unbound expressions are plain JSON; dates, timestamps, decimals, uuids and bytes are
text until they are bound. Those of bound expressions are printed as single values of their type.
Source: the expression schemas of the REST catalog specification; the reference's parser.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import cast
from uuid import UUID

from committer.errors import InvalidMetadataError
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    PREDICATES,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundReference,
    BoundTerm,
    Expression,
    LiteralPredicate,
    Not,
    Or,
    Predicate,
    Reference,
    SetPredicate,
    Term,
    Transformed,
    UnaryPredicate,
)
from committer.iceberg.values.json_reader import Reader, expected
from committer.iceberg.values.single_value import print_json_value
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import BinaryType, DoubleType

# Each level costs a few frames of Python's stack wherever an expression is walked.
DEPTH_MAX = 200

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


# --- Reading -------------------------------------------------------------------------------------


def parse_expression(document: object, *, where: str = "expression") -> Expression:
    """Read an (unbound) expression out of parsed JSON.

    Constants inside and, or, not are simplified. Errors: `InvalidMetadataError` naming the place,
    also for more than `DEPTH_MAX` levels.
    """
    return _parse(document, where, 0)


def _parse(document: object, where: str, depth: int) -> Expression:
    if isinstance(document, bool):
        return ALWAYS_TRUE if document else ALWAYS_FALSE
    if depth > DEPTH_MAX:
        raise InvalidMetadataError(f"{where}: expressions nested deeper than {DEPTH_MAX}")
    reader = Reader(document, where)
    kind = reader.text("type").lower().replace("_", "-")
    match kind:
        case "true":
            return ALWAYS_TRUE
        case "false":
            return ALWAYS_FALSE
        case "literal":
            return _constant(reader)
        case "not":
            return Not.of(_parse(reader.take("child"), where, depth + 1))
        case "and" | "or":
            left = _parse(reader.take("left"), where, depth + 1)
            right = _parse(reader.take("right"), where, depth + 1)
            return And.of(left, right) if kind == "and" else Or.of(left, right)
    return _predicate(kind, reader)


def _constant(reader: Reader) -> Expression:
    found = reader.take("value")
    if not isinstance(found, bool):
        raise reader.expected("value", "a boolean", found)
    return ALWAYS_TRUE if found else ALWAYS_FALSE


def _predicate(operation: str, reader: Reader) -> Predicate:
    kind = PREDICATES.get(operation)
    if kind is None:
        raise InvalidMetadataError(f"{reader.where}: unknown operation `{operation[:100]}`")
    where = f"{reader.where}: {operation}"
    term = _term(reader.take("term"), f"{where}: `term`")
    literals: dict[str, object] = {
        key: reader.take(key) for key in ("value", "values") if key in reader.rest
    }
    if issubclass(kind, UnaryPredicate):
        _only(literals, None, where)
        return kind(term)
    if issubclass(kind, SetPredicate):
        found = _only(literals, "values", where)
        if not isinstance(found, list):
            raise expected(f"{where}: `values`", "a list", found)
        return kind(term, tuple(_literal(each, f"{where}: `values`") for each in found))
    found = _only(literals, "value", where)
    return cast(type[LiteralPredicate], kind)(term, _literal(found, f"{where}: `value`"))


def _only(literals: dict[str, object], key: str | None, where: str) -> object:
    if set(literals) != ({key} if key else set()):
        raise InvalidMetadataError(
            f"{where}: expected {f'`{key}`' if key else 'no literal'},"
            f" found {' and '.join(f'`{each}`' for each in literals) or 'nothing'}"
        )
    return literals[key] if key else None


def _literal(json_value: object, where: str) -> object:
    """Read a literal, plain or as an object of type `literal`."""
    if isinstance(json_value, dict):
        reader = Reader(json_value, where)
        if reader.text("type").lower() != "literal":
            raise InvalidMetadataError(f"{where}: expected a literal")
        json_value = reader.take("value")
    if not isinstance(json_value, bool | int | float | str):
        raise expected(where, "a boolean, a number or a string", json_value)
    if type(json_value) is int and not LONG_MIN <= json_value <= LONG_MAX:
        raise InvalidMetadataError(f"{where}: expected an integer of 64 bits")
    return json_value


def _term(json_value: object, where: str) -> Reference | Transformed:
    if isinstance(json_value, str):
        return Reference(json_value)
    reader = Reader(json_value, where)
    match reader.text("type"):
        case "reference":
            return Reference(reader.text("term"))
        case "transform":
            transform = parse_transform(reader.text("transform"))
            return Transformed(transform, _column(reader.take("term"), where))
    raise InvalidMetadataError(f"{where}: expected a name, a `reference` or a `transform`")


def _column(json_value: object, where: str) -> Reference:
    if isinstance(json_value, str):
        return Reference(json_value)
    reader = Reader(json_value, where)
    if reader.text("type") != "reference":
        raise InvalidMetadataError(f"{where}: expected a transform of a column")
    return Reference(reader.text("term"))


# --- Printing ------------------------------------------------------------------------------------


def print_expression(expression: Expression) -> object:
    """Print the JSON form, ready for a JSON printer. Keys are in the reference's order."""
    match expression:
        case AlwaysTrue():
            return True
        case AlwaysFalse():
            return False
        case Not(child):
            return {"type": "not", "child": print_expression(child)}
        case And(left, right) | Or(left, right):
            return {
                "type": "and" if isinstance(expression, And) else "or",
                "left": print_expression(left),
                "right": print_expression(right),
            }
        case Predicate():
            return _print_predicate(expression)
    raise TypeError(f"not an expression: {expression!r}")


def _print_predicate(predicate: Predicate) -> object:
    printed: dict[str, object] = {
        "type": predicate.operation,
        "term": _print_term(predicate.term),
    }
    literal = _literal_printer(predicate.term)
    match predicate:
        case LiteralPredicate():
            printed["value"] = literal(predicate.value)
        case SetPredicate():
            printed["values"] = [literal(value) for value in predicate.values]
    return printed


def _print_term(term: Term) -> object:
    if isinstance(term, Reference | BoundReference):
        return term.name
    return {"type": "transform", "transform": str(term.transform), "term": term.name}


def _literal_printer(term: Term) -> Callable[[object], object]:
    if isinstance(term, BoundTerm):
        value_type = term.value_type
        return lambda value: print_json_value(value_type, value)
    return _print_literal


def _print_literal(value: object) -> object:
    match value:
        case float():
            return print_json_value(DoubleType(), value)
        case bytes():
            return print_json_value(BinaryType(), value)
        case UUID() | Decimal():
            return str(value) if isinstance(value, UUID) else format(value, "f")
    return value
