"""Input that was made to do harm, each with the words of the refusal it deserves.

Findings of the fuzzer are kept here, in the form that shows what they do.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from committer.iceberg.avro import snappy
from committer.iceberg.avro.binary import LONGS
from committer.iceberg.avro.container import encode_container, encode_header
from committer.iceberg.avro.manifest_schemas import (
    avro_schema,
    manifest_entry_type,
    manifest_file_type,
)
from committer.iceberg.values.types import StructType
from tests.fuzz.mutation import printed
from tests.support.builders.fixtures import expected, read_bytes

_SYNC = bytes(range(16))
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Hostile:
    """`build` makes the input of a target; the refusal says `words`."""

    target: str
    words: str
    build: Callable[[], bytes]


# --- Avro ----------------------------------------------------------------------------------------


def avro(
    blocks: list[tuple[int, bytes]], *, writer: object = None, codec: str = "null", **header: bytes
) -> bytes:
    """Build a manifest of these blocks, which are compressed already."""
    if writer is None:
        writer = avro_schema(manifest_entry_type(2, StructType(())), "manifest_entry")
    text = writer if isinstance(writer, bytes) else json.dumps(writer).encode()
    metadata = {
        "schema": b'{"type":"struct","schema-id":0,"fields":[]}',
        "partition-spec": b"[]",
        "format-version": b"2",
        **{key.replace("_", "-"): value for key, value in header.items()},
        "avro.schema": text,
        "avro.codec": codec.encode(),
    }
    return encode_container(encode_header(metadata, _SYNC), blocks, _SYNC)


def record(name: str, **fields: object) -> dict[str, object]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": key, "type": kind} for key, kind in fields.items()],
    }


def doubling(levels: int, leaf: object) -> dict[str, object]:
    """Build records with two of the one before each: 2^levels leaves in a few hundred bytes."""
    fields: dict[str, object] = {"f0": record("A0", x=leaf)}
    for level in range(1, levels):
        below = f"A{level - 1}"
        fields[f"f{level}"] = record(f"A{level}", a=below, b=below)
    return record("r", **fields)


def nested(levels: int) -> object:
    schema: object = "int"
    for level in range(levels):
        schema = record(f"N{level}", a=schema)
    return schema


def deflated(raw: bytes) -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflate.compress(raw) + deflate.flush()


def zstandard(raw: bytes) -> bytes:
    import zstandard as library

    return library.ZstdCompressor(level=3).compress(raw)


def snappied(raw: bytes) -> bytes:
    return snappy.compress(raw) + zlib.crc32(raw).to_bytes(4, "big")


def announced_snappy(size: int) -> bytes:
    """Build a snappy block that announces a size and holds nothing."""
    found = bytearray()
    while size >= 0x80:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*found, size]) + bytes(4)


def header_of_keys(count: bytes) -> bytes:
    return b"Obj\x01" + count + b"\x02a\x02b" * 10


_LISTS: Any = avro_schema(manifest_file_type(2), "manifest_file")
_MANIFESTS: dict[str, Hostile] = {
    "schema that doubles with each level": Hostile(
        "manifest", "names written out", lambda: avro([(1, b"\0")], writer=doubling(60, "int"))
    ),
    "schema that doubles what takes no bytes": Hostile(
        "manifest", "take no bytes", lambda: avro([(1, b"\0")], writer=doubling(60, "null"))
    ),
    "records of no bytes": Hostile(
        "manifest",
        "takes no bytes",
        lambda: avro([(_MEGABYTE, bytes(_MEGABYTE))], writer=record("r")),
    ),
    "array of items of no bytes": Hostile(
        "manifest",
        "items that take no bytes",
        lambda: avro(
            [(1, LONGS[2**40] + b"\0")], writer=record("r", a={"type": "array", "items": "null"})
        ),
    ),
    "schema nested a thousand times": Hostile(
        "manifest", "nested deeper", lambda: avro([], writer=nested(300))
    ),
    "schema of brackets": Hostile(
        "manifest", "`avro.schema`", lambda: avro([], writer=b"[" * 100_000)
    ),
    "schema that contains itself": Hostile(
        "manifest", "unknown type", lambda: avro([(1, b"\0")], writer=record("r", a="r"))
    ),
    "table schema nested a thousand times": Hostile(
        "manifest",
        "`schema` is not JSON",
        lambda: avro([], schema_=b"", schema=b"[" * 100_000),
    ),
    "deflate bomb": Hostile(
        "manifest",
        "inflates to more than",
        lambda: avro([(1, deflated(bytes(64 * _MEGABYTE)))], codec="deflate"),
    ),
    "zstandard bomb": Hostile(
        "manifest",
        "inflates to more than",
        lambda: avro([(1, zstandard(bytes(64 * _MEGABYTE)))], codec="zstandard"),
    ),
    "snappy block that announces gigabytes": Hostile(
        "manifest", "snappy", lambda: avro([(1, announced_snappy(2**32 - 1))], codec="snappy")
    ),
    "more records than bytes": Hostile(
        "manifest", "announces", lambda: avro([(2**62, b"\0" * 10)])
    ),
    "a negative number of records": Hostile(
        "manifest", "negative", lambda: avro([(-5, b"\0" * 10)])
    ),
    "a header of 2^62 keys": Hostile(
        "manifest", "more than 1000 keys", lambda: header_of_keys(LONGS[2**62])
    ),
    "a number without end": Hostile("manifest", "Avro", lambda: b"Obj\x01" + b"\xff" * 100),
    "nothing": Hostile("manifest", "ends inside its header", lambda: b""),
    "an unknown format version": Hostile(
        "manifest", "`format-version`", lambda: avro([], format_version=b"9" * 5000)
    ),
    "an unknown codec": Hostile("manifest", "codec", lambda: avro([(1, b"")], codec="lzo")),
    "a list of rows of no bytes": Hostile(
        "manifest-list",
        "takes no bytes",
        lambda: avro([(_MEGABYTE, bytes(_MEGABYTE))], writer=record("r")),
    ),
    "a list of paths of 2^40 bytes": Hostile(
        "manifest-list", "Avro", lambda: avro([(1, LONGS[2**40] + b"a")], writer=_LISTS)
    ),
    "a list of rows without a path": Hostile(
        "manifest-list", "field 500", lambda: avro([(1, b"\x02")], writer=record("r", a="int"))
    ),
}


# --- JSON and Puffin -----------------------------------------------------------------------------


def metadata(**changes: object) -> bytes:
    """Build a table's metadata with some top-level keys changed; `...` drops one."""
    document = json.loads(read_bytes(expected("v2_branches_tags")["metadata_location"]))
    document |= {key.replace("_", "-"): value for key, value in changes.items()}
    return printed({key: value for key, value in document.items() if value is not ...})


