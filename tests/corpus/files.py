"""Files that are listed as JSON in every wrong way, and partition values of other types."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

from committer.iceberg.avro.container import read_header
from committer.iceberg.manifest.manifest_writer import ManifestContext
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampType,
    UUIDType,
)
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from tests.corpus.hostile import Hostile, Sent, short, with_manifest
from tests.corpus.manifests import manifest_of
from tests.support.builders.bad_requests import entry, file_of, good, hand_over, inline_document
from tests.support.builders.flights import FIELDS

# --- Partition values ----------------------------------------------------------------------------


def _partition(kind: IcebergType, value: object) -> Hostile:
    """Return a case whose header says that carriers are strings; the entry holds another value."""

    def written(table: LoadedTable, right: EncodedRequest) -> bytes:
        fields = (FIELDS[0], replace(FIELDS[1], field_type=kind), *FIELDS[2:])
        metadata = table.metadata
        context = ManifestContext(metadata.format_version, Schema(fields), metadata.default_spec)
        file = file_of(table, right.request, partition=(value,))
        honest = read_header(manifest_of(right)).metadata
        return hand_over(
            table, entry(file), context=context, header={"schema": honest["schema"]}
        ).content

    return with_manifest(f"a partition of type {kind}", Reason.PARTITION_TYPE_MISMATCH, written)


PARTITIONS: tuple[Hostile, ...] = (
    _partition(BooleanType(), True),
    _partition(IntegerType(), 7),
    _partition(LongType(), 2**40),
    _partition(FloatType(), 1.5),
    _partition(DoubleType(), float("inf")),
    _partition(DateType(), 20_000),
    _partition(TimestampType(), 10**15),
    _partition(BinaryType(), b"AA"),
    _partition(FixedType(2), b"AA"),
    _partition(UUIDType(), UUID(int=5)),
    _partition(DecimalType(9, 2), Decimal("1.25")),
)


# --- Files as JSON -------------------------------------------------------------------------------


def _inline(key: str, value: object, reason: Reason) -> Hostile:
    def send(table: LoadedTable, producer: str) -> Sent:
        right = good(table, producer)
        said = value.replace("{t}", table.metadata.location) if isinstance(value, str) else value
        document = inline_document(table, right.request) | {key: said}
        line = json.loads(right.content[: right.body]) | {"manifests": [], "files": [document]}
        if value is ...:
            del document[key]
        return Sent(right.request.inbox_key, json.dumps(line).encode() + b"\n")

    shown = "absent" if value is ... else short(value)
    return Hostile(f"`files`: {key} = {shown}", reason, send)


_WRONG_FILES: dict[str, tuple[object, ...]] = {
    "spec-id": (..., "0", None, 0.0, True),
    "content": ("deletes", 5, None, ""),
    "file-path": (..., "", 5, None, []),
    "file-format": (..., "", 5, None),
    "partition": (..., [], ["AA", "BB"], [5], [["AA"]], "AA", {"1001": "AA"}, {"1000": 5}, [True]),
    "record-count": (..., -1, "10", 1.5, None, 2**63, True, 10**400),
    "file-size-in-bytes": (..., -1, "10", None, 2**63),
    "column-sizes": (
        [],
        "x",
        {"keys": [1]},
        {"keys": [1], "values": []},
        {"keys": [1], "values": "1"},
    ),
    "value-counts": ({"keys": [1], "values": ["x"]}, {"keys": ["1"], "values": [1]}),
    "null-value-counts": ({"keys": [2**31], "values": [1]}, {"keys": [-1], "values": [1]}),
    "nan-value-counts": ({"keys": [1], "values": [2**63]}, 5),
    "lower-bounds": ({"keys": [1], "values": ["xyz"]}, {"keys": [1], "values": [5]}, "00"),
    "upper-bounds": ({"keys": [1, 1], "values": ["00"]}, {"keys": [None], "values": ["00"]}),
    "key-metadata": ("not hex", 5),
    "split-offsets": ("4", ["4"], [2**63], {}),
    "equality-ids": ("1", [1.5]),
    "sort-order-id": ("0", 1.5, []),
    "first-row-id": ("x", 1.5),
    "referenced-data-file": (5, ""),
    "content-offset": ("0",),
}

FILES: tuple[Hostile, ...] = (
    *(
        _inline(key, value, Reason.REQUEST_MALFORMED)
        for key, values in _WRONG_FILES.items()
        for value in values
    ),
    *(_inline("spec-id", value, Reason.SPEC_UNKNOWN) for value in (7, -1, 2**70)),
    _inline("content", "position-deletes", Reason.REQUEST_MALFORMED),
    _inline("content", "equality-deletes", Reason.MANIFEST_CONTENT_MISMATCH),
    _inline("file-path", "memory://warehouse/db/other/data/x.parquet", Reason.PATH_NOT_ALLOWED),
    _inline("file-path", "{t}/x.parquet", Reason.PATH_WITHOUT_ATTEMPT),
)
