"""Requests as a client damages them, read, checked and planned as a committer does it.

A request that passes the check must be joined without an error, and be readable: entry by entry,
and each bound by the type of its column.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from uuid import UUID

from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_additions
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.values.single_value import decode_value
from committer.iceberg.values.types import BinaryType, FixedType, VariantType
from committer.plan.batch.batch import Batch, Step, prepare_manifests
from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker
from committer.ports.pointer_swap import LoadedTable
from committer.request.request_format import EncodedRequest, digest, read_request
from tests.corpus.bounds import RIGHT
from tests.corpus.entries import RIGHT as RIGHT_FILES
from tests.corpus.tables import TABLES, TYPES

_ANY_BYTES = (BinaryType, FixedType, VariantType)


def handle_line(content: bytes) -> None:
    """Handle the line of a request of the first table, followed by a valid body."""
    _handle(content + b"\n" + _bodies()[0])


def handle_listed_file(content: bytes) -> None:
    """Handle a file that a request lists."""
    line = json.loads(_sealed()[0].content.partition(b"\n")[0])
    del line["files"], line["manifests"]
    head = json.dumps(line).encode()[:-1]
    _handle(head + b',"manifests":[],"files":[' + content + b"]}\n")


def handle_manifest(content: bytes) -> None:
    """Handle the manifest of a request, whose line has the right length and hash."""
    line = json.loads(_sealed()[0].content.partition(b"\n")[0])
    reference = line["manifests"][0] | {"length": len(content), "hash": digest(content)}
    _handle(json.dumps(line | {"manifests": [reference]}).encode() + b"\n" + content)


def line_seeds() -> list[bytes]:
    return [_sealed()[0].content.partition(b"\n")[0]]


def listed_file_seeds() -> list[bytes]:
    return [_of_the_first(one).encode() for one in map(json.dumps, _listed_files())]


def manifest_seeds() -> list[bytes]:
    found = []
    for body in filter(None, _bodies()):
        decoded = decode_manifest(body)
        files = [entry.data_file for entry in decoded.entries]
        if sum(file.record_count for file in files) != _first_rows():
            continue
        moved = [replace(file, file_path=_of_the_first(file.file_path)) for file in files]
        context = ManifestContext(decoded.format_version, decoded.schema, decoded.spec)
        found.append(encode_additions(moved, context, sync=bytes(16)).content)
    return found


def _first_rows() -> int:
    """Return the added rows that the first request states for its manifest."""
    return _sealed()[0].request.manifests[0].added_rows_count


def _listed_files() -> list[object]:
    return [file for one in _sealed() for file in one.request.files]


def _of_the_first(text: str) -> str:
    """Replace any attempt by that of the first request."""
    for one in _sealed():
        text = text.replace(str(one.request.attempt), str(_sealed()[0].request.attempt))
    return text


@cache
def _table() -> LoadedTable:
    return TABLES[TYPES]()


@cache
def _sealed() -> list[EncodedRequest]:
    """Return valid requests of one producer and epoch, with bounds of each type."""
    cases = [one for one in (*RIGHT, *RIGHT_FILES) if one.table == TYPES]
    return [read_request(one.send(_table(), "query-1").content) for one in cases]


def _bodies() -> list[bytes]:
    return [one.content[one.body :] for one in _sealed()]


@cache
def _checker() -> Checker:
    metadata = _table().metadata
    return Checker(CheckBasis.of("frazil", metadata), metadata.current_schema)


def _handle(content: bytes) -> None:
    metadata = _table().metadata
    checked = _checker().check(read_request(content))
    if not isinstance(checked, CheckedRequest):
        return
    for manifest in prepare_manifests(Batch((Step((checked,), 1),), UUID(int=1)), metadata):
        for entry in decode_manifest(manifest.encoded.content).entries:
            _decode_bounds(metadata, entry.data_file.lower_bounds or {})
            _decode_bounds(metadata, entry.data_file.upper_bounds or {})


def _decode_bounds(metadata: TableMetadata, bounds: Mapping[int, bytes]) -> None:
    for field_id, bound in bounds.items():
        field = metadata.current_schema.field(field_id)
        if field is not None and not isinstance(field.field_type, _ANY_BYTES):
            decode_value(field.field_type, bound)
