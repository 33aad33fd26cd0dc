"""The files that a client has written for one epoch, and the manifests of its request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from uuid import UUID

from committer.iceberg.entry.data_file import DataFile, ManifestContent
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_additions
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema, print_schema
from committer.ledger_entry import MAIN
from committer.request.alterations import UnionByName
from committer.request.attempt import attempt_of
from committer.request.commit_request import Fingerprint, Producer
from committer.request.needs import Needs, Operation
from committer.request.request_format import InlineManifest
from committer.request.table_identifier import TableIdentifier
from committer.request.transaction import Transaction

_NO_NEEDS = Needs()


@dataclass(frozen=True, slots=True)
class SeenTable:
    """The table that files were written for, as it was at `seen_ms` (Unix milliseconds)."""

    table_uuid: UUID
    format_version: int
    schemas: Sequence[Schema]
    partition_specs: Sequence[PartitionSpec]
    seen_ms: int


# A table that requests are made for.
RequestedTable = TableMetadata | SeenTable


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenEpoch:
    """The files that one attempt wrote for one epoch, and the table they were written for.

    `operation`, `needs`, `branch`, `summary`, `stage_only`, `create_branch`, `adopt_existing`,
    `transaction`: as in `CommitRequest`. `files` are data and delete files. `may_repeat`: only the
    publisher keeps the same attempt from publishing a second, different write (two writes in one
    `foreachBatch`).
    `union`: the schema of the files where the table lacks columns of it, which it gets by the swap
    that lists the files; then `schema_id` is that of the schema which it was made from.
    `seen`: the table when the write was planned, which spares the publisher a look at it.
    """

    identifier: TableIdentifier
    table_uuid: UUID
    schema_id: int
    producer: Producer
    epoch: int
    nonce: UUID
    fingerprint: Fingerprint
    files: Sequence[DataFile]
    operation: Operation = "append"
    needs: Needs = _NO_NEEDS
    branch: str = MAIN
    summary: Mapping[str, str] = field(default_factory=dict)
    stage_only: bool = False
    create_branch: bool = False
    adopt_existing: bool = False
    transaction: Transaction | None = None
    may_repeat: bool = False
    union: Schema | None = None
    seen: SeenTable | None = None

    @property
    def attempt(self) -> UUID:
        """The attempt, which the names of the files carry."""
        return attempt_of(self.table_uuid, self.branch, self.producer.id, self.epoch, self.nonce)


def changes_of(written: WrittenEpoch) -> tuple[UnionByName, ...]:
    """Return the change of the table that the files need."""
    if written.union is None:
        return ()
    document = {
        "action": "union-by-name",
        "schema": print_schema(written.union),
        "with-ids": True,
        "case-sensitive": False,
    }
    return (UnionByName.model_validate(document),)


def encode_manifests(table: RequestedTable, written: WrittenEpoch) -> list[InlineManifest]:
    """Encode one manifest per partition spec for data files, and one for delete files.
    Equal files give equal bytes, so a repeat is recognized."""
    schema = written.union or next(
        each for each in table.schemas if each.schema_id == written.schema_id
    )
    specs = {spec.spec_id: spec for spec in table.partition_specs}
    manifests = []
    for (content, spec_id), files in groupby(sorted(written.files, key=_order), key=_manifest_of):
        context = ManifestContext(table.format_version, schema, specs[spec_id], content)
        encoded = encode_additions(files, context, sync=_sync(written, content, spec_id))
        manifests.append(
            InlineManifest(
                encoded.content,
                "data" if content is ManifestContent.DATA else "deletes",
                spec_id,
                encoded.added_files_count,
                encoded.added_rows_count,
            )
        )
    return manifests


def _manifest_of(file: DataFile) -> tuple[ManifestContent, int]:
    return file.manifest_content, file.spec_id


def _order(file: DataFile) -> tuple[object, ...]:
    """Vectors of one Puffin file have one path, and differ in their places."""
    return (*_manifest_of(file), file.file_path, file.content_offset or 0)


def _sync(written: WrittenEpoch, content: ManifestContent, spec_id: int) -> bytes:
    text = f"{written.attempt}/{content.name}/{spec_id}"
    return blake2b(text.encode(), digest_size=16).digest()
