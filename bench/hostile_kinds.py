"""The requests of `bench.hostile`: some MB each, and each wrong, or costly, in one way.

Their bodies are made once; each request gets its own attempt, keys and hashes.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from threading import Lock
from typing import Any
from uuid import UUID, uuid4

from committer.iceberg.avro.container import read_header
from committer.iceberg.entry.data_file import DataFile, ManifestEntry, ManifestEntryStatus
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_manifest
from committer.ports.pointer_swap import LoadedTable
from committer.request.attempt import attempt_of, timed_nonce
from committer.request.request_format import digest, seal_request
from committer.request.request_key import inbox_key
from tests.support.builders.request_builders import build_file, build_line
from tests.support.iceberg.content_file_printer import print_content_file

_MIB = 1024 * 1024
_PLACE = UUID("00000000-0000-4000-8000-0000000a77e0")
_SYNC = bytes(range(16))
_FILES = 15_000
_REPEATED = 50_000
_templates: dict[tuple[str, str], bytes] = {}
_lock = Lock()


def _once(table: LoadedTable, build: Callable[[LoadedTable], bytes]) -> bytes:
    """Return the part that every request for a table shares."""
    key = build.__name__, table.metadata.location
    with _lock:
        if key not in _templates:
            _templates[key] = build(table)
        return _templates[key]


@dataclass(frozen=True, slots=True)
class Hostile:
    """The bytes of a request and the key that it is put under."""

    table_uuid: UUID
    key: str
    content: bytes


def hostile_request(kind: str, table: LoadedTable, producer: str, number: int) -> Hostile:
    """Build the request with this number; its size varies with the number, from 1 to 8 MiB."""
    table_uuid = table.metadata.require_uuid()
    # Only a one-shot request has to tell when it was made.
    nonce = timed_nonce(time.time_ns() // 1_000_000, uuid4())
    attempt = attempt_of(table_uuid, "main", producer, number, nonce)
    content = KINDS[kind](table, producer, number, Attempt(attempt, nonce))
    return Hostile(table_uuid, inbox_key(table_uuid, producer, number, attempt), content)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The uuid in the names of a request's files, and the nonce that it was made of."""

    uuid: UUID
    nonce: UUID

    def __str__(self) -> str:
        return str(self.uuid)


def _size(number: int) -> int:
    return (1 + number % 8) * _MIB


# --- Lines ---------------------------------------------------------------------------------------


def _line(
    table: LoadedTable, producer: str, number: int, attempt: Attempt, **more: object
) -> dict[str, Any]:
    request = build_line(
        table,
        producer=producer,
        epoch=number,
        nonce=attempt.nonce,
        sequential=False,
        one_shot="once" in producer,
    )
    line: dict[str, Any] = json.loads(seal_request(request).content)
    del line["files"]
    return line | more


