"""Recognizes a file by its content, and describes it: as JSON lines, and as tables for people.

Pure: bytes in, descriptions out. Every JSON line has a `kind`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace

import orjson

from committer.cli.output.describe import METRIC_HEADERS, Description, metric_rows, spec_text
from committer.cli.output.printing import time_text
from committer.cli.output.view import Facts, Rows, View
from committer.cli.views.kind_views import kind_view
from committer.cli.views.metadata_view import metadata_facts, schema_rows, snapshot_rows
from committer.cli.views.needs_report import named_files, needs_facts
from committer.errors import FrazilError, InvalidMetadataError, InvalidRequestError
from committer.iceberg.avro.container import read_header
from committer.iceberg.deletes.puffin import decode_puffin_footer
from committer.iceberg.inspection.file_rows import entry_row, file_row, found_entries
from committer.iceberg.inspection.manifest_files import manifest_row
from committer.iceberg.manifest.manifest import DecodedManifest, decode_manifest
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.iceberg.metadata.metadata_gzip import unzip_metadata
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.request.commit_request import ManifestReference
from committer.request.request_format import LINE_BYTES_MAX, EncodedRequest, read_request
from committer.request.request_model import Document
from committer.storage.inbox.inbox import QuarantineRecord, read_quarantined

_AVRO, _PUFFIN, _GZIP, _PARQUET = b"Obj\x01", b"PFA1", b"\x1f\x8b", b"PAR1"


@dataclass(slots=True)
class Inspection:
    """The findings. `problem`: why the file is not as it should be, though it could be shown."""

    lines: list[Description] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    problem: str | None = None

    def add(self, other: Inspection) -> None:
        self.lines += other.lines
        self.views += other.views
        self.problem = self.problem or other.problem


def inspect_content(content: bytes) -> Inspection:
    """Recognize a file and describe its content.
    Errors: `InvalidMetadataError`, `UnsupportedError`.
    """
    if content.startswith(_AVRO):
        return _inspect_avro(content)
    if content.startswith(_PUFFIN):
        return _inspect_puffin(content)
    if content.startswith(_GZIP):
        return _inspect_metadata(unzip_metadata(content))
    if content.lstrip()[:1] == b"{":
        return _inspect_json(content)
    if content.startswith(_PARQUET):
        raise InvalidMetadataError("a Parquet file: Iceberg data, not metadata")
    raise InvalidMetadataError(
        "not an Iceberg metadata file or commit request: expected table metadata (JSON, perhaps"
        " gzipped), a manifest list, a manifest, a Puffin file or a commit request"
    )


def _inspect_json(content: bytes) -> Inspection:
    line = content[: LINE_BYTES_MAX + 1].partition(b"\n")[0]
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        # Metadata may be spread over many lines, a request's line may not.
        return _inspect_metadata(content)
    if "quarantined_at_ms" in document:
        return _inspect_quarantined(content)
    if "request-version" in document:
        return inspect_request(content)
    return _inspect_metadata(content)


# --- Table metadata ------------------------------------------------------------------------------


def _inspect_metadata(content: bytes) -> Inspection:
    metadata = parse_table_metadata(content)
    views: list[View] = [
        Facts("table metadata", metadata_facts(metadata)),
        schema_rows(metadata.current_schema),
    ]
    if metadata.snapshots:
        views.append(snapshot_rows(metadata))
    if metadata.properties:
        views.append(Facts("properties", dict(metadata.properties)))
    return Inspection([{"kind": "table-metadata", **orjson.loads(content)}], views)


# --- Avro ----------------------------------------------------------------------------------------


def _inspect_avro(content: bytes) -> Inspection:
    header = read_header(content)
    if "partition-spec" in header.metadata:
        return _inspect_manifest(content, {})
    if b"manifest_path" in header.metadata["avro.schema"]:
        return _inspect_manifest_list(content)
    raise InvalidMetadataError("an Avro file, but neither a manifest nor a manifest list")


def _inspect_manifest_list(content: bytes) -> Inspection:
    decoded = decode_manifest_list(content)
    header = {
        key: text
        for key, text in decoded.header.items()
        if key not in ("avro.schema", "iceberg.schema")
    }
    rows = list(map(manifest_row, decoded.rows))
    return Inspection(
        [
            {"kind": "manifest-list", "header": header},
            *({"kind": "manifest-file", **row} for row in rows),
        ],
        [Facts("manifest list", header), kind_view("manifests", rows)],
    )


def _inspect_manifest(content: bytes, about: Description) -> Inspection:
    decoded = decode_manifest(content)
    facts: Description = {
        "format_version": decoded.format_version,
        "content": decoded.content.name.lower(),
        "schema_id": decoded.schema.schema_id,
        "partition_spec_id": decoded.spec.spec_id,
        "partition_spec": spec_text(decoded.spec, decoded.schema),
        "entries": len(decoded.entries),
        **about,
    }
    found = list(found_entries(decoded, decoded.schema))
    # Each entry, with the metrics of its file.
    lines = [{"kind": "manifest-entry", **entry_row(one), "file": file_row(one)} for one in found]
    shown = kind_view("entries", map(entry_row, found))
    views: list[View] = [Facts("manifest", facts), shown, *_metrics(decoded)]
    return Inspection([{"kind": "manifest", **facts}, *lines], views)


def _metrics(decoded: DecodedManifest) -> Iterator[View]:
    for entry in decoded.entries:
        if rows := metric_rows(entry.data_file, decoded.schema):
            name = entry.data_file.file_path.rpartition("/")[2]
            yield Rows(f"columns of {name}", METRIC_HEADERS, rows, is_detail=True)


# --- Puffin --------------------------------------------------------------------------------------


def _inspect_puffin(content: bytes) -> Inspection:
    footer = decode_puffin_footer(content)
    blobs = [asdict(blob) for blob in footer.blobs]
    properties = dict(footer.properties)
    headers = ("type", "fields", "snapshot_id", "sequence_number", "offset", "length")
    rows = [tuple(blob[name] for name in headers) for blob in blobs]
    return Inspection(
        [
            {"kind": "puffin", "properties": properties},
            *({"kind": "puffin-blob", **blob} for blob in blobs),
        ],
        [Facts("Puffin file", properties), Rows("blobs", headers, rows)],
    )


# --- Requests ------------------------------------------------------------------------------------


def _inspect_quarantined(content: bytes) -> Inspection:
    record, request = read_quarantined(content, "this file")
    line = {"kind": "quarantine-record", **record.model_dump()}
    if record.is_told_only:
        line["kept_until_ms"] = record.kept_until_ms
        return Inspection([line], [Facts("answer, no request is kept", record_facts(record))])
    found = Inspection([line], [Facts("quarantined", record_facts(record))])
    if not record.by_reference:
        found.add(inspect_request(request))
    return found


def record_facts(record: QuarantineRecord) -> Description:
    return {
        "reason": record.reason,
        "message": record.message,
        "answered" if record.is_told_only else "quarantined": time_text(record.quarantined_at_ms),
        **({} if record.kept_until_ms is None else {"kept until": time_text(record.kept_until_ms)}),
        "key": record.key,
    }


def inspect_request(content: bytes) -> Inspection:
    """Describe a commit request: its line, then each manifest that it carries."""
    try:
        sealed = read_request(content)
    except InvalidRequestError as error:
        return _inspect_broken_request(content, f"{error.reason}: {error}")
    document = orjson.loads(content[: sealed.body])
    found = Inspection([{"kind": "commit-request", **document}], [_request_facts(sealed)])
    if sealed.request.files:
        found.views.append(_listed_files(sealed.request.files))
    if (named := named_files(sealed.request)) is not None:
        found.views.append(named)
    for number, reference in enumerate(sealed.request.manifests):
        if reference.offset is not None:
            found.add(_inspect_carried(sealed, number, reference))
    return found


def _inspect_broken_request(content: bytes, problem: str) -> Inspection:
    """Describe a broken request as far as possible: its line, if that is JSON."""
    try:
        document = orjson.loads(content.partition(b"\n")[0])
    except orjson.JSONDecodeError:
        document = {}
    line = {"kind": "commit-request", "problem": problem, **document}
    return Inspection([line], [Facts("broken commit request", line)], problem)


def _request_facts(sealed: EncodedRequest) -> Facts:
    request = sealed.request
    facts: Description = {
        "table": request.identifier,
        "table uuid": request.table_uuid,
        "catalog": request.catalog,
        "branch": request.branch,
        "producer": request.producer.id,
        "epoch": request.epoch,
        "attempt": request.attempt,
        "fingerprint": f"{request.fingerprint.kind} {request.fingerprint.value}",
        "published": time_text(request.published_at_ms),
        "operation": request.operation,
        "manifests": len(request.manifests),
        "files": sum(one.added_files_count for one in request.manifests) + len(request.files),
        "rows": sum(one.added_rows_count for one in request.manifests)
        + sum(_row_count(document) for document in request.files),
        **needs_facts(request),
        "key": request.inbox_key,
    }
    return Facts("commit request", facts)


def _listed_files(files: Sequence[Document]) -> Rows:
    headers = ("content", "records", "bytes", "path")
    keys = ("content", "record-count", "file-size-in-bytes", "file-path")
    return Rows("files", headers, [tuple(map(file.get, keys)) for file in files])


def _row_count(file: Document) -> int:
    """Return the record count of a file that is listed as JSON; 0 if it does not say a number."""
    count = file.get("record-count")
    return count if isinstance(count, int) else 0


def _inspect_carried(
    sealed: EncodedRequest, number: int, reference: ManifestReference
) -> Inspection:
    try:
        return _inspect_manifest(bytes(sealed.manifest(reference)), {"manifest": number})
    except FrazilError as error:
        problem = f"manifest {number}: {error}"
        line: Description = {"kind": "manifest", "manifest": number, "problem": problem}
        return Inspection([line], [Facts("broken manifest", line)], problem)


def without_details(views: Sequence[View]) -> list[View]:
    """Return the views that do not repeat for each file."""
    return [view for view in views if not (isinstance(view, Rows) and view.is_detail)]


def shortened(views: Sequence[View], rows_max: int) -> list[View]:
    """Cut tables after so many rows, and say in their titles how many are left out."""
    return [_shortened(view, rows_max) if isinstance(view, Rows) else view for view in views]


def _shortened(view: Rows, rows_max: int) -> Rows:
    count = len(view.rows)
    if count <= rows_max:
        return view
    title = f"{view.title}: the first {rows_max} of {count}, {count - rows_max} more with --json"
    return replace(view, title=title, rows=view.rows[:rows_max])
