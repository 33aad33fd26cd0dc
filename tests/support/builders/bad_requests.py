"""Requests that are wrong in exactly one way, with the reason code that each must get."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from committer.iceberg.avro.binary import LONGS, encode_bytes
from committer.iceberg.avro.container import encode_header, read_header
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_manifest
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import LongType, NestedField
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from committer.reason import Reason
from committer.request.commit_request import CommitRequest, ManifestReference
from committer.request.needs import Needs
from committer.request.request_format import EncodedRequest, InlineManifest, digest, seal_request
from tests.support.builders.flights import BY_CARRIER, BY_DAY, FIELDS
from tests.support.builders.request_builders import SYNC, build_file, build_line, changed_line, seal
from tests.support.iceberg.content_file_printer import print_content_file

Make = Callable[[LoadedTable, str], EncodedRequest]
ADDED = ManifestEntryStatus.ADDED


@dataclass(frozen=True, slots=True)
class BadRequest:
    """`make(table, producer)` gives the request; it must end in quarantine with `reason`."""

    name: str
    reason: Reason
    make: Make


def entry(file: DataFile, **changes: object) -> ManifestEntry:
    return replace(ManifestEntry(ADDED, None, None, None, file), **changes)  # type: ignore[arg-type]


def hand_over(
    table: LoadedTable,
    *entries: ManifestEntry,
    context: ManifestContext | None = None,
    header: Mapping[str, bytes] | None = None,
    codec: str = "deflate",
) -> InlineManifest:
    """Encode a manifest of these entries; `header` replaces header keys."""
    metadata = table.metadata
    context = context or ManifestContext(
        metadata.format_version, metadata.current_schema, metadata.default_spec
    )
    encoded = encode_manifest(entries, context, codec=codec, sync=SYNC)
    return InlineManifest(
        with_header(encoded.content, header or {}),
        "data",
        context.spec.spec_id,
        len(entries),
        sum(one.data_file.record_count for one in entries),
    )


def refer(path: str, content: bytes) -> ManifestReference:
    """Return a request's reference, by path, to a manifest of one file."""
    return ManifestReference(
        content="data",
        partition_spec_id=0,
        length=len(content),
        added_files_count=1,
        added_rows_count=10,
        hash=digest(content),
        path=path,
    )


def naming(
    table: LoadedTable, producer: str, name: str = "handed.avro", *, epoch: int = 0
) -> tuple[EncodedRequest, NewObject]:
    """Build a request that names its manifest, and the manifest."""
    line = build_line(table, producer=producer, epoch=epoch)
    content = hand_over(table, entry(file_of(table, line))).content
    path = f"{table.metadata.location}/metadata/{name}"
    sealed = seal(line.model_copy(update={"manifests": (refer(path, content),)}), ())
    return sealed, NewObject(path, content)


def with_header(content: bytes, header: Mapping[str, bytes]) -> bytes:
    read = read_header(content)
    metadata = {**read.metadata, **header}
    return encode_header(metadata, read.sync) + content[read.end_offset :]


def without_header(content: bytes, *names: str) -> bytes:
    read = read_header(content)
    metadata = {name: value for name, value in read.metadata.items() if name not in names}
    return encode_header(metadata, read.sync) + content[read.end_offset :]


def file_of(table: LoadedTable, line: CommitRequest, **changes: object) -> DataFile:
    return replace(
        build_file(table.metadata, line.attempt, partition=("AA",)),
        **changes,  # type: ignore[arg-type]
    )


def _line(table: LoadedTable, producer: str, **changes: object) -> CommitRequest:
    line = build_line(table, producer=producer)
    return CommitRequest.model_validate(dict(changed_line(line, **changes)))


def _sealed(line: CommitRequest, *manifests: InlineManifest) -> EncodedRequest:
    return seal(line, manifests)


def good(table: LoadedTable, producer: str, **line: object) -> EncodedRequest:
    """Build a valid request with one file for carrier AA."""
    request = build_line(table, producer=producer, **line)  # type: ignore[arg-type]
    return _sealed(request, hand_over(table, entry(file_of(table, request))))


# --- Ways to be wrong ----------------------------------------------------------------------------


def _changed_line(**changes: object) -> Make:
    def make(table: LoadedTable, producer: str) -> EncodedRequest:
        line = _line(table, producer, **changes)
        return _sealed(line, hand_over(table, entry(file_of(table, line))))

    return make


