"""The types of the Iceberg specification, as values, and their JSON form.

What a value of a type looks like in bytes or JSON lives in `single_value.py`. Values in memory:
date as days, time and timestamps as micro- (or nano-)seconds since the epoch (all int), decimal as
`Decimal`, uuid as `UUID`, fixed and binary as `bytes`.
Source: the specification, "Schemas and Data Types" and Appendix C; format.md section 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, cast

from committer.errors import InvalidMetadataError
from committer.iceberg.values.json_reader import is_integer

DEFAULT_CRS = "OGC:CRS84"
EDGE_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")
DECIMAL_PRECISION_MAX = 38


class IcebergType:
    """The root of all types. Types are equal by value and hashable."""

    __slots__ = ()

    @property
    def is_primitive(self) -> bool:
        return not isinstance(self, StructType | ListType | MapType)


_INSTANCES: dict[type[IcebergType], IcebergType] = {}


class _Simple(IcebergType):
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


class BooleanType(_Simple):
    __slots__ = ()
    text = "boolean"


class IntegerType(_Simple):
    __slots__ = ()
    text = "int"


class LongType(_Simple):
    __slots__ = ()
    text = "long"


class FloatType(_Simple):
    __slots__ = ()
    text = "float"


class DoubleType(_Simple):
    __slots__ = ()
    text = "double"


class DateType(_Simple):
    __slots__ = ()
    text = "date"


class TimeType(_Simple):
    __slots__ = ()
    text = "time"


class TimestampType(_Simple):
    __slots__ = ()
    text = "timestamp"


class TimestamptzType(_Simple):
    __slots__ = ()
    text = "timestamptz"


class TimestampNanoType(_Simple):
    __slots__ = ()
    text = "timestamp_ns"


class TimestamptzNanoType(_Simple):
    __slots__ = ()
    text = "timestamptz_ns"


class StringType(_Simple):
    __slots__ = ()
    text = "string"


class UUIDType(_Simple):
    __slots__ = ()
    text = "uuid"


class BinaryType(_Simple):
    __slots__ = ()
    text = "binary"


class UnknownType(_Simple):
    """v3: always null, in no file."""

    __slots__ = ()
    text = "unknown"


class VariantType(_Simple):
    """v3: semi-structured, neither partitioned nor sorted by."""

    __slots__ = ()
    text = "variant"


@dataclass(frozen=True, slots=True)
class DecimalType(IcebergType):
    """A fixed-point decimal of 1 to 38 digits."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


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


# --- JSON form -----------------------------------------------------------------------------------

_SIMPLE: Mapping[str, IcebergType] = {
    kind.text: kind()
    for kind in (
        BooleanType,
        IntegerType,
        LongType,
        FloatType,
        DoubleType,
        DateType,
        TimeType,
        TimestampType,
        TimestamptzType,
        TimestampNanoType,
        TimestamptzNanoType,
        StringType,
        UUIDType,
        BinaryType,
        UnknownType,
        VariantType,
    )
}
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)", re.ASCII)
_FIXED = re.compile(r"fixed\[\s*(\d{1,9})\s*\]", re.ASCII)
_GEOMETRY = re.compile(r"geometry\s*(?:\(\s*([^()]+?)\s*\))?", re.IGNORECASE)
_GEOGRAPHY = re.compile(
    r"geography\s*(?:\(\s*([^,()]+?)\s*(?:,\s*([A-Za-z]+)\s*)?\))?", re.IGNORECASE
)
# Each level is three of JSON, of which printers take 254.
_DEPTH_MAX = 60


def parse_type(json_value: object, *, where: str = "type") -> IcebergType:
    """Read a type from its JSON form. Errors: `InvalidMetadataError` naming the place."""
    return _parse(json_value, where, 0)


def _parse(json_value: object, where: str, depth: int) -> IcebergType:
    if isinstance(json_value, str):
        return _parse_primitive(json_value, where)
    if not isinstance(json_value, Mapping):
        raise InvalidMetadataError(f"{where}: expected a type, found {type(json_value).__name__}")
    if depth > _DEPTH_MAX:
        raise InvalidMetadataError(f"{where}: types nested deeper than {_DEPTH_MAX}")
    nested = _NESTED.get(str(json_value.get("type")))
    if nested is None:
        raise InvalidMetadataError(
            f"{where}: expected a struct, list or map, found `{json_value.get('type')}`"
        )
    return nested(json_value, where, depth + 1)


def _parse_primitive(text: str, where: str) -> IcebergType:
    lowered = text.strip().lower()
    simple = _SIMPLE.get(lowered)
    if simple is not None:
        return simple
    if match := _DECIMAL.fullmatch(lowered):
        return _decimal(int(match[1]), int(match[2]), where)
    if match := _FIXED.fullmatch(lowered):
        return FixedType(int(match[1]))
    if match := _GEOMETRY.fullmatch(text.strip()):
        return GeometryType(match[1] or DEFAULT_CRS)
    if match := _GEOGRAPHY.fullmatch(text.strip()):
        return _geography(match[1] or DEFAULT_CRS, (match[2] or EDGE_ALGORITHMS[0]).lower(), where)
    raise InvalidMetadataError(f"{where}: unknown type `{text[:100]}`")


