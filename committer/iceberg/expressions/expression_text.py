"""Expressions as text for people, in the form of Iceberg Java. Source: its `toString`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from committer.iceberg.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundReference,
    BoundTerm,
    Expression,
    LiteralPredicate,
    Not,
    NotStartsWith,
    Or,
    Predicate,
    Reference,
    SetPredicate,
    StartsWith,
    Term,
)
from committer.iceberg.values.display_values import human_value
from committer.iceberg.values.types import DecimalType, DoubleType, FloatType, IcebergType

_SIGNS: Mapping[str, str] = {
    "lt": "<",
    "lt-eq": "<=",
    "gt": ">",
    "gt-eq": ">=",
    "eq": "==",
    "not-eq": "!=",
    "starts-with": "startsWith",
    "not-starts-with": "notStartsWith",
    "in": "in",
    "not-in": "not in",
    "is-null": "is_null",
    "not-null": "not_null",
    "is-nan": "is_nan",
    "not-nan": "not_nan",
}


def print_text(expression: Expression) -> str:
    """Print the expression with its terms and literals."""
    match expression:
        case AlwaysTrue():
            return "true"
        case AlwaysFalse():
            return "false"
        case Not(child):
            return f"not({print_text(child)})"
        case And(left, right):
            return f"({print_text(left)} and {print_text(right)})"
        case Or(left, right):
            return f"({print_text(left)} or {print_text(right)})"
        case Predicate():
            return _predicate_text(expression)
    raise TypeError(f"not an expression: {expression!r}")


def _predicate_text(predicate: Predicate) -> str:
    term, sign = _term_text(predicate.term), _SIGNS[predicate.operation]
    match predicate:
        case StartsWith(value=value) | NotStartsWith(value=value):
            return f'{term} {sign} ""{value}""'
        case LiteralPredicate(value=value):
            return f"{term} {sign} {_literal_text(predicate.term, value)}"
        case SetPredicate(values=values):
            listed = ", ".join(_literal_text(predicate.term, value) for value in values)
            return f"{term} {sign} ({listed})"
    return f"{sign}({term})"


def _term_text(term: Term) -> str:
    match term:
        case Reference(name):
            return f'ref(name="{name}")'
        case BoundReference():
            return f"ref(id={term.field_id}, accessor-type={term.value_type})"
    return f"{term.transform}({_term_text(term.reference)})"


def _literal_text(term: Term, value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"'
        case float():
            return human_value(_float_type(term), value)
        case bytes():
            return f"X'{value.hex().upper()}'"
        case Decimal():
            return human_value(DecimalType(38, 0), value)
    return str(value)


def _float_type(term: Term) -> IcebergType:
    if isinstance(term, BoundTerm) and term.value_type == FloatType():
        return FloatType()
    return DoubleType()
