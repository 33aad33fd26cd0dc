"""Commit requests as a client makes them: real manifests of files that no test opens."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from committer.iceberg.entry.data_file import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_manifest
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import partition_path
from committer.iceberg.values.locations import data_file_location
from committer.ports.pointer_swap import LoadedTable
from committer.request.attempt import attempt_of, timed_nonce
from committer.request.commit_request import CommitRequest, Fingerprint, Producer
from committer.request.request_format import (
    EncodedRequest,
    InlineManifest,
    inline_references,
    seal_request,
)
from committer.request.transaction import TableName

SYNC = bytes(range(16))
# Of a large request.
LARGE_FILES = 400


def build_file(
    metadata: TableMetadata,
    attempt: UUID,
    *,
    number: int = 0,
    partition: tuple[object, ...] = (),
    record_count: int = 10,
) -> DataFile:
    """Build a data file of the table's default spec with metrics of one column."""
    folder = partition_path(metadata.default_spec, metadata.current_schema, partition)
    name = f"{number:05d}-{attempt}.parquet"
    return DataFile(
        file_path=data_file_location(metadata.location, metadata.properties, folder, name),
        partition=partition,
        record_count=record_count,
        file_size_in_bytes=1_000 + number,
        value_counts={1: record_count},
        null_value_counts={1: 0},
        lower_bounds={1: (1).to_bytes(8, "little")},
        upper_bounds={1: record_count.to_bytes(8, "little")},
    )


def build_manifest(metadata: TableMetadata, files: Sequence[DataFile]) -> InlineManifest:
    """Encode the files, of one content, as plain additions, as a producer does."""
    (content,) = {file.manifest_content for file in files} or {ManifestContent.DATA}
    context = ManifestContext(
        metadata.format_version, metadata.current_schema, metadata.default_spec, content
    )
    encoded = encode_manifest(
        (ManifestEntry(ManifestEntryStatus.ADDED, None, None, None, file) for file in files),
        context,
        sync=SYNC,
    )
    return InlineManifest(
        encoded.content,
        "data" if content is ManifestContent.DATA else "deletes",
        metadata.default_spec_id,
        encoded.added_files_count,
        encoded.added_rows_count,
    )


def build_line(
    table: LoadedTable,
    *,
    producer: str = "query-1",
    name: str | None = None,
    epoch: int = 0,
    nonce: UUID | None = None,
    fingerprint: str | None = None,
    sequential: bool = True,
    one_shot: bool = False,
    branch: str = "main",
    create_branch: bool = False,
    catalog: str = "frazil",
    published_at_ms: int = 1_800_000_000_000,
) -> CommitRequest:
    """Build a request's line before its manifests are added. It names a path until it is sealed."""
    table_uuid, nonce = (
        table.metadata.require_uuid(),
        nonce or (timed_nonce(published_at_ms, uuid4()) if one_shot else uuid4()),
    )
    return CommitRequest(
        catalog=catalog,
        table=TableName(namespace=table.identifier.namespace, name=table.identifier.name),
        table_uuid=table_uuid,
        branch=branch,
        create_branch=create_branch,
        producer=Producer(
            id=producer, name=name, sequential=sequential and not one_shot, one_shot=one_shot
        ),
        epoch=epoch,
        nonce=nonce,
        attempt=attempt_of(table_uuid, branch, producer, epoch, nonce),
        fingerprint=Fingerprint(
            kind="spark-offsets", value=f"offsets-{epoch}" if fingerprint is None else fingerprint
        ),
        published_at_ms=published_at_ms,
        files=({},),
    )


def build_request(
    table: LoadedTable,
    *,
    files_count: int = 1,
    record_count: int = 10,
    partition: tuple[object, ...] = (),
    **line: object,
) -> EncodedRequest:
    """Build a complete request; keyword arguments as `build_line`."""
    request = build_line(table, **line)  # type: ignore[arg-type]  # passed through
    files = [
        build_file(
            table.metadata,
            request.attempt,
            number=number,
            partition=partition,
            record_count=record_count,
        )
        for number in range(files_count)
    ]
    return seal(request, [build_manifest(table.metadata, files)])


def changed_line(line: CommitRequest, **changes: object) -> CommitRequest:
    """Return the line with other fields, valid or not, and the attempt that follows from them."""
    changed = line.model_copy(update=changes)
    return changed.model_copy(update={"attempt": changed.expected_attempt, **changes})


def seal(request: CommitRequest, manifests: Sequence[InlineManifest]) -> EncodedRequest:
    """Seal without the placeholder that made the bare line valid."""
    named = (*request.manifests, *inline_references(manifests))
    return seal_request(request.model_copy(update={"files": (), "manifests": named}), manifests)


def sealed_manifests(sealed: EncodedRequest) -> list[InlineManifest]:
    """Return the manifests that a sealed request carries, to seal them with another line."""
    return [
        InlineManifest(
            bytes(sealed.manifest(one)),
            one.content,
            one.partition_spec_id,
            one.added_files_count,
            one.added_rows_count,
        )
        for one in sealed.request.manifests
        if one.offset is not None
    ]


def ordered(sealed: EncodedRequest) -> EncodedRequest:
    """Return the request as one of an ordered producer."""
    producer = sealed.request.producer.model_copy(update={"ordered": True})
    line = sealed.request.model_copy(update={"producer": producer, "manifests": ()})
    return seal(line, sealed_manifests(sealed))


def large(table: LoadedTable, producer: str, **more: object) -> EncodedRequest:
    """Build a request with so many files that no doorbell carries them."""
    line = build_line(table, producer=producer, **more)  # type: ignore[arg-type]  # passed through
    metadata = table.metadata
    files = [build_file(metadata, line.attempt, number=number) for number in range(LARGE_FILES)]
    context = ManifestContext(
        metadata.format_version, metadata.current_schema, metadata.default_spec
    )
    entries = (ManifestEntry(ManifestEntryStatus.ADDED, None, None, None, file) for file in files)
    content = encode_manifest(entries, context, codec="null", sync=SYNC).content
    return seal(line, [InlineManifest(content, "data", 0, LARGE_FILES, 10 * LARGE_FILES)])
