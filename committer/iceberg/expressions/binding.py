"""Binding: an expression's names become fields of a schema, its literals values of their types.

Predicates that the schema alone answers are simplified: a required column is never null, and a
number beyond a type's range compares with every value alike. Source: Iceberg Java, `Binder`.
"""

from __future__ import annotations

from collections.abc import Iterator

from committer.errors import InvalidFilterError, InvalidMetadataError
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    BoundReference,
    BoundTerm,
    BoundTransformed,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    Not,
    NotEqualTo,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Predicate,
    Reference,
    SetPredicate,
    StartsWith,
    Term,
    Transformed,
    map_predicates,
    term_of,
)
from committer.iceberg.expressions.literals import Limit, convert_literal
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import IdentityTransform, UnknownTransform
from committer.iceberg.values.types import (
    DoubleType,
    FloatType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
)


def bind(expression: Expression, schema: Schema, *, case_sensitive: bool = True) -> Expression:
    """Bind every predicate to a schema.

    Errors: `InvalidFilterError` for a column that does not exist or is inside a list or map, for a
    literal that its type cannot hold, and for a question that its type does not know.
    """
    return map_predicates(expression, lambda found: bind_predicate(found, schema, case_sensitive))


def bind_predicate(predicate: Predicate, schema: Schema, case_sensitive: bool) -> Expression:
    """Bind one predicate. It may turn out to be constant. Errors: as `bind`."""
    term = bind_term(predicate.term, schema, case_sensitive)
    match predicate:
        case IsNull() | NotNull():
            return _bind_null_test(predicate, term)
        case IsNaN() | NotNaN():
            if not isinstance(term.value_type, FloatType | DoubleType):
                raise _misfit(predicate, term, "expected a float or double column")
            return type(predicate)(term)
        case LiteralPredicate():
            return _bind_literal(predicate, term)
        case SetPredicate():
            return _bind_set(predicate, term)
    raise TypeError(f"not a predicate: {predicate!r}")


def _misfit(predicate: Predicate, term: BoundTerm, why: str) -> InvalidFilterError:
    return InvalidFilterError(
        f"filter: {predicate.operation} on `{term.name}` of type {term.value_type}: {why}"
    )


# --- Terms ---------------------------------------------------------------------------------------


def bind_term(term: Term, schema: Schema, case_sensitive: bool) -> BoundTerm:
    """Bind a term to its field. A transform that changes nothing is the field itself."""
    match term:
        case Reference(name):
            return _bind_reference(name, schema, case_sensitive)
        case Transformed(transform, Reference(name)):
            reference = _bind_reference(name, schema, case_sensitive)
            is_unknown = isinstance(transform, UnknownTransform)
            if is_unknown or not transform.can_transform(reference.value_type):
                raise InvalidFilterError(
                    f"filter: {transform} of `{name}`, which is of type {reference.value_type}"
                )
            if isinstance(transform, IdentityTransform):
                return reference
            return BoundTransformed(transform, reference)
    raise InvalidFilterError(f"filter: `{term.name}` is bound already")


def _bind_reference(name: str, schema: Schema, case_sensitive: bool) -> BoundReference:
    try:
        found = schema.find(name, case_sensitive=case_sensitive)
    except InvalidMetadataError as error:
        raise InvalidFilterError(f"filter: several columns are called `{name}`") from error
    if found is None:
        raise InvalidFilterError(f"filter: there is no column `{name}`")
    for path, fields in _struct_paths(schema.fields):
        if fields[-1].field_id == found.field_id:
            return BoundReference(
                found.field_id,
                schema.column_name(found.field_id) or name,
                found.field_type,
                path,
                not all(field.required for field in fields),
            )
    raise InvalidFilterError(f"filter: `{name}` is inside a list or a map")


def _struct_paths(
    fields: tuple[NestedField, ...],
) -> Iterator[tuple[tuple[int, ...], tuple[NestedField, ...]]]:
    """Yield each field that a row has once: positions from the top, and the fields on the way."""
    for position, field in enumerate(fields):
        yield (position,), (field,)
        if isinstance(field.field_type, StructType):
            for path, inner in _struct_paths(field.field_type.fields):
                yield (position, *path), (field, *inner)


# --- Predicates ----------------------------------------------------------------------------------


def _bind_null_test(predicate: IsNull | NotNull, term: BoundTerm) -> Expression:
    if term.preserves_order and not term.reference.is_optional:
        return ALWAYS_FALSE if isinstance(predicate, IsNull) else ALWAYS_TRUE
    if isinstance(term.value_type, UnknownType):
        return ALWAYS_TRUE if isinstance(predicate, IsNull) else ALWAYS_FALSE
    return type(predicate)(term)


def _bind_literal(predicate: LiteralPredicate, term: BoundTerm) -> Expression:
    is_prefix = isinstance(predicate, StartsWith | NotStartsWith)
    if is_prefix and not isinstance(term.value_type, StringType):
        raise _misfit(predicate, term, "expected a string column")
    value = _converted(predicate, term, predicate.value)
    if not isinstance(value, Limit):
        return type(predicate)(term, value)
    matching: tuple[type[Predicate], ...] = (LessThan, LessThanOrEqual, NotEqualTo)
    if value is Limit.BELOW_MIN:
        matching = (GreaterThan, GreaterThanOrEqual, NotEqualTo)
    return ALWAYS_TRUE if isinstance(predicate, matching) else ALWAYS_FALSE


def _bind_set(predicate: SetPredicate, term: BoundTerm) -> Expression:
    converted = (_converted(predicate, term, value) for value in predicate.values)
    values = tuple(dict.fromkeys(value for value in converted if not isinstance(value, Limit)))
    if len(values) > 1:
        return type(predicate)(term, values)
    if isinstance(predicate, In):
        return EqualTo(term, values[0]) if values else ALWAYS_FALSE
    return NotEqualTo(term, values[0]) if values else ALWAYS_TRUE


def _converted(predicate: Predicate, term: BoundTerm, literal: object) -> object:
    try:
        value = convert_literal(literal, term.value_type)
    except ValueError as error:
        raise _misfit(predicate, term, str(error)) from error
    if value is None:
        raise _misfit(predicate, term, f"it cannot be compared with a {type(literal).__name__}")
    return value


# --- Looking at bound expressions ----------------------------------------------------------------


def referenced_field_ids(expression: Expression) -> frozenset[int]:
    """Return the fields that a bound expression names: it needs the metrics of no other."""
    match expression:
        case And(left, right) | Or(left, right):
            return referenced_field_ids(left) | referenced_field_ids(right)
        case Not(child):
            return referenced_field_ids(child)
        case Predicate():
            return frozenset((term_of(expression).reference.field_id,))
    return frozenset()
