"""The readers of foreign bytes: each with the honest input to start from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from committer.errors import (
    InvalidFilterError,
    InvalidMetadataError,
    InvalidRequestError,
    UnsupportedError,
)
from committer.iceberg.deletes.deletion_vector import (
    DeletionVector,
    decode_deletion_vector,
    encode_deletion_vector,
)
from committer.iceberg.deletes.deletion_vector_file import DELETION_VECTOR_TYPE
from committer.iceberg.deletes.puffin import decode_puffin_footer
from committer.iceberg.entry.content_file_json import parse_content_file
from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.expressions.expression_json import parse_expression, print_expression
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_manifest
from committer.iceberg.metadata.table_metadata import (
    TableMetadata,
    parse_table_metadata,
    print_table_metadata,
)
from committer.iceberg.scan.plan_files import plan_files
from committer.iceberg.schema.name_mapping import parse_name_mapping, print_name_mapping
from committer.iceberg.schema.partition_spec import parse_partition_spec, partition_type
from committer.iceberg.schema.schema import Schema, parse_schema, print_schema
from committer.iceberg.splice.manifest_walk import walk_additions
from committer.iceberg.updates.metadata_update_json import print_update
from tests.fuzz import requests
from tests.fuzz.mutation import (
    avro_damaged,
    flipped,
    gzip_or_plain,
    json_damaged,
    printed,
    vector_damaged,
)
from tests.support.builders.fixtures import expected, fixtures_dir, read_bytes, table_dir, vectors
from tests.support.iceberg.content_file_printer import print_content_file
from tests.support.iceberg.manifest_builders import added_entry
from tests.support.iceberg.puffin_blobs import decode_blob
from tests.support.iceberg.update_reader import parse_update

Damage = Callable[[bytes, Random], bytes]

REFUSALS = (InvalidMetadataError, UnsupportedError, InvalidFilterError, InvalidRequestError)


@dataclass(frozen=True, slots=True)
class Target:
    """A reader of bytes. `read` returns, or raises one of the `REFUSALS` and nothing else."""

    name: str
    read: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    damage: Damage


def _read_metadata(content: bytes) -> None:
    """Read metadata, print it, and compare it with the printed one read again."""
    metadata = parse_table_metadata(content)
    again = parse_table_metadata(print_table_metadata(metadata))
    if repr(again) != repr(metadata):
        raise AssertionError("table metadata: what was printed is read as something else")


def _read_schema(content: bytes) -> None:
    schema = parse_schema(_parsed(content))
    if parse_schema(print_schema(schema)) != schema:
        raise AssertionError("schema: what was printed is read as something else")


def _read_expression(content: bytes) -> None:
    print_expression(parse_expression(_parsed(content)))


def _read_update(content: bytes) -> None:
    print_update(parse_update(_parsed(content)))


def _read_content_file(content: bytes) -> None:
    document = _parsed(content)
    case = _content_file_context()
    schema, spec = parse_schema(case["schema"]), parse_partition_spec(case["spec"])
    print_content_file(parse_content_file(document, {spec.spec_id: spec}, schema), spec, schema)


def _read_where(content: bytes) -> None:
    print_expression(parse_where(content.decode(errors="replace")))


def _read_name_mapping(content: bytes) -> None:
    print_name_mapping(parse_name_mapping(content.decode(errors="replace")))


def _read_puffin(content: bytes) -> None:
    """Read every blob too, as a deletion vector if its type says so."""
    for blob in decode_puffin_footer(content).blobs:
        decoded = decode_blob(content, blob)
        if blob.type == DELETION_VECTOR_TYPE:
            decode_deletion_vector(decoded)


def _read_vector(content: bytes) -> None:
    vector = decode_deletion_vector(content)
    if decode_deletion_vector(encode_deletion_vector(vector)) != vector:
        raise AssertionError("deletion vector: what was read is written as something else")


def _walk(content: bytes) -> None:
    """Read it as a submitted manifest, of the table that the honest ones are from."""
    metadata, _ = _scanned()
    walk_additions(
        content,
        partition_type(metadata.default_spec, metadata.current_schema),
        metadata.format_version,
        ManifestContent.DATA,
    )


def _scan(content: bytes) -> None:
    """Scan with this as the table's first manifest, and a filter that asks for metrics."""
    metadata, paths = _scanned()
    filter = parse_where("i > 0 and d < 1.5 and s is not null and not starts_with(s, 'x')")

    def read(location: str) -> bytes:
        return content if location == paths[0] else read_bytes(location)

    for _ in plan_files(metadata, read=read, filter=filter):
        pass


@cache
def _scanned() -> tuple[TableMetadata, list[str]]:
    facts = expected("v2_identity_all")
    metadata = parse_table_metadata(read_bytes(facts["metadata_location"]))
    return metadata, [row["manifest_path"] for row in facts["snapshots"][-1]["manifests"]]


def _parsed(content: bytes) -> object:
    """Parse JSON as the callers of these readers do, who check its syntax."""
    try:
        document: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidMetadataError(f"expected JSON: {error}") from None
    return document