def column(kind: object) -> dict[str, object]:
    fields = [{"id": 1, "name": "a", "required": False, "type": kind}]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def list_type(levels: int) -> object:
    kind: object = "int"
    for level in range(levels):
        kind = {
            "type": "list",
            "element-id": level + 2,
            "element": kind,
            "element-required": False,
        }
    return kind


def puffin(payload: bytes, *, size: int | None = None) -> bytes:
    length = (len(payload) if size is None else size).to_bytes(4, "little", signed=True)
    return b"PFA1" + b"PFA1" + payload + length + bytes(4) + b"PFA1"


def tower(levels: int, **node: object) -> bytes:
    """Nest objects, each a member of the one above; written as text, so that nothing recurses."""
    [(key, _)] = [(key, value) for key, value in node.items() if value is ...]
    rest = {name: value for name, value in node.items() if value is not ...}
    start = json.dumps(rest)[:-1] + f', "{key}": '
    return (start * levels + "true" + "}" * levels).encode()


_JSON: dict[str, Hostile] = {
    "metadata of gzip that inflates to gigabytes": Hostile(
        "table-metadata",
        "bytes unzipped",
        lambda: gzip.compress(b" " * (80 * _MEGABYTE), 9, mtime=0),
    ),
    "metadata of half a gzip": Hostile(
        "table-metadata", "gzip", lambda: gzip.compress(metadata(), mtime=0)[:-40]
    ),
    "metadata of brackets": Hostile("table-metadata", "JSON", lambda: b"[" * 1_000_000),
    "metadata of objects in objects": Hostile(
        "table-metadata", "JSON", lambda: b'{"a":' * 1_000_000
    ),
    "metadata that is a number": Hostile("table-metadata", "object", lambda: b"7"),
    "metadata in UTF-16": Hostile(
        "table-metadata", "JSON", lambda: metadata().decode().encode("utf-16")
    ),
    "metadata of a later format version": Hostile(
        "table-metadata", "version 4", lambda: metadata(format_version=4)
    ),
    "metadata of an absurd format version": Hostile(
        "table-metadata", "format-version", lambda: metadata(format_version=2**70)
    ),
    "metadata without schemas": Hostile(
        "table-metadata", "`schemas`", lambda: metadata(schemas=...)
    ),
    "metadata with an unknown key nested too deeply to be printed": Hostile(
        "table-metadata",
        "`x`: JSON nested deeper than 200",
        lambda: metadata()[:-1] + b',"x":' + b"[" * 300 + b"]" * 300 + b"}",
    ),
    "metadata with a schema nested a hundred times": Hostile(
        "table-metadata", "nested deeper", lambda: metadata(schemas=[column(list_type(150))])
    ),
    "metadata whose schema is not there": Hostile(
        "table-metadata", "current-schema-id", lambda: metadata(current_schema_id=77)
    ),
    "metadata with the same snapshot twice": Hostile(
        "table-metadata",
        "snapshot",
        lambda: metadata(
            snapshots=[{"snapshot-id": 5, "timestamp-ms": 1, "manifest-list": "a"}] * 2
        ),
    ),
    "a schema with a fixed of 2^99 bytes": Hostile(
        "schema", "unknown type", lambda: printed(column(f"fixed[{2**99}]"))
    ),
    "a schema with one id for two columns": Hostile(
        "schema", "id", lambda: printed(column({**column("int"), "type": "struct"}))
    ),
    "a filter of towers": Hostile(
        "expression", "nested deeper", lambda: tower(900, type="not", child=...)
    ),
    "a filter of an endless tower": Hostile(
        "expression", "JSON", lambda: tower(100_000, type="not", child=...)
    ),
    "a filter by a bucket of no buckets": Hostile(
        "expression",
        "bucket",
        lambda: printed(
            {
                "type": "eq",
                "term": {"type": "transform", "transform": "bucket[0]", "term": "a"},
                "value": 1,
            }
        ),
    ),
    "a footer longer than the file": Hostile(
        "puffin", "where its size says", lambda: puffin(b"{}", size=2**31 - 1)
    ),
    "a footer of negative size": Hostile(
        "puffin", "where its size says", lambda: puffin(b"{}", size=-2)
    ),
    "a footer of brackets": Hostile("puffin", "Puffin", lambda: puffin(b"[" * 1_000_000)),
    "a footer of a digit too many": Hostile(
        "puffin", "Puffin", lambda: puffin(b'{"blobs":' + b"9" * 10_000 + b"}")
    ),
}

CORPUS = _MANIFESTS | _JSON
