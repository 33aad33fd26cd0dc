"""Manifests whose bytes break the format, or whose header claims what is not so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.container import read_header
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from tests.corpus.hostile import Hostile, bad, with_manifest
from tests.fuzz.hostile import CORPUS as AVRO
from tests.fuzz.hostile import avro
from tests.support.builders.bad_requests import (
    ASKED,
    CHECKED,
    with_header,
)

# --- Bytes of Avro -------------------------------------------------------------------------------

# Where this has another code than the rest.
_REASONS = {
    "nothing": Reason.REQUEST_MALFORMED,
    "an unknown codec": Reason.UNSUPPORTED,
}


def _avro() -> Iterable[Hostile]:
    """Yield Avro that the readers of manifests refuse, with the header that the table wants."""
    for name, hostile in AVRO.items():
        if hostile.target == "manifest":
            reason = _REASONS.get(name, Reason.MANIFEST_MALFORMED)
            yield with_manifest(f"Avro: {name}", reason, partial(_for_this_table, hostile.build))


def _for_this_table(build: Callable[[], bytes], _: LoadedTable, right: EncodedRequest) -> bytes:
    """Fit blocks and Avro schema to this table, unless the header is broken or has own values."""
    content = build()
    try:
        found = read_header(content).metadata
    except InvalidMetadataError:
        return content
    plain = read_header(avro([])).metadata
    wanted = read_header(manifest_of(right)).metadata
    keys = [key for key in _FITTING if found.get(key) == plain.get(key)]
    return with_header(content, {key: wanted[key] for key in keys})


_FITTING = ("schema", "partition-spec", "partition-spec-id", "content", "avro.schema")


def manifest_of(right: EncodedRequest) -> bytes:
    return bytes(right.manifest(right.request.manifests[0]))


def _cut(share: float) -> Hostile:
    def cut(_: LoadedTable, right: EncodedRequest) -> bytes:
        manifest = manifest_of(right)
        return manifest[: int(len(manifest) * share)]

    return with_manifest(f"a manifest cut at {share:.0%}", Reason.MANIFEST_TRUNCATED, cut)


def _spoiled(name: str, reason: Reason, change: Callable[[bytes], bytes]) -> Hostile:
    return with_manifest(name, reason, lambda _, right: change(manifest_of(right)))


def _header(name: str, reason: Reason, **header: bytes) -> Hostile:
    renamed = {key.replace("__", ".").replace("_", "-"): value for key, value in header.items()}
    return _spoiled(name, reason, lambda content: with_header(content, renamed))


def _json_header(name: str, reason: Reason, key: str, change: Callable[[Any], object]) -> Hostile:
    def changed(content: bytes) -> bytes:
        document = json.loads(read_header(content).metadata[key])
        other = change(document)
        return with_header(
            content, {key: json.dumps(document if other is None else other).encode()}
        )

    return _spoiled(name, reason, changed)


BYTES = (
    *_avro(),
    *(_cut(share) for share in (0.001, 0.3, 0.6, 0.9, 0.999)),
    _spoiled("a Parquet file", Reason.MANIFEST_MALFORMED, lambda _: b"PAR1" + bytes(200) + b"PAR1"),
    _spoiled("an Arrow file", Reason.MANIFEST_MALFORMED, lambda _: b"ARROW1\0\0" + bytes(200)),
    _spoiled("JSON", Reason.MANIFEST_MALFORMED, lambda _: b'{"manifest":[]}'),
    _spoiled("a byte", Reason.MANIFEST_MALFORMED, lambda _: b"\0"),
    _spoiled("two manifests in one", Reason.MANIFEST_MALFORMED, lambda all_: all_ + all_),
    _spoiled("bytes behind it", Reason.MANIFEST_TRUNCATED, lambda all_: all_ + b"\x02\x80\x80\x01"),
    _spoiled("another sync marker", Reason.MANIFEST_MALFORMED, lambda all_: all_[:-16] + bytes(16)),
    _header("a schema of nothing", Reason.MANIFEST_MALFORMED, schema=b""),
    _header("a schema that is a list", Reason.MANIFEST_MALFORMED, schema=b"[]"),
    _header("a schema of brackets", Reason.MANIFEST_MALFORMED, schema=b"[" * 10_000),
    _header("a spec of nothing", Reason.MANIFEST_MALFORMED, partition_spec=b""),
    _header("a spec that is an object", Reason.MANIFEST_MALFORMED, partition_spec=b"{}"),
    _header("a spec without its field", Reason.SPEC_MISMATCH, partition_spec=b"[]"),
    _header("a spec id that is no number", Reason.MANIFEST_MALFORMED, partition_spec_id=b"x"),
    _header("a negative spec id", Reason.MANIFEST_MALFORMED, partition_spec_id=b"-1"),
    _header("a spec id of 20 digits", Reason.MANIFEST_MALFORMED, partition_spec_id=b"9" * 20),
    _header("a spec id of the future", Reason.SPEC_UNKNOWN, partition_spec_id=b"77"),
    _header("format version 0", Reason.MANIFEST_MALFORMED, format_version=b"0"),
    _header("format version two", Reason.MANIFEST_MALFORMED, format_version=b"two"),
    _header("format version 3 of a v2 table", Reason.FORMAT_VERSION_MISMATCH, format_version=b"3"),
    _header("content that is neither", Reason.MANIFEST_MALFORMED, content=b"both"),
    _header("content deletes", Reason.MANIFEST_CONTENT_MISMATCH, content=b"deletes"),
    _header("codec lzma", Reason.UNSUPPORTED, avro__codec=b"lzma"),
    _header("a codec that is not ASCII", Reason.MANIFEST_MALFORMED, avro__codec=b"\xff"),
    _header("codec bzip2", Reason.UNSUPPORTED, avro__codec=b"bzip2"),
    _header("a codec that it does not have", Reason.MANIFEST_MALFORMED, avro__codec=b"snappy"),
    _header("no Avro schema", Reason.MANIFEST_MALFORMED, avro__schema=b""),
    _header("an Avro schema of a number", Reason.MANIFEST_MALFORMED, avro__schema=b"5"),
    _header("an Avro schema of a string", Reason.MANIFEST_MALFORMED, avro__schema=b'"string"'),
    _json_header(
        "an Avro schema without data_file",
        Reason.MANIFEST_MALFORMED,
        "avro.schema",
        lambda schema: schema["fields"].pop(),
    ),
    _json_header(
        "a column with another id",
        Reason.SCHEMA_MISMATCH,
        "schema",
        lambda schema: schema["fields"][3].update(id=44),
    ),
    _json_header(
        "a column with a wider type",
        Reason.SCHEMA_MISMATCH,
        "schema",
        lambda schema: schema["fields"][3].update(type="double"),
    ),
    _json_header(
        "a column that became a struct",
        Reason.SCHEMA_MISMATCH,
        "schema",
        lambda schema: schema["fields"][3].update(type={"type": "struct", "fields": []}),
    ),
    _json_header(
        "a column of a type that there is not",
        Reason.MANIFEST_MALFORMED,
        "schema",
        lambda schema: schema["fields"][0].update(type="int128"),
    ),
    _json_header(
        "one id for two columns",
        Reason.MANIFEST_MALFORMED,
        "schema",
        lambda schema: schema["fields"][1].update(id=1),
    ),
    _json_header(
        "another transform",
        Reason.SPEC_MISMATCH,
        "partition-spec",
        lambda spec: spec[0].update(transform="truncate[2]"),
    ),
    _json_header(
        "a transform that there is not",
        Reason.SPEC_MISMATCH,
        "partition-spec",
        lambda spec: spec[0].update(transform="zorder"),
    ),
    _json_header(
        "a partition by another column",
        Reason.SPEC_MISMATCH,
        "partition-spec",
        lambda spec: spec[0].update({"source-id": 1}),
    ),
)

MANIFESTS: tuple[Hostile, ...] = (*bad((*CHECKED, *ASKED)), *BYTES)