@cache
def _content_file_context() -> dict[str, object]:
    found: dict[str, object] = vectors("content_files")["cases"][-1]
    return found


# --- Honest input --------------------------------------------------------------------------------


def _files(*patterns: str) -> list[bytes]:
    java = fixtures_dir() / "java"
    return [path.read_bytes() for pattern in patterns for path in sorted(java.glob(pattern))]


def _metadata_seeds() -> list[bytes]:
    return [max(folder.rglob("*.metadata.json")).read_bytes() for folder in _tables()]


def _tables() -> list[Path]:
    return [path.parent for path in sorted(table_dir("v2_empty").parent.glob("*/expected.json"))]


def _schema_seeds() -> list[bytes]:
    facts = [json.loads((folder / "expected.json").read_bytes()) for folder in _tables()]
    return [printed(schema) for one in facts for schema in one["schemas"]]


def _expression_seeds() -> list[bytes]:
    return [printed(case["json"]) for case in vectors("expressions")["cases"][::3]]


def _content_file_seeds() -> list[bytes]:
    spec = _content_file_context()["spec"]
    cases = [case for case in vectors("content_files")["cases"] if case["spec"] == spec]
    return [case["json_text"].encode() for case in cases]


def _where_seeds() -> list[bytes]:
    return [
        b"a = 1 and (b is null or c in ('x', 'y')) and not starts_with(d, 'p')",
        b"ts >= '2026-01-01T00:00:00' or \"odd name\" <> -1.5e3 and x is not nan",
        b"bucket(4, id) = 3 and true",
    ]


def _name_mapping_seeds() -> list[bytes]:
    return [expected("v2_name_mapping")["properties"]["schema.name-mapping.default"].encode()]


def _vector_seeds() -> list[bytes]:
    positions = ([0], [1, 2**32 + 5, 2**40], range(5000), range(0, 200_000, 3))
    return [encode_deletion_vector(DeletionVector(each)) for each in positions]


def _scanned_seeds() -> list[bytes]:
    return [read_bytes(path) for path in _scanned()[1]]


def _handed_seeds() -> list[bytes]:
    """Return the same files as a producer submits them: added, all ids left to the commit."""
    found = []
    for content in _scanned_seeds():
        decoded = decode_manifest(content)
        context = ManifestContext(decoded.format_version, decoded.schema, decoded.spec)
        entries = [added_entry(entry.data_file) for entry in decoded.entries]
        found.append(encode_manifest(entries, context, sync=bytes(range(16))).content)
    return found


def _update_seeds() -> list[bytes]:
    schema = print_schema(Schema(()))
    snapshot = {"snapshot-id": 1, "timestamp-ms": 1, "manifest-list": "m", "summary": {}}
    updates: list[dict[str, object]] = [
        {"action": "assign-uuid", "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "add-schema", "schema": schema, "last-column-id": 0},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "add-snapshot", "snapshot": snapshot},
        {
            "action": "set-snapshot-ref",
            "ref-name": "main",
            "type": "branch",
            "snapshot-id": 1,
        },
        {"action": "remove-snapshots", "snapshot-ids": [1, 2]},
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-properties", "removals": ["a"]},
    ]
    return [printed(update) for update in updates]


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("table-metadata", _read_metadata, _metadata_seeds, gzip_or_plain(json_damaged)),
        Target(
            "manifest",
            decode_manifest,
            # No file of `v2_identity_fixed_java_quirk` is valid Avro.
            lambda: _files("v[13]*/metadata/*-m?.avro", "v2_[efmnp]*/metadata/*-m?.avro"),
            avro_damaged,
        ),
        Target(
            "manifest-list",
            decode_manifest_list,
            lambda: _files("*/metadata/snap-*.avro")[::3],
            avro_damaged,
        ),
        Target(
            "puffin",
            _read_puffin,
            lambda: _files("*/metadata/*.stats", "*/data/*.puffin"),
            flipped,
        ),
        Target("deletion-vector", _read_vector, _vector_seeds, vector_damaged),
        # Another manifest than the first is none that its row in the list allows.
        Target("scan", _scan, lambda: _scanned_seeds()[:1], avro_damaged),
        Target("handed-manifest", _walk, _handed_seeds, avro_damaged),
        Target("request-line", requests.handle_line, requests.line_seeds, json_damaged),
        Target(
            "listed-file", requests.handle_listed_file, requests.listed_file_seeds, json_damaged
        ),
        Target("request-manifest", requests.handle_manifest, requests.manifest_seeds, avro_damaged),
        Target("where", _read_where, _where_seeds, flipped),
        Target("name-mapping", _read_name_mapping, _name_mapping_seeds, json_damaged),
        Target("schema", _read_schema, _schema_seeds, json_damaged),
        Target("expression", _read_expression, _expression_seeds, json_damaged),
        Target("content-file", _read_content_file, _content_file_seeds, json_damaged),
        Target("update", _read_update, _update_seeds, json_damaged),
    )
}
