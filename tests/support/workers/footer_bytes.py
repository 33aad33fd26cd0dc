"""Changes the footer of a Parquet file, field by field, into what other writers write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

# A struct of Thrift: kind and value of each field, by its number. A list: kind and elements.
Struct = dict[int, tuple[int, Any]]
I32, I64, BINARY, LIST, STRUCT = TType.I32, TType.I64, TType.STRING, TType.LIST, TType.STRUCT
_PLAIN = {
    TType.BOOL: ("readBool", "writeBool"),
    TType.BYTE: ("readByte", "writeByte"),
    TType.I16: ("readI16", "writeI16"),
    I32: ("readI32", "writeI32"),
    I64: ("readI64", "writeI64"),
    TType.DOUBLE: ("readDouble", "writeDouble"),
    BINARY: ("readBinary", "writeBinary"),
}
_END_BYTES = 8


def with_footer(content: bytes, change: Callable[[Struct], None]) -> bytes:
    """Return the file with another footer."""
    length = int.from_bytes(content[-_END_BYTES:-4], "little")
    body = content[: -_END_BYTES - length]
    footer = _read(TCompactProtocol(TMemoryBuffer(content[len(body) : -_END_BYTES])), STRUCT)
    change(footer)
    buffer = TMemoryBuffer()
    _write(TCompactProtocol(buffer), STRUCT, footer)
    changed: bytes = buffer.getvalue()
    return body + changed + len(changed).to_bytes(4, "little") + content[-4:]


def groups_of(footer: Struct) -> list[Struct]:
    """Return its row groups."""
    return list(footer[4][1][1])


def chunk_of(footer: Struct, group: int = 0, column: int = 0) -> Struct:
    """Return a column chunk of a row group; its field 3 is the column's metadata."""
    chunk: Struct = groups_of(footer)[group][1][1][1][column]
    return chunk


def metadata_of(footer: Struct, group: int = 0, column: int = 0) -> Struct:
    found: Struct = chunk_of(footer, group, column)[3][1]
    return found


def statistics_of(footer: Struct, group: int = 0, column: int = 0) -> Struct:
    found: Struct = metadata_of(footer, group, column)[12][1]
    return found


def _read(protocol: TCompactProtocol, kind: int) -> Any:
    if kind in _PLAIN:
        return getattr(protocol, _PLAIN[kind][0])()
    if kind == LIST:
        inner, count = protocol.readListBegin()
        elements = [_read(protocol, inner) for _ in range(count)]
        protocol.readListEnd()
        return inner, elements
    fields: Struct = {}
    protocol.readStructBegin()
    while True:
        _, inner, number = protocol.readFieldBegin()
        if inner == TType.STOP:
            break
        fields[number] = inner, _read(protocol, inner)
        protocol.readFieldEnd()
    protocol.readStructEnd()
    return fields


def _write(protocol: TCompactProtocol, kind: int, value: Any) -> None:
    if kind in _PLAIN:
        getattr(protocol, _PLAIN[kind][1])(value)
    elif kind == LIST:
        protocol.writeListBegin(value[0], len(value[1]))
        for element in value[1]:
            _write(protocol, value[0], element)
        protocol.writeListEnd()
    else:
        protocol.writeStructBegin("")
        for number, (inner, field) in sorted(value.items()):
            protocol.writeFieldBegin("", inner, number)
            _write(protocol, inner, field)
            protocol.writeFieldEnd()
        protocol.writeFieldStop()
        protocol.writeStructEnd()