def _filtered(document: object) -> Make:
    return _changed_line(
        operation="overwrite", needs=Needs.model_validate({"row-filter": document})
    )


def _changed_entry(**changes: object) -> Make:
    def make(table: LoadedTable, producer: str) -> EncodedRequest:
        line = _line(table, producer)
        return _sealed(line, hand_over(table, entry(file_of(table, line), **changes)))

    return make


def _changed_file(**changes: object) -> Make:
    def make(table: LoadedTable, producer: str) -> EncodedRequest:
        line = _line(table, producer)
        return _sealed(line, hand_over(table, entry(file_of(table, line, **changes))))

    return make


def _path(text: str) -> Make:
    """Return a maker of requests with this path; `{location}` and `{attempt}` are filled in."""

    def make(table: LoadedTable, producer: str) -> EncodedRequest:
        line = _line(table, producer)
        path = text.format(location=table.metadata.location, attempt=line.attempt)
        return _sealed(line, hand_over(table, entry(file_of(table, line, file_path=path))))

    return make


def _context(
    *, schema: Schema | None = None, spec: PartitionSpec | None = None, partition: object = "AA"
) -> Make:
    def make(table: LoadedTable, producer: str) -> EncodedRequest:
        line = _line(table, producer)
        metadata = table.metadata
        context = ManifestContext(
            metadata.format_version,
            schema or metadata.current_schema,
            spec or metadata.default_spec,
        )
        file = file_of(table, line, partition=(partition,))
        return _sealed(line, hand_over(table, entry(file), context=context))

    return make


def _said(**says: object) -> Make:
    def make(table: LoadedTable, producer: str) -> EncodedRequest:
        line = _line(table, producer)
        right = hand_over(table, entry(file_of(table, line)))
        return _sealed(line, replace(right, **says))  # type: ignore[arg-type]

    return make


def _header(**header: bytes) -> Make:
    def make(table: LoadedTable, producer: str) -> EncodedRequest:
        line = _line(table, producer)
        renamed = {name.replace("_", "-"): value for name, value in header.items()}
        file = entry(file_of(table, line))
        return _sealed(line, hand_over(table, file, header=renamed))

    return make


def _without(*names: str) -> Make:
    """Return a maker of manifests whose header lacks these keys."""

    def make(table: LoadedTable, producer: str) -> EncodedRequest:
        line = _line(table, producer)
        whole = hand_over(table, entry(file_of(table, line)))
        return _sealed(line, replace(whole, content=without_header(whole.content, *names)))

    return make


def _other_partition_type(table: LoadedTable, producer: str) -> EncodedRequest:
    """Encode entries with numbers under a header that says that carriers are strings."""
    line = _line(table, producer)
    metadata = table.metadata
    fields = tuple(
        replace(one, field_type=LongType()) if one.name == "carrier" else one for one in FIELDS
    )
    context = ManifestContext(metadata.format_version, Schema(fields), metadata.default_spec)
    right = hand_over(table, entry(file_of(table, line)))
    header = {"schema": read_header(right.content).metadata["schema"]}
    file = file_of(table, line, partition=(7,))
    return _sealed(line, hand_over(table, entry(file), context=context, header=header))


def _delete_file(table: LoadedTable, producer: str) -> EncodedRequest:
    line = _line(table, producer)
    metadata = table.metadata
    context = ManifestContext(
        metadata.format_version,
        metadata.current_schema,
        metadata.default_spec,
        ManifestContent.DELETES,
    )
    file = file_of(table, line, content=DataFileContent.POSITION_DELETES)
    return _sealed(line, hand_over(table, entry(file), context=context))


def _same_path_twice(table: LoadedTable, producer: str) -> EncodedRequest:
    line = _line(table, producer)
    file = entry(file_of(table, line))
    return _sealed(line, hand_over(table, file), hand_over(table, file))


def _column_twice(name: str, first: int | bytes, second: int | bytes) -> Make:
    """Return a maker of metrics maps in which both values are those of column 1."""

    def make(table: LoadedTable, producer: str) -> EncodedRequest:
        line = _line(table, producer)
        file = file_of(table, line, **{name: {1: first, 2: second}})
        right = hand_over(table, entry(file), codec="null")
        head, tail = _pair(1, first), _pair(2, second)
        assert right.content.count(head + tail) == 1
        content = right.content.replace(head + tail, head + _pair(1, second))
        return _sealed(line, replace(right, content=content))

    return make


