"""The forms of a column's bounds: the lengths and bytes that readers of its type can decode.

A reader that plans a scan decodes the bounds of the columns that it filters by, and fails as a
whole on one that it cannot decode. So every bound of a producer's request is checked. Source: the
specification, "Appendix D" and "Bounds"; docs/reference/iceberg-notes.md 1.5.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from committer.iceberg.schema.metadata_columns import (
    DELETE_FILE_PATH,
    DELETE_FILE_POSITION,
    METADATA_COLUMNS,
    is_metadata_column,
)
from committer.iceberg.schema.schema import Schema
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
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
    VariantType,
)

_ANY_LENGTH = range(2**63)
_FIELD_ID_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class BoundForm:
    """The lengths of a column's bounds; whether they are text; of decimals their `limit` and the
    length from which on a number may reach it."""

    lengths: Container[int]
    is_text: bool = False
    limit: int = 0
    limited_length: int = 0

    def fits(self, bound: bytes) -> bool:
        """Return whether these bytes are such a bound."""
        if len(bound) not in self.lengths:
            return False
        if self.is_text:
            return is_utf8(bound)
        if self.limit and len(bound) == self.limited_length:
            return is_below(bound, self.limit)
        return True


def is_utf8(content: bytes) -> bool:
    """Return whether bytes are UTF-8 text."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_below(unscaled: bytes, limit: int) -> bool:
    """Return whether a decimal has no more digits than its type."""
    return -limit < int.from_bytes(unscaled, "big", signed=True) < limit


ANY_BYTES = BoundForm(_ANY_LENGTH)
_NO_BYTES = BoundForm(())
_TEXT = BoundForm(_ANY_LENGTH, is_text=True)
_TIMESTAMP = BoundForm((8,))
_PROMOTED_DATE = BoundForm((8, 4))
# Two lengths: those of a type and of what may have been promoted to it; readers know both.
_BY_TYPE: Mapping[type[IcebergType], BoundForm] = {
    BooleanType: BoundForm((1,)),
    IntegerType: BoundForm((4,)),
    LongType: BoundForm((8, 4)),
    FloatType: BoundForm((4,)),
    DoubleType: BoundForm((8, 4)),
    DateType: BoundForm((4,)),
    TimeType: BoundForm((8,)),
    TimestampType: BoundForm((8,)),
    TimestamptzType: BoundForm((8,)),
    TimestampNanoType: BoundForm((8,)),
    TimestamptzNanoType: BoundForm((8,)),
    StringType: _TEXT,
    UUIDType: BoundForm((16,)),
    BinaryType: ANY_BYTES,
    VariantType: ANY_BYTES,
    # x and y, and perhaps z and m.
    GeometryType: BoundForm((16, 24, 32)),
    GeographyType: BoundForm((16, 24, 32)),
}


def form_of(kind: IcebergType) -> BoundForm:
    """Return the form of the bounds of a type; structs, lists, maps and unknown types have none."""
    match kind:
        case DecimalType(precision, _):
            limit = 10**precision
            length = ((limit - 1).bit_length() + 8) // 8
            return BoundForm(range(1, length + 1), limit=limit, limited_length=length)
        case FixedType(length):
            # Writers truncate them, as binary values.
            return BoundForm(range(length + 1))
    return _BY_TYPE.get(type(kind), _NO_BYTES)


class BoundForms:
    """The forms of the bounds of a table's columns. Equal where these are."""

    __slots__ = ("_by_id", "_column_id_max", "_hash")

    def __init__(self, by_id: Mapping[int, BoundForm], column_id_max: int) -> None:
        self._by_id, self._column_id_max = by_id, column_id_max
        self._hash = hash((frozenset(by_id), column_id_max))

    def of(self, field_id: int) -> BoundForm:
        """Return the form of a column's bounds.

        Readers skip unknown columns, so the bounds of a removed column may be anything. An id that
        no column has had yet may become that of a column of any type.
        """
        found = self._by_id.get(field_id)
        if found is not None:
            return found
        return ANY_BYTES if self.knows(field_id) else _NO_BYTES

    def knows(self, field_id: int) -> bool:
        """Return whether an id is one of a column that the table has or has had, or reserved."""
        if field_id in self._by_id or 0 <= field_id <= self._column_id_max:
            return True
        return is_metadata_column(field_id) and field_id <= _FIELD_ID_MAX

    def columns_below(self, limit: int) -> Iterator[tuple[int, BoundForm]]:
        """Yield the columns that the table has or has had, with ids from 1 on, and their forms."""
        for field_id in range(1, min(self._column_id_max + 1, limit)):
            yield field_id, self.of(field_id)

    def misfit(self, bounds: Mapping[int, bytes]) -> int | None:
        """Return the id of a column whose bound has another form; None if there is none."""
        return next((each for each in bounds if not self.of(each).fits(bounds[each])), None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundForms):
            return NotImplemented
        return (self._by_id, self._column_id_max) == (other._by_id, other._column_id_max)

    def __hash__(self) -> int:
        return self._hash


ANY_BOUNDS = BoundForms({}, _FIELD_ID_MAX)


def bound_forms(schemas: Iterable[Schema], current: Schema, last_column_id: int) -> BoundForms:
    """Collect the forms of a table's columns:
    the current ones, or the last ones of removed columns."""
    by_age = sorted(schemas, key=lambda schema: schema.schema_id)
    reserved = (*METADATA_COLUMNS.values(), DELETE_FILE_PATH, DELETE_FILE_POSITION)
    forms = {column.field_id: form_of(column.field_type) for column in reserved}
    dates: set[int] = set()
    for schema in (*by_age, current):
        fields = [field for _, field in schema.walk()]
        forms.update({field.field_id: form_of(field.field_type) for field in fields})
        dates.update(field.field_id for field in fields if field.field_type == DateType())
    promoted = {each: _PROMOTED_DATE for each in dates if forms[each] == _TIMESTAMP}
    return BoundForms(forms | promoted, last_column_id)