def _decimal(precision: int, scale: int, where: str) -> DecimalType:
    if not 1 <= precision <= DECIMAL_PRECISION_MAX:
        raise InvalidMetadataError(
            f"{where}: decimal precision {precision}, expected 1 to {DECIMAL_PRECISION_MAX}"
        )
    return DecimalType(precision, scale)


def _geography(crs: str, algorithm: str, where: str) -> GeographyType:
    if algorithm not in EDGE_ALGORITHMS:
        raise InvalidMetadataError(
            f"{where}: edge algorithm `{algorithm}`, expected one of {', '.join(EDGE_ALGORITHMS)}"
        )
    return GeographyType(crs, algorithm)


def _parse_struct(json_value: Mapping[str, object], where: str, depth: int) -> StructType:
    return StructType(parse_fields(json_value.get("fields"), where=where, depth=depth))


def _parse_list(json_value: Mapping[str, object], where: str, depth: int) -> ListType:
    return ListType(
        _id(json_value, "element-id", where),
        _parse(json_value.get("element"), f"{where}.element", depth),
        _flag(json_value, "element-required", where),
    )


def _parse_map(json_value: Mapping[str, object], where: str, depth: int) -> MapType:
    return MapType(
        _id(json_value, "key-id", where),
        _parse(json_value.get("key"), f"{where}.key", depth),
        _id(json_value, "value-id", where),
        _parse(json_value.get("value"), f"{where}.value", depth),
        _flag(json_value, "value-required", where),
    )


_NESTED: Mapping[str, Callable[[Mapping[str, object], str, int], IcebergType]] = {
    "struct": _parse_struct,
    "list": _parse_list,
    "map": _parse_map,
}


def parse_fields(json_value: object, *, where: str, depth: int = 0) -> tuple[NestedField, ...]:
    """Read the fields of a struct. Defaults stay in their JSON form: `schema` resolves them."""
    if not isinstance(json_value, Sequence) or isinstance(json_value, str):
        raise InvalidMetadataError(f"{where}: expected a list of fields")
    return tuple(_parse_field(field, where, depth) for field in json_value)


def _parse_field(json_value: object, where: str, depth: int) -> NestedField:
    if not isinstance(json_value, Mapping) or not isinstance(json_value.get("name"), str):
        raise InvalidMetadataError(f"{where}: expected a field with a name")
    name = json_value["name"]
    place = f"{where}.{name}"
    field_type = _parse(json_value.get("type"), place, depth)
    doc = json_value.get("doc")
    return NestedField(
        field_id=_id(json_value, "id", place),
        name=name,
        field_type=field_type,
        required=_flag(json_value, "required", place),
        doc=doc if isinstance(doc, str) else None,
        initial_default=_default(json_value, "initial-default", field_type, place),
        write_default=_default(json_value, "write-default", field_type, place),
    )


def _default(
    json_value: Mapping[str, object], key: str, field_type: IcebergType, where: str
) -> object:
    found = json_value.get(key)
    if found is None:
        return None
    if isinstance(field_type, GeometryType | GeographyType):
        raise InvalidMetadataError(f"{where}: {key}: the default of a {field_type} is null")
    # Imported late: single values are typed, so that module knows this one.
    from committer.iceberg.values.single_value import parse_json_value

    try:
        return parse_json_value(field_type, found)
    except ValueError as error:
        raise InvalidMetadataError(f"{where}: {key}: {error}") from error


def _id(json_value: Mapping[str, object], key: str, where: str) -> int:
    found = json_value.get(key)
    if not is_integer(found, 32):
        raise InvalidMetadataError(f"{where}: expected an integer `{key}` of 32 bits")
    return cast(int, found)


def _flag(json_value: Mapping[str, object], key: str, where: str) -> bool:
    found = json_value.get(key)
    if not isinstance(found, bool):
        raise InvalidMetadataError(f"{where}: expected a boolean `{key}`")
    return found


def print_type(kind: IcebergType) -> object:
    """The JSON form of a type: a string for a primitive, an object for a nested type."""
    match kind:
        case StructType(fields):
            return {"type": "struct", "fields": [print_field(field) for field in fields]}
        case ListType():
            return {
                "type": "list",
                "element-id": kind.element_id,
                "element": print_type(kind.element_type),
                "element-required": kind.element_required,
            }
        case MapType():
            return {
                "type": "map",
                "key-id": kind.key_id,
                "key": print_type(kind.key_type),
                "value-id": kind.value_id,
                "value": print_type(kind.value_type),
                "value-required": kind.value_required,
            }
        case _:
            return str(kind)


def print_field(field: NestedField) -> dict[str, object]:
    """The JSON form of a struct's field, keys in the reference's order."""
    from committer.iceberg.values.single_value import print_json_value

    printed: dict[str, object] = {
        "id": field.field_id,
        "name": field.name,
        "required": field.required,
        "type": print_type(field.field_type),
    }
    if field.doc is not None:
        printed["doc"] = field.doc
    for key, default in (
        ("initial-default", field.initial_default),
        ("write-default", field.write_default),
    ):
        if default is not None:
            printed[key] = print_json_value(field.field_type, default)
    return printed
