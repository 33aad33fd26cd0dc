"""The residual of a task, asked of Arrow batches: as `row_evaluator` answers it row for row.

Null and NaN match `!=`, `not in` and `not starts with` alone; -0.0 is less than 0.0. Predicates
that Arrow does not know so (transforms, the order of uuids) are asked of each value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from committer.iceberg.expressions.binding import bind, referenced_field_ids
from committer.iceberg.expressions.compiling import comparable
from committer.iceberg.expressions.expression import (
    ALWAYS_TRUE,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundReference,
    BoundTransformed,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Predicate,
    SetPredicate,
    StartsWith,
    rewrite_not,
)
from committer.iceberg.expressions.row_evaluator import value_test
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.schema_selection import select_fields
from committer.iceberg.values.types import (
    BinaryType,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)
from workers.arrow.arrow_values import physical, to_values
from workers.read.arrow_projection import Mask

_Compare = Callable[[Any, Any], Any]
_NUMBERS: Mapping[type[Predicate], _Compare] = {
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    EqualTo: operator.eq,
    NotEqualTo: operator.eq,
}
_BYTES: Mapping[type[Predicate], _Compare] = {
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    EqualTo: pc.equal,
    NotEqualTo: pc.equal,
    StartsWith: lambda array, prefix: pc.starts_with(array, prefix.as_py()),
    NotStartsWith: lambda array, prefix: pc.starts_with(array, prefix.as_py()),
}
# These match what the opposite does not, null and NaN among it.
_DENIALS = (NotEqualTo, NotIn, NotStartsWith)
_WITHOUT_SIGN = np.int64(2**63 - 1)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A filter and the columns that it names. `bound` has no `Not`; `paths` lead to its fields."""

    columns: tuple[NestedField, ...]
    bound: Expression
    paths: Mapping[int, tuple[int, ...]]

    @classmethod
    def of(
        cls, schema: Schema, filter: Expression, *, case_sensitive: bool = True
    ) -> RowFilter | None:
        """Bind a filter to a schema; None if it matches all rows. Errors: `InvalidFilterError`."""
        if filter == ALWAYS_TRUE:
            return None
        bound = bind(rewrite_not(filter), schema, case_sensitive=case_sensitive)
        columns = select_fields(schema, referenced_field_ids(bound)).fields
        return cls(columns, bound, dict(_paths(columns)))

    def mask(self, batch: pa.RecordBatch) -> Mask:
        """Return which rows match. The batch has the filter's `columns`."""
        return self._mask(self.bound, batch)

    def _mask(self, expression: Expression, batch: pa.RecordBatch) -> Mask:
        match expression:
            case And(left, right):
                return self._mask(left, batch) & self._mask(right, batch)
            case Or(left, right):
                return self._mask(left, batch) | self._mask(right, batch)
            case AlwaysTrue():
                return np.ones(batch.num_rows, np.bool_)
            case AlwaysFalse():
                return np.zeros(batch.num_rows, np.bool_)
            case Predicate(term=BoundReference() as term):
                return _of_column(expression, term.value_type, self._column(batch, term))
            case Predicate(term=BoundTransformed() as term):
                return _of_transformed(expression, term, self._column(batch, term.reference))
        raise TypeError(f"not a bound filter: {expression!r}")

    def _column(self, batch: pa.RecordBatch, term: BoundReference) -> pa.Array:
        first, *rest = self.paths[term.field_id]
        array = batch.column(first)
        for position in rest:
            array = array.flatten()[position]
        return array


def _paths(fields: Sequence[NestedField]) -> Iterator[tuple[int, tuple[int, ...]]]:
    for position, field in enumerate(fields):
        yield field.field_id, (position,)
        if isinstance(field.field_type, StructType):
            for field_id, path in _paths(field.field_type.fields):
                yield field_id, (position, *path)


# --- Predicates ----------------------------------------------------------------------------------


def _of_column(predicate: Predicate, kind: IcebergType, array: pa.Array) -> Mask:
    match predicate:
        case IsNull():
            return _flags(array.is_null())
        case NotNull():
            return _flags(array.is_valid())
        case IsNaN():
            return _flags(pc.is_nan(array))
        case NotNaN():
            return ~_flags(pc.is_nan(array))
    if isinstance(kind, UUIDType) and not isinstance(
        predicate, SetPredicate | EqualTo | NotEqualTo
    ):
        return _by_values(predicate, to_values(array, kind))
    is_bytes = isinstance(kind, StringType | BinaryType | FixedType | DecimalType | UUIDType)
    found = _bytes_match(predicate, kind, array) if is_bytes else _numbers_match(predicate, array)
    return ~found if isinstance(predicate, _DENIALS) else found


def _of_transformed(predicate: Predicate, term: BoundTransformed, array: pa.Array) -> Mask:
    function = term.transform.function(term.reference.value_type)
    return _by_values(predicate, map(function, to_values(array, term.reference.value_type)))


def _by_values(predicate: Predicate, values: Any) -> Mask:
    test = value_test(predicate)
    return np.fromiter((test(value) for value in values), np.bool_)


def _flags(array: pa.Array) -> Mask:
    """Return the flags of an array, false where it is null."""
    found: Mask = array.fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _numbers_match(predicate: Predicate, array: pa.Array) -> Mask:
    """Return where numbers, dates, times and flags match; of a denial where its opposite does."""
    numbers, comparable_ones = _numbers(array)
    if isinstance(predicate, SetPredicate):
        found = np.isin(numbers, np.array([comparable(one) for one in predicate.values]))
    else:
        literal = comparable(_literal(predicate))
        found = _NUMBERS[type(predicate)](numbers, literal)
    result: Mask = found & comparable_ones
    return result


def _numbers(array: pa.Array) -> tuple[npt.NDArray[Any], Mask]:
    """Return integers that sort as the values do, and which of them compare: not null, not NaN."""
    valid = _flags(array.is_valid())
    array = physical(array)
    if pa.types.is_boolean(array.type):
        return _flags(array).astype(np.int8), valid
    if not pa.types.is_floating(array.type):
        return array.fill_null(0).to_numpy(), valid
    values = array.fill_null(0.0).to_numpy().astype(np.float64)
    bits = values.view(np.int64)
    return np.where(bits >= 0, bits, -1 - (bits & _WITHOUT_SIGN)), valid & ~np.isnan(values)


def _bytes_match(predicate: Predicate, kind: IcebergType, array: pa.Array) -> Mask:
    """Return where texts, binaries, decimals and uuids match, as `_numbers_match`."""
    target = _compared_type(kind)
    array = physical(array).cast(target)
    if isinstance(predicate, SetPredicate):
        values = pa.array([_plain(value) for value in predicate.values], target)
        return _flags(pc.is_in(array, value_set=values))
    literal = pa.scalar(_plain(_literal(predicate)), target)
    return _flags(_BYTES[type(predicate)](array, literal))


def _compared_type(kind: IcebergType) -> pa.DataType:
    match kind:
        case DecimalType(_, scale):
            # A literal may have more digits than its column.
            return pa.decimal256(76, scale)
        case StringType():
            return pa.string()
    return pa.binary()


def _plain(value: object) -> object:
    return value.bytes if isinstance(value, UUID) else value


def _literal(predicate: Predicate) -> object:
    assert isinstance(predicate, LiteralPredicate)  # noqa: S101  # the others were asked for before
    return predicate.value
