"""Expressions as text for people, and as text without the data in it, for logs.

The forms are those of Iceberg Java.
Source: its `toString` and its sanitizer of expressions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from committer.iceberg.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundReference,
    BoundTransformed,
    Expression,
    IsNaN,
    IsNull,
    LiteralPredicate,
    Not,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Predicate,
    Reference,
    SetPredicate,
    StartsWith,
    Term,
)
from committer.iceberg.expressions.literals import convert_literal
from committer.iceberg.values.calendar import DAY_S, SECOND_MICROS
from committer.iceberg.values.display_values import human_value
from committer.iceberg.values.transforms import BucketTransform
from committer.iceberg.values.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

# --- The whole of it -----------------------------------------------------------------------------

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
    if isinstance(term, BoundReference | BoundTransformed) and term.value_type == FloatType():
        return FloatType()
    return DoubleType()


# --- Without its data ----------------------------------------------------------------------------

# Longer lists are cut: their content is not printed anyway.
_LISTED_MAX = 10


def print_sanitized(expression: Expression, *, now_ms: int) -> str:
    """Print the expression with each literal replaced by what kind of value it is.

    Numbers show their number of digits, times their distance from now, all others a hash. `now_ms`:
    milliseconds since 1970.
    """
    return _Sanitizer(now_ms * 1_000).text(expression)


_SANITIZED_SIGNS: Mapping[str, str] = {
    **_SIGNS,
    "eq": "=",
    "in": "IN",
    "not-in": "NOT IN",
    "starts-with": "STARTS WITH",
    "not-starts-with": "NOT STARTS WITH",
}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{2}:\d{2}(:\d{2}(.\d{1,9})?)?")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(.\d{1,9})?)?")
_TIMESTAMPTZ = re.compile(_TIMESTAMP.pattern + r"([-+]\d{2}:\d{2}|Z)")
_HOUR_MICROS = 3_600 * SECOND_MICROS
_NOW_MICROS = 300 * SECOND_MICROS
_HASH = BucketTransform(2**31 - 1)


@dataclass(frozen=True, slots=True)
class _Sanitizer:
    now_micros: int

    def text(self, expression: Expression) -> str:
        match expression:
            case Not(child):
                return f"NOT ({self.text(child)})"
            case And(left, right):
                return f"({self.text(left)} AND {self.text(right)})"
            case Or(left, right):
                return f"({self.text(left)} OR {self.text(right)})"
            case Predicate():
                return self._predicate(expression)
        return print_text(expression)

    def _predicate(self, predicate: Predicate) -> str:
        term, sign = _described(predicate.term), _SANITIZED_SIGNS[predicate.operation]
        literal = self._literal_of(predicate.term)
        match predicate:
            case IsNull():
                return f"{term} IS NULL"
            case NotNull():
                return f"{term} IS NOT NULL"
            case IsNaN() | NotNaN():
                return f"{sign}({term})"
            case LiteralPredicate(value=value):
                return f"{term} {sign} {literal(value)}"
            case SetPredicate(values=values):
                return f"{term} {sign} ({', '.join(_abbreviated(list(map(literal, values))))})"
        raise TypeError(f"not a predicate: {predicate!r}")

    def _literal_of(self, term: Term) -> Callable[[object], str]:
        """Return a printer of a term's literals: bound days and times print by their type."""
        kind = term.value_type if isinstance(term, BoundReference | BoundTransformed) else None
        match kind:
            case DateType():
                return lambda value: self._date(_number(value))
            case TimestampType() | TimestamptzType():
                return lambda value: self._timestamp(_number(value))
            case TimestampNanoType() | TimestamptzNanoType():
                return lambda value: self._timestamp(_number(value) // 1_000)
        return self._literal

    def _literal(self, value: object) -> str:
        match value:
            case str():
                return self._string(value)
            case bool():
                return _hashed("true" if value else "false")
            case int():
                return f"({_digits(value)}-digit-int)"
            case float():
                return f"({_digits(value)}-digit-float)"
        return _hashed(_plain(value))

    def _string(self, text: str) -> str:
        try:
            if _DATE.fullmatch(text):
                return self._date(_number(convert_literal(text, DateType())))
            if _TIMESTAMP.fullmatch(text):
                return self._timestamp(_number(convert_literal(text, TimestampType())))
            if _TIMESTAMPTZ.fullmatch(text):
                return self._timestamp(_number(convert_literal(text, TimestamptzType())))
        except ValueError:
            return _hashed(text)  # Looks like a date and is none: it is text then.
        return "(time)" if _TIME.fullmatch(text) else _hashed(text)

    def _date(self, days: int) -> str:
        today = self.now_micros // (DAY_S * SECOND_MICROS)
        apart = abs(today - days)
        if apart == 0:
            return "(date-today)"
        return f"(date-{apart}-days-{_side(today, days)})" if apart < 90 else "(date)"

    def _timestamp(self, micros: int) -> str:
        apart = abs(self.now_micros - micros)
        hours, side = apart // _HOUR_MICROS, _side(self.now_micros, micros)
        if apart < _NOW_MICROS:
            return "(timestamp-about-now)"
        if hours <= 3 * 24:
            return f"(timestamp-{hours}-hours-{side})"
        return f"(timestamp-{hours // 24}-days-{side})" if hours < 90 * 24 else "(timestamp)"


def _described(term: Term) -> str:
    if isinstance(term, Reference | BoundReference):
        return term.name
    return f"{term.transform}({term.name})"


def _side(now: int, then: int) -> str:
    return "ago" if now > then else "from-now"


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"expected a number of days or of a time, found {type(value).__name__}")
    return value


def _digits(value: float) -> int:
    if math.isinf(value):
        return -(2**31)  # The result of Iceberg Java's arithmetic.
    return 1 if value == 0 else int(math.log10(abs(value))) + 1


def _plain(value: object) -> str:
    """Return the text that is hashed for a value that is not text. Of bytes it is the length."""
    if isinstance(value, bytes):
        return f"java.nio.HeapByteBuffer[pos=0 lim={len(value)} cap={len(value)}]"
    return human_value(DecimalType(38, 0), value) if isinstance(value, Decimal) else str(value)


def _hashed(text: str) -> str:
    return f"(hash-{_HASH.apply(StringType(), text):08x})"


def _abbreviated(listed: list[str]) -> list[str]:
    if len(listed) < _LISTED_MAX:
        return listed
    distinct = list(dict.fromkeys(listed))[:_LISTED_MAX]
    hidden = len(listed) - len(distinct)
    if hidden:
        distinct.append(f"... ({hidden} values hidden, {len(listed)} in total)")
    return distinct