def _pair(column: int, value: int | bytes) -> bytes:
    return LONGS[column] + (LONGS[value] if isinstance(value, int) else encode_bytes(value))


def _newer_format(table: LoadedTable, producer: str) -> EncodedRequest:
    line = _line(table, producer)
    context = ManifestContext(3, table.metadata.current_schema, table.metadata.default_spec)
    return _sealed(line, hand_over(table, entry(file_of(table, line)), context=context))


def _cut_manifest(table: LoadedTable, producer: str) -> EncodedRequest:
    line = _line(table, producer)
    whole = hand_over(table, entry(file_of(table, line)))
    return _sealed(line, replace(whole, content=whole.content[:-20]))


def _no_manifest(table: LoadedTable, producer: str) -> EncodedRequest:
    line = _line(table, producer)
    whole = hand_over(table, entry(file_of(table, line)))
    return _sealed(line, replace(whole, content=b"PAR1" + bytes(100)))


def _named(path: str) -> Make:
    """Return a maker of requests that name a missing manifest by path."""

    def make(table: LoadedTable, producer: str) -> EncodedRequest:
        content = b"somewhere else"
        reference = refer(path.format(location=table.metadata.location), content)
        return seal_request(_line(table, producer, manifests=(reference,), files=()))

    return make


def _inline(**changes: object) -> Make:
    """Return a maker of requests that list their file as JSON."""

    def make(table: LoadedTable, producer: str) -> EncodedRequest:
        line = _line(table, producer)
        document = inline_document(table, line)
        return seal_request(_line_with_files(line, {**document, **changes}))

    return make


def inline_document(table: LoadedTable, line: CommitRequest) -> dict[str, object]:
    metadata = table.metadata
    printed = print_content_file(
        file_of(table, line), metadata.default_spec, metadata.current_schema
    )
    document = json.loads(json.dumps({k: v for k, v in printed.items() if v is not None}))
    assert isinstance(document, dict)
    return document


def _line_with_files(line: CommitRequest, *documents: Mapping[str, object]) -> CommitRequest:
    fields = {name: getattr(line, name) for name in CommitRequest.model_fields}
    return CommitRequest.model_validate({**fields, "files": documents})


def inline_files(table: LoadedTable, producer: str) -> EncodedRequest:
    """Build a valid request that lists its file as JSON."""
    line = build_line(table, producer=producer)
    return seal_request(_line_with_files(line, inline_document(table, line)))


OTHER_SCHEMA = Schema((*FIELDS, NestedField(99, "unheard", LongType(), required=False)))
OTHER_TYPE = Schema((replace(FIELDS[0], field_type=FIELDS[1].field_type), *FIELDS[1:]))
OUTSIDE = "{{location}}{}/x-{{attempt}}.parquet"

