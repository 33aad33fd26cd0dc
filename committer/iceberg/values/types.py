"""The types of the Iceberg specification, as values.

Their JSON form lives in `type_json.py`, bytes and JSON of their values in `single_value.py`.
Values in memory: date as days, time and timestamps as micro- (or nano-)seconds since the epoch (all
int), decimal as `Decimal`, uuid as `UUID`, fixed and binary as `bytes`.
Source: the specification, "Schemas and Data Types" and Appendix C;
docs/reference/iceberg-notes.md 1.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Self, cast

DEFAULT_CRS = "OGC:CRS84"
EDGE_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")


class IcebergType:
    """The root of all types. Types are equal by value and hashable."""

    __slots__ = ()

    @property
    def is_primitive(self) -> bool:
        return not isinstance(self, StructType | ListType | MapType)


_INSTANCES: dict[type[IcebergType], IcebergType] = {}


class SimpleType(IcebergType):
    """A primitive without parameters; `text` is its JSON form.

    Each has one instance, so that looking up what belongs to a type costs a comparison of pointers.
    """

    __slots__ = ()
    text = ""

    def __new__(cls) -> Self:
        only = _INSTANCES.get(cls)
        if only is None:
            only = _INSTANCES.setdefault(cls, super().__new__(cls))
        return cast(Self, only)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class BooleanType(SimpleType):
    text = "boolean"


class IntegerType(SimpleType):
    text = "int"


class LongType(SimpleType):
    text = "long"


class FloatType(SimpleType):
    text = "float"


class DoubleType(SimpleType):
    text = "double"


class DateType(SimpleType):
    text = "date"


class TimeType(SimpleType):
    text = "time"


class TimestampType(SimpleType):
    text = "timestamp"


class TimestamptzType(SimpleType):
    text = "timestamptz"


class TimestampNanoType(SimpleType):
    text = "timestamp_ns"


class TimestamptzNanoType(SimpleType):
    text = "timestamptz_ns"


class StringType(SimpleType):
    text = "string"


class UUIDType(SimpleType):
    text = "uuid"


class BinaryType(SimpleType):
    text = "binary"


class UnknownType(SimpleType):
    """v3: always null, in no file."""

    text = "unknown"


class VariantType(SimpleType):
    """v3: semi-structured, neither partitioned nor sorted by."""

    text = "variant"


@dataclass(frozen=True, slots=True)
class DecimalType(IcebergType):
    """A fixed-point decimal of 1 to 38 digits."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"

    def holds(self, value: Decimal) -> bool:
        """Return whether a decimal of this scale has no more digits than the type."""
        return len(value.as_tuple().digits) <= self.precision


@dataclass(frozen=True, slots=True)
class FixedType(IcebergType):
    """Exactly `length` bytes."""

    length: int

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


@dataclass(frozen=True, slots=True)
class GeometryType(IcebergType):
    """v3: planar shapes in a coordinate reference system."""

    crs: str = DEFAULT_CRS

    def __str__(self) -> str:
        return f"geometry({self.crs})"


@dataclass(frozen=True, slots=True)
class GeographyType(IcebergType):
    """v3: shapes on a globe; `algorithm` says how edges run between points."""

    crs: str = DEFAULT_CRS
    algorithm: str = EDGE_ALGORITHMS[0]

    def __str__(self) -> str:
        return f"geography({self.crs}, {self.algorithm})"


@dataclass(frozen=True, slots=True)
class NestedField:
    """A field of a struct. The defaults are in-memory values; None is no default."""

    field_id: int
    name: str
    field_type: IcebergType
    required: bool
    doc: str | None = None
    initial_default: object = None
    write_default: object = None


@dataclass(frozen=True, slots=True)
class StructType(IcebergType):
    """Named fields in order."""

    fields: tuple[NestedField, ...]

    def __str__(self) -> str:
        return f"struct<{', '.join(_field_text(field) for field in self.fields)}>"


@dataclass(frozen=True, slots=True)
class ListType(IcebergType):
    """A list; its element has a field id of its own."""

    element_id: int
    element_type: IcebergType
    element_required: bool

    def __str__(self) -> str:
        return f"list<{self.element_type}>"


@dataclass(frozen=True, slots=True)
class MapType(IcebergType):
    """A map; keys (always required) and values have field ids of their own."""

    key_id: int
    key_type: IcebergType
    value_id: int
    value_type: IcebergType
    value_required: bool

    def __str__(self) -> str:
        return f"map<{self.key_type}, {self.value_type}>"


def _field_text(field: NestedField) -> str:
    need = "required" if field.required else "optional"
    return f"{field.field_id}: {field.name}: {need} {field.field_type}"
