"""A step as what a client of Frazil sends: a commit request, with its files and its needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal
from uuid import UUID

from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import encode_deletion_vectors
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_manifest
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.values.locations import data_file_location
from committer.ports.pointer_swap import LoadedTable
from committer.request.commit_request import CommitRequest
from committer.request.request_format import EncodedRequest, InlineManifest
from tests.conformance.operations.case import Step
from tests.support.builders.request_builders import SYNC, build_line, seal
from tests.support.iceberg.manifest_builders import added_entry

_DATA_BYTES, _DELETES_BYTES = 1_000, 500
_RECORDS = 10
_OPERATIONS = {"rewrite": "rewrite-files"}


class Client:
    """Sends the steps of a case, and knows its files: by the names that the steps give them."""

    def __init__(self) -> None:
        self.files: dict[str, DataFile] = {}
        # The Puffin files that it has written.
        self.written: dict[str, bytes] = {}
        self._epoch = 0

    def request(self, table: LoadedTable, step: Step, start: Snapshot | None) -> EncodedRequest:
        """Return the request of a step that starts from this snapshot."""
        line = build_line(table, epoch=self._epoch, branch=step.get("branch", "main"))
        self._epoch += 1
        changed = self._line(line, step, start)
        make = _Files(self, table.metadata, line.attempt)
        return seal(changed, make.manifests(step))

    def alter(self, table: LoadedTable, changes: Iterable[Mapping[str, Any]]) -> EncodedRequest:
        """Return the request of a change without files."""
        line = build_line(table, epoch=self._epoch).model_dump(by_alias=True, exclude={"files"})
        self._epoch += 1
        asked = {**line, "operation": "alter", "changes": list(changes)}
        return seal(CommitRequest.model_validate(asked), [])

    def _line(self, line: CommitRequest, step: Step, start: Snapshot | None) -> CommitRequest:
        asked = line.model_dump(by_alias=True, exclude_unset=True)
        if not step.get("add") and not step.get("add-deletes"):
            # Stands for manifests until the request is sealed.
            del asked["files"]
        asked["operation"] = _OPERATIONS.get(step["do"], step["do"])
        asked["needs"] = {
            key: value for key, value in self._needs(step, start).items() if value is not None
        }
        if "stage" in step:
            asked |= {"stage-only": True, "summary": {"wap.id": step["stage"]}}
        return CommitRequest.model_validate(asked)

    def _needs(self, step: Step, start: Snapshot | None) -> dict[str, Any]:
        return {
            "base-snapshot-id": start.snapshot_id if start else None,
            "base-sequence-number": start.sequence_number if start else None,
            "row-filter": step.get("filter"),
            "added-files-match-filter": step.get("within-filter"),
            "conflict-filter": step.get("conflict-filter"),
            "isolation-level": step.get("level"),
            "removed-data-files": [self.path(name) for name in step.get("remove", ())],
            "removed-delete-files": [self._removed(one) for one in step.get("remove-deletes", ())],
            "referenced-data-files": [self.path(name) for name in step.get("exist", ())],
            "updates-rows": step.get("update"),
            "append-only": step.get("append-only"),
            "data-sequence-number": _data_number(step),
            "source-snapshot-id": step.get("source"),
        }

    def path(self, name: str) -> str:
        """Return the path of a file; of one that the table never had, if the name is unknown."""
        known = self.files.get(name)
        return known.file_path if known else f"memory://warehouse/db/cases/data/{name}.parquet"

    def _removed(self, name: str) -> dict[str, Any]:
        file = self.files[name]
        named: dict[str, Any] = {"file-path": file.file_path}
        if file.is_deletion_vector:
            named["content-offset"] = file.content_offset
            named["content-size-in-bytes"] = file.content_size_in_bytes
        return named


def _data_number(step: Step) -> int | None:
    """Return the data sequence number of a rewrite: of its data, else of its delete files."""
    numbers = {one["number"] for one in step.get("add-deletes", ()) if "number" in one}
    return step.get("number", next(iter(numbers), None))


class _Files:
    """Makes the files of one request."""

    def __init__(self, client: Client, metadata: TableMetadata, attempt: UUID) -> None:
        self._client, self._metadata, self._attempt = client, metadata, attempt

    def manifests(self, step: Step) -> list[InlineManifest]:
        """Return a manifest for each spec of the step's data files, and of its delete files."""
        data = [self._data_file(one) for one in step.get("add", ())]
        deletes = [self._delete_file(one) for one in step.get("add-deletes", ())]
        return [*self._encoded(data, "data"), *self._encoded(deletes, "deletes")]

    def _encoded(
        self, files: Iterable[DataFile], kind: Literal["data", "deletes"]
    ) -> Iterable[InlineManifest]:
        by_spec: dict[int, list[DataFile]] = defaultdict(list)
        for file in files:
            by_spec[file.spec_id].append(file)
        metadata = self._metadata
        # Version 1 has no delete manifests: a client can only have made one of version 2.
        version = max(2, metadata.format_version) if kind == "deletes" else metadata.format_version
        for spec_id, grouped in by_spec.items():
            spec = metadata.spec_by_id(spec_id)
            content = grouped[0].manifest_content
            context = ManifestContext(version, metadata.current_schema, spec, content)
            encoded = encode_manifest(map(added_entry, grouped), context, sync=SYNC)
            counts = (encoded.added_files_count, encoded.added_rows_count)
            yield InlineManifest(encoded.content, kind, spec_id, *counts)

    def _data_file(self, one: Step) -> DataFile:
        records = one.get("records", _RECORDS)
        file = DataFile(
            file_path=self._location(one, "parquet"),
            partition=self._partition(one),
            spec_id=self._spec(one).spec_id,
            record_count=records,
            file_size_in_bytes=_DATA_BYTES,
            **_metrics(one, records),
        )
        return self._known(one, file)

    def _delete_file(self, one: Step) -> DataFile:
        if one["kind"] == "dv":
            return self._known(one, self._vector(one))
        is_equality = one["kind"] == "equality"
        contents = (DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES)
        file = DataFile(
            content=contents[is_equality],
            file_path=self._location(one, "parquet"),
            partition=self._partition(one),
            spec_id=self._spec(one).spec_id,
            record_count=1,
            file_size_in_bytes=_DELETES_BYTES,
            equality_ids=(1,) if is_equality else None,
            referenced_data_file=self._client.path(one["of"]) if "of" in one else None,
            **_metrics(one, 1),
        )
        return self._known(one, file)

    def _vector(self, one: Step) -> DataFile:
        target = self._client.files.get(one["of"]) or self._data_file({**one, "name": one["of"]})
        path = self._location(one, "puffin")
        pair = (target, DeletionVector(one["positions"]))
        encoded = encode_deletion_vectors([pair], file_path=path, created_by="a client")
        self._client.written[path] = encoded.content
        return encoded.delete_files[0]

    def _known(self, one: Step, file: DataFile) -> DataFile:
        self._client.files[one["name"]] = file
        return file

    def _location(self, one: Step, suffix: str) -> str:
        metadata = self._metadata
        name = f"{one['name']}-{self._attempt}.{suffix}"
        return data_file_location(metadata.location, metadata.properties, one["at"], name)

    def _spec(self, one: Step) -> PartitionSpec:
        return self._metadata.spec_by_id(one.get("spec", self._metadata.default_spec_id))

    def _partition(self, one: Step) -> tuple[object, ...]:
        values = dict(part.split("=") for part in one["at"].split("/") if part)
        fields = self._spec(one).fields
        return tuple(
            int(values[field.name]) if field.name == "id_bucket" else values.get(field.name)
            for field in fields
        )


def _metrics(one: Step, records: int) -> dict[str, Any]:
    if "ids" not in one:
        return {}
    lower, upper = ({1: value.to_bytes(8, "little", signed=True)} for value in one["ids"])
    return {
        "value_counts": {1: records},
        "null_value_counts": {1: 0},
        "lower_bounds": lower,
        "upper_bounds": upper,
    }