CHECKED = (
    BadRequest("another catalog", Reason.CATALOG_MISMATCH, _changed_line(catalog="other")),
    BadRequest(
        "another table uuid", Reason.TABLE_UUID_MISMATCH, _changed_line(table_uuid=UUID(int=77))
    ),
    BadRequest("unknown branch", Reason.BRANCH_UNKNOWN, _changed_line(branch="audit")),
    BadRequest("unknown field id", Reason.SCHEMA_MISMATCH, _context(schema=OTHER_SCHEMA)),
    BadRequest("another column type", Reason.SCHEMA_MISMATCH, _context(schema=OTHER_TYPE)),
    BadRequest("unknown spec id", Reason.SPEC_UNKNOWN, _context(spec=PartitionSpec(7, BY_CARRIER))),
    BadRequest(
        "a spec of other fields",
        Reason.SPEC_MISMATCH,
        _context(spec=PartitionSpec(0, BY_DAY), partition=1),
    ),
    BadRequest("another spec than said", Reason.SPEC_MISMATCH, _said(partition_spec_id=3)),
    BadRequest("wrong partition type", Reason.PARTITION_TYPE_MISMATCH, _other_partition_type),
    BadRequest("a newer format version", Reason.FORMAT_VERSION_MISMATCH, _newer_format),
    BadRequest(
        "outside the table",
        Reason.PATH_NOT_ALLOWED,
        _path("memory://warehouse/db/other/x-{attempt}.parquet"),
    ),
    BadRequest(
        "a sibling with our prefix",
        Reason.PATH_NOT_ALLOWED,
        _path("{location}2/x-{attempt}.parquet"),
    ),
    BadRequest("up and out", Reason.PATH_NOT_ALLOWED, _path("{location}/../x-{attempt}.parquet")),
    BadRequest(
        "no attempt in the name",
        Reason.PATH_WITHOUT_ATTEMPT,
        _path("{location}/data/00000.parquet"),
    ),
    BadRequest(
        "the attempt in the folder only",
        Reason.PATH_WITHOUT_ATTEMPT,
        _path("{location}/data/{attempt}/00000.parquet"),
    ),
    BadRequest("one path twice", Reason.PATH_REPEATED, _same_path_twice),
    BadRequest(
        "an existing entry",
        Reason.ENTRY_NOT_ADDED,
        _changed_entry(
            status=ManifestEntryStatus.EXISTING,
            snapshot_id=1,
            sequence_number=1,
            file_sequence_number=1,
        ),
    ),
    BadRequest(
        "a deletion",
        Reason.ENTRY_NOT_ADDED,
        _changed_entry(
            status=ManifestEntryStatus.DELETED,
            snapshot_id=1,
            sequence_number=1,
            file_sequence_number=1,
        ),
    ),
    BadRequest("a snapshot id", Reason.ENTRY_SNAPSHOT_ID_SET, _changed_entry(snapshot_id=5)),
    BadRequest(
        "a sequence number", Reason.ENTRY_SEQUENCE_NUMBER_SET, _changed_entry(sequence_number=5)
    ),
    BadRequest("a negative size", Reason.NEGATIVE_COUNT, _changed_file(file_size_in_bytes=-1)),
    *(
        BadRequest(f"a negative {name}", Reason.NEGATIVE_COUNT, _changed_file(**{name: {1: -1}}))
        for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
    ),
    BadRequest(
        "three bytes for a long", Reason.BOUND_MALFORMED, _changed_file(lower_bounds={1: b"abc"})
    ),
    BadRequest(
        "half a letter as a bound", Reason.BOUND_MALFORMED, _changed_file(upper_bounds={2: b"\xc3"})
    ),
    BadRequest(
        "a bound of no column", Reason.SCHEMA_MISMATCH, _changed_file(lower_bounds={77: b""})
    ),
    *(
        BadRequest(
            f"a column twice in its {name}", Reason.COLUMN_REPEATED, _column_twice(name, 7001, 7002)
        )
        for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
    ),
    *(
        BadRequest(
            f"a column twice in its {name}",
            Reason.COLUMN_REPEATED,
            _column_twice(name, b"12345678", b"87654321"),
        )
        for name in ("lower_bounds", "upper_bounds")
    ),
    *(
        BadRequest(
            f"split offsets {offsets}",
            Reason.SPLIT_OFFSETS_MALFORMED,
            _changed_file(split_offsets=offsets),
        )
        for offsets in ((-1,), (4, 3), (1_000,), (4, 2**40))
    ),
    BadRequest("equality ids", Reason.DELETE_FIELD_SET, _changed_file(equality_ids=(1,))),
    BadRequest(
        "a referenced data file", Reason.DELETE_FIELD_SET, _changed_file(referenced_data_file="x")
    ),
    BadRequest("too many files said", Reason.COUNT_MISMATCH, _said(added_files_count=2)),
    BadRequest("too few rows said", Reason.COUNT_MISMATCH, _said(added_rows_count=9)),
    BadRequest("a delete file", Reason.MANIFEST_CONTENT_MISMATCH, _delete_file),
    BadRequest("a truncated manifest", Reason.MANIFEST_TRUNCATED, _cut_manifest),
    BadRequest("not a manifest", Reason.MANIFEST_MALFORMED, _no_manifest),
    BadRequest("no schema", Reason.MANIFEST_MALFORMED, _header(schema=b"{")),
    BadRequest("an unknown codec", Reason.UNSUPPORTED, _header(**{"avro.codec": b"xz"})),
    BadRequest(
        "an unknown format version", Reason.MANIFEST_MALFORMED, _header(format_version=b"9")
    ),
    BadRequest("adopt-existing", Reason.PATH_NOT_ALLOWED, _changed_line(adopt_existing=True)),
    *(
        BadRequest(f"a filter {name}", Reason.FILTER_UNBOUND, _filtered(document))
        for name, document in {
            "of a column that is not there": {"type": "is-null", "term": "carier"},
            "of a column in other case": {"type": "is-null", "term": "Carrier"},
            "with text for a number": {"type": "eq", "term": "id", "value": "x"},
            "with an unknown transform": {
                "type": "is-null",
                "term": {"type": "transform", "transform": "sum", "term": "id"},
            },
        }.items()
    ),
    *(
        BadRequest(f"a filter {name}", Reason.REQUEST_MALFORMED, _filtered(document))
        for name, document in {
            "without a type": {"term": "carrier"},
            "of an unknown type": {"type": "like", "term": "carrier", "value": "A%"},
            "without its value": {"type": "eq", "term": "carrier"},
            "with null as its value": {"type": "eq", "term": "carrier", "value": None},
        }.items()
    ),
    BadRequest(
        "a filter of very many values",
        Reason.REQUEST_TOO_LARGE,
        _filtered({"type": "in", "term": "id", "values": list(range(20_000))}),
    ),
    BadRequest(
        "a manifest from elsewhere", Reason.PATH_NOT_ALLOWED, _named("memory://elsewhere/m.avro")
    ),
    BadRequest("`files` without a path", Reason.REQUEST_MALFORMED, _inline(**{"file-path": None})),
    BadRequest("`files` of an unknown spec", Reason.SPEC_UNKNOWN, _inline(**{"spec-id": 9})),
    BadRequest(
        "`files` that deletes",
        Reason.REQUEST_MALFORMED,
        _inline(content="position-deletes"),
    ),
    BadRequest(
        "`files` elsewhere",
        Reason.PATH_NOT_ALLOWED,
        _inline(**{"file-path": "memory://elsewhere/x.parquet"}),
    ),
    BadRequest("`files` with an unknown key", Reason.FILE_KEY_UNKNOWN, _inline(rows=1)),
    BadRequest(
        "`files` with an unknown key in a map",
        Reason.FILE_KEY_UNKNOWN,
        _inline(**{"value-counts": {"keys": [1], "values": [1], "columns": []}}),
    ),
    BadRequest("`files` with a row id", Reason.ROW_ID_SET, _inline(**{"first-row-id": 0})),
    BadRequest(
        "`files` with equality ids", Reason.DELETE_FIELD_SET, _inline(**{"equality-ids": [1]})
    ),
    BadRequest(
        "`files` with a referenced data file",
        Reason.DELETE_FIELD_SET,
        _inline(**{"referenced-data-file": "memory://warehouse/x"}),
    ),
    BadRequest(
        "`files` with a content offset", Reason.DELETE_FIELD_SET, _inline(**{"content-offset": 4})
    ),
    BadRequest(
        "`files` with a content size",
        Reason.DELETE_FIELD_SET,
        _inline(**{"content-size-in-bytes": 4}),
    ),
    BadRequest(
        "`files` with negative value counts",
        Reason.NEGATIVE_COUNT,
        _inline(**{"value-counts": {"keys": [1], "values": [-1]}}),
    ),
    *(
        BadRequest(
            f"`files` with split offsets {offsets}",
            Reason.SPLIT_OFFSETS_MALFORMED,
            _inline(**{"split-offsets": offsets}),
        )
        for offsets in ([-1], [4, 3], [1_000], [4, 2**40])
    ),
    BadRequest(
        "a file name of 256 bytes",
        Reason.FILE_NAME_TOO_LONG,
        _path("{location}/data/{attempt}-" + "x" * 219),
    ),
    BadRequest(
        "a manifest's name of 256 bytes in 131 characters",
        Reason.FILE_NAME_TOO_LONG,
        _named("{location}/metadata/" + "é" * 125 + "x.avro"),
    ),
    BadRequest("no format version", Reason.FORMAT_VERSION_MISMATCH, _without("format-version")),
    BadRequest(
        "`files` with a negative count", Reason.REQUEST_MALFORMED, _inline(**{"record-count": -1})
    ),
)

# Found when the manifests are read, or the catalog is asked.
ASKED = (
    BadRequest(
        "a manifest that is missing",
        Reason.MANIFEST_MISSING,
        _named("{location}/metadata/missing.avro"),
    ),
)