def _printed(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _garbage(_: LoadedTable, _producer: str, number: int, _attempt: Attempt) -> bytes:
    return _noise(_MIB).replace(b"\n", b"") * (_size(number) // _MIB)


@cache
def _noise(size: int) -> bytes:
    """Return random bytes, the same in each run."""
    return Random(size).randbytes(size)


def _deep(_: LoadedTable, _producer: str, number: int, _attempt: Attempt) -> bytes:
    return b"[" * min(_size(number), 4 * _MIB) + b"\n"


def _numbers(table: LoadedTable, producer: str, number: int, attempt: Attempt) -> bytes:
    line = _line(table, producer, number, attempt, files=[{}], needs={"conflict-filter": {"a": []}})
    many = b",".join([b"7"] * (_size(number) // 2))
    return _printed(line).replace(b'{"a":[]}', b'{"a":[' + many + b"]}")


def _empty_files(table: LoadedTable, producer: str, number: int, attempt: Attempt) -> bytes:
    line = _line(table, producer, number, attempt, files=[])
    many = b",".join([b"{}"] * (_size(number) // 3))
    return _printed(line).replace(b'"files":[]', b'"files":[' + many + b"]")


def _inline_files(table: LoadedTable, producer: str, number: int, attempt: Attempt) -> bytes:
    """Build a request that is valid except for the last file, which has no record count."""
    line = _line(table, producer, number, attempt, files=[])
    template = _once(table, _documents)
    documents = template.replace(str(_PLACE).encode(), str(attempt).encode())
    return _printed(line).replace(b'"files":[]', b'"files":[' + documents + b"]")


def _documents(table: LoadedTable) -> bytes:
    metadata = table.metadata
    spec, schema = metadata.default_spec, metadata.current_schema
    file = _files(table, 1)[0]
    document = print_content_file(file, spec, schema)
    text = json.dumps(document, separators=(",", ":"))
    count = 4 * _MIB // len(text) - 1
    texts = [text.replace("00000-", f"{n:05d}-") for n in range(count)]
    wrong = dict(document)
    del wrong["record-count"]
    return ",".join((*texts, json.dumps(wrong))).encode()


# --- Manifests -----------------------------------------------------------------------------------


def _files(table: LoadedTable, count: int) -> list[DataFile]:
    return [
        replace(
            build_file(table.metadata, _PLACE, number=number, partition=(number % 2,)),
            column_sizes=dict.fromkeys(range(1, 3), 1_000),
            lower_bounds={1: number.to_bytes(8, "little"), 2: b"a" * 16},
            upper_bounds={1: number.to_bytes(8, "little"), 2: b"z" * 16},
        )
        for number in range(count)
    ]


def _manifest(table: LoadedTable, files: list[DataFile], codec: str = "null") -> bytes:
    metadata = table.metadata
    context = ManifestContext(
        metadata.format_version, metadata.current_schema, metadata.default_spec
    )
    entries = (ManifestEntry(ManifestEntryStatus.ADDED, None, None, None, file) for file in files)
    return encode_manifest(entries, context, codec=codec, sync=_SYNC).content


def _plain(table: LoadedTable) -> bytes:
    return _manifest(table, _files(table, _FILES))


def _large_manifest(table: LoadedTable, attempt: Attempt) -> bytes:
    template = _once(table, _plain)
    return template.replace(str(_PLACE).encode(), str(attempt).encode())


def _with_manifest(line: dict[str, Any], manifest: bytes, files: int, **more: object) -> bytes:
    reference = {
        "content": "data",
        "partition-spec-id": 0,
        "length": len(manifest),
        "added-files-count": files,
        "added-rows-count": 10 * files,
        "hash": digest(manifest),
        "offset": 0,
    }
    return _printed(line | {"manifests": [reference | more]}) + manifest


def _bad_last(table: LoadedTable, producer: str, number: int, attempt: Attempt) -> bytes:
    """Build a request that is valid except for the last entry, which does not name the attempt."""
    manifest = _large_manifest(table, attempt)
    before, _, behind = manifest.rpartition(str(attempt).encode())
    line = _line(table, producer, number, attempt)
    return _with_manifest(line, before + str(uuid4()).encode() + behind, _FILES)


def _wrong_hash(table: LoadedTable, producer: str, number: int, attempt: Attempt) -> bytes:
    manifest = _large_manifest(table, attempt)
    line = _line(table, producer, number, attempt)
    return _with_manifest(line, manifest, _FILES, hash=digest(b""))


def _unknown_table(table: LoadedTable, producer: str, number: int, attempt: Attempt) -> bytes:
    line = _line(table, producer, number, attempt)
    line["table"] = {"namespace": ["db"], "name": f"nowhere{number}"}
    return _with_manifest(line, _large_manifest(table, attempt), _FILES)


def _other_catalog(table: LoadedTable, producer: str, number: int, attempt: Attempt) -> bytes:
    line = _line(table, producer, number, attempt, catalog="elsewhere")
    return _with_manifest(line, _large_manifest(table, attempt), _FILES)


def _bomb(table: LoadedTable, producer: str, number: int, attempt: Attempt) -> bytes:
    """Build blocks of one entry with a bound of 30 MiB, each some kilobytes once compressed."""
    count = 8 * (1 + number % 4)
    return _of_blocks(table, producer, number, attempt, _once(table, _bomb_block), count, 1)


def _repeats(table: LoadedTable, producer: str, number: int, attempt: Attempt) -> bytes:
    """Build a million equal entries, in blocks that deflate shrinks to next to nothing."""
    return _of_blocks(
        table, producer, number, attempt, _once(table, _repeated_block), 10, _REPEATED
    )


def _of_blocks(
    table: LoadedTable,
    producer: str,
    number: int,
    attempt: Attempt,
    raw: bytes,
    blocks: int,
    entries: int,
) -> bytes:
    deflated = _deflated(raw)
    head = _manifest(table, _files(table, 1), "deflate")
    head = head[: read_header(head).end_offset]
    one = _long(entries) + _long(len(deflated)) + deflated + _SYNC
    files = blocks * entries
    return _with_manifest(_line(table, producer, number, attempt), head + one * blocks, files)


@cache
def _deflated(raw: bytes) -> bytes:
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    return deflate.compress(raw) + deflate.flush()


def _entry(table: LoadedTable, file: DataFile) -> bytes:
    manifest = _manifest(table, [file])
    start = read_header(manifest).end_offset
    size_end = start + 1
    while manifest[size_end] & 0x80:
        size_end += 1
    return manifest[size_end + 1 : -16]


def _bomb_block(table: LoadedTable) -> bytes:
    file = replace(
        _files(table, 1)[0], lower_bounds={2: bytes(30 * _MIB) + _noise(_MIB // 3).hex().encode()}
    )
    return _entry(table, file)


def _repeated_block(table: LoadedTable) -> bytes:
    """Add noise to the block, so that a file of these does not inflate too far for a reader."""
    plain = _files(table, 1)[0]
    entries = _entry(table, plain) * (_REPEATED - 1)
    return entries + _entry(
        table, replace(plain, lower_bounds={2: _noise(len(entries) // 90).hex().encode()})
    )


def _long(value: int) -> bytes:
    value <<= 1
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


KINDS: dict[str, Callable[[LoadedTable, str, int, Attempt], bytes]] = {
    "bytes without a line": _garbage,
    "brackets": _deep,
    "numbers": _numbers,
    "empty files": _empty_files,
    "files of which the last is wrong": _inline_files,
    "a manifest whose last entry is wrong": _bad_last,
    "another hash": _wrong_hash,
    "an unknown table": _unknown_table,
    "another catalog": _other_catalog,
    "a bomb": _bomb,
    "one entry half a million times": _repeats,
}
