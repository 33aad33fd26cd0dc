"""Structs of Thrift's binary protocol as plain values: field id to type and value.

No class is generated from Hive's interface definition. A table is altered as a whole, so a field
that this client does not know has to come back as the metastore sent it, whatever its release: a
struct that was read is written back byte for byte. Texts that are not UTF-8 survive, too. Nothing
here knows Hive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from thrift.protocol.TProtocol import TProtocolBase
from thrift.Thrift import TType

Struct = dict[int, "Field"]
"""Fields by their id. An absent field is not set."""


@dataclass(frozen=True, slots=True)
class Field:
    """A value with its type on the wire. `value`: bool, int, float, str, `Struct`, `Items` or
    `Pairs`.
    """

    type: int
    value: Any


@dataclass(frozen=True, slots=True)
class Items:
    """A list or a set."""

    type: int
    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A map; a key may be a list."""

    key_type: int
    value_type: int
    pairs: tuple[tuple[Any, Any], ...]


def text(value: str) -> Field:
    return Field(TType.STRING, value)


def boolean(value: bool) -> Field:
    return Field(TType.BOOL, value)


def i16(value: int) -> Field:
    return Field(TType.I16, value)


def i32(value: int) -> Field:
    return Field(TType.I32, value)


def i64(value: int) -> Field:
    return Field(TType.I64, value)


def struct(fields: Struct) -> Field:
    return Field(TType.STRUCT, fields)


def structs(items: Iterable[Struct]) -> Field:
    return Field(TType.LIST, Items(TType.STRUCT, tuple(items)))


def texts(items: Iterable[str]) -> Field:
    return Field(TType.LIST, Items(TType.STRING, tuple(items)))


def text_map(values: Mapping[str, str]) -> Field:
    return Field(TType.MAP, Pairs(TType.STRING, TType.STRING, tuple(values.items())))


def get_text(fields: Struct, number: int) -> str:
    """Return a text; empty where it is not set."""
    value: str = _get(fields, number, TType.STRING, "")
    return value


def get_number(fields: Struct, number: int) -> int:
    """Return an i32 or i64; 0 where it is not set."""
    field = fields.get(number)
    return int(field.value) if field and field.type in (TType.I32, TType.I64) else 0


def get_struct(fields: Struct, number: int) -> Struct:
    """Return a struct; empty where it is not set."""
    value: Struct = _get(fields, number, TType.STRUCT, {})
    return value


def get_structs(fields: Struct, number: int) -> list[Struct]:
    """Return the structs of a list; none where it is not set."""
    return list(_get(fields, number, TType.LIST, Items(TType.STRUCT, ())).items)


def get_texts(fields: Struct, number: int) -> list[str]:
    """Return the texts of a list; none where it is not set."""
    return list(_get(fields, number, TType.LIST, Items(TType.STRING, ())).items)


def get_text_map(fields: Struct, number: int) -> dict[str, str]:
    """Return a map of texts; empty where it is not set."""
    return dict(_get(fields, number, TType.MAP, Pairs(TType.STRING, TType.STRING, ())).pairs)


def _get(fields: Struct, number: int, kind: int, default: Any) -> Any:
    field = fields.get(number)
    return field.value if field and field.type == kind else default


def read_struct(protocol: TProtocolBase) -> Struct:
    """Read all fields of a struct."""
    fields: Struct = {}
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            break
        fields[number] = Field(kind, _read(protocol, kind))
        protocol.readFieldEnd()
    protocol.readStructEnd()
    return fields


def write_struct(protocol: TProtocolBase, fields: Struct) -> None:
    """Write fields in the order of the mapping."""
    protocol.writeStructBegin("")
    for number, field in fields.items():
        protocol.writeFieldBegin("", field.type, number)
        _write(protocol, field.type, field.value)
        protocol.writeFieldEnd()
    protocol.writeFieldStop()
    protocol.writeStructEnd()


def _read(protocol: TProtocolBase, kind: int) -> Any:
    match kind:
        case TType.STRUCT:
            return read_struct(protocol)
        case TType.STRING:
            content: bytes = protocol.readBinary()
            return content.decode("utf-8", "surrogateescape")
        case TType.MAP:
            key_type, value_type, size = protocol.readMapBegin()
            pairs = tuple(
                (_read(protocol, key_type), _read(protocol, value_type)) for _ in range(size)
            )
            protocol.readMapEnd()
            return Pairs(key_type, value_type, pairs)
        case TType.LIST | TType.SET:
            item_type, size = protocol.readListBegin()
            items = tuple(_read(protocol, item_type) for _ in range(size))
            protocol.readListEnd()
            return Items(item_type, items)
    return getattr(protocol, f"read{_SCALARS[kind]}")()


def _write(protocol: TProtocolBase, kind: int, value: Any) -> None:
    match kind:
        case TType.STRUCT:
            write_struct(protocol, value)
        case TType.STRING:
            protocol.writeBinary(value.encode("utf-8", "surrogateescape"))
        case TType.MAP:
            protocol.writeMapBegin(value.key_type, value.value_type, len(value.pairs))
            for key, of_key in value.pairs:
                _write(protocol, value.key_type, key)
                _write(protocol, value.value_type, of_key)
            protocol.writeMapEnd()
        case TType.LIST | TType.SET:
            protocol.writeListBegin(value.type, len(value.items))
            for item in value.items:
                _write(protocol, value.type, item)
            protocol.writeListEnd()
        case _:
            getattr(protocol, f"write{_SCALARS[kind]}")(value)


_SCALARS = {
    TType.BOOL: "Bool",
    TType.BYTE: "Byte",
    TType.I16: "I16",
    TType.I32: "I32",
    TType.I64: "I64",
    TType.DOUBLE: "Double",
}
