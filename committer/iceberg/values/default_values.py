"""Default values of columns: which a column may have.

Source: the specification, "Default values"; docs/reference/iceberg-notes.md 1.2.
"""

from __future__ import annotations

import struct
from decimal import Decimal

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.values.single_value import parse_json_value, print_json_value
from committer.iceberg.values.types import (
    DecimalType,
    GeographyType,
    GeometryType,
    IcebergType,
    UnknownType,
    VariantType,
)

_NULL_ONLY = (UnknownType, VariantType, GeometryType, GeographyType)


def checked_default(kind: IcebergType, value: object, where: str) -> object:
    """Return a default as it is read back from metadata (a float has four bytes then).
    None is null.

    Errors: `InvalidMetadataError` for a value that is not of the type, or whose type takes null
    only; `UnsupportedError` for a nested type: the specification knows an empty struct as a
    default, but Iceberg Java cannot read a schema that has one.
    """
    if value is None:
        return None
    if isinstance(kind, _NULL_ONLY):
        raise InvalidMetadataError(f"column `{where}`: the default of a {kind} is null")
    if not kind.is_primitive:
        raise UnsupportedError(f"column `{where}`: a default of the nested type {kind}")
    if isinstance(kind, DecimalType) and _digits(value) > kind.precision:
        raise InvalidMetadataError(
            f"column `{where}`: expected a default of at most {kind.precision} digits"
        )
    try:
        return parse_json_value(kind, print_json_value(kind, value))
    except (TypeError, ValueError, ArithmeticError, struct.error) as error:
        raise InvalidMetadataError(
            f"column `{where}`: expected a default of type {kind}"
        ) from error


def _digits(value: object) -> int:
    return len(value.as_tuple().digits) if isinstance(value, Decimal) else 0
