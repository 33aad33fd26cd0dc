"""The JSON form of types: a string for a primitive, an object for a nested one.

Source: the specification, "Schemas and Data Types" and Appendix C.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from committer.errors import InvalidMetadataError
from committer.iceberg.values.json_reader import is_integer
from committer.iceberg.values.single_value import parse_json_value, print_json_value
from committer.iceberg.values.types import (
    DEFAULT_CRS,
    EDGE_ALGORITHMS,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    SimpleType,
    StructType,
)

_DECIMAL_PRECISION_MAX = 38
_SIMPLE = {kind.text: kind() for kind in SimpleType.__subclasses__()}
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
    match json_value.get("type"):
        case "struct":
            fields = parse_fields(json_value.get("fields"), where=where, depth=depth + 1)
            return StructType(fields)
        case "list":
            return _parse_list(json_value, where, depth + 1)
        case "map":
            return _parse_map(json_value, where, depth + 1)
        case found:
            raise InvalidMetadataError(f"{where}: expected a struct, list or map, found `{found}`")


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
    if not 1 <= precision <= _DECIMAL_PRECISION_MAX:
        raise InvalidMetadataError(
            f"{where}: decimal precision {precision}, expected 1 to {_DECIMAL_PRECISION_MAX}"
        )
    return DecimalType(precision, scale)


def _geography(crs: str, algorithm: str, where: str) -> GeographyType:
    if algorithm not in EDGE_ALGORITHMS:
        raise InvalidMetadataError(
            f"{where}: edge algorithm `{algorithm}`, expected one of {', '.join(EDGE_ALGORITHMS)}"
        )
    return GeographyType(crs, algorithm)


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
    """Print the JSON form of a type: a string for a primitive, an object for a nested type."""
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
    """Print the JSON form of a struct's field, keys in the reference's order."""
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
