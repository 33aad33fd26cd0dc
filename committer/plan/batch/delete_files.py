"""Checks delete files of a request that their manifest alone does not tell to be right: against the
table's format version and columns, and against one another.

Whether the data files that they name are live is asked when their turn comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from committer.errors import InvalidRequestError
from committer.iceberg.entry.data_file import DataFile, is_equality_delete_file
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import StructType
from committer.plan.batch.data_locations import PATH_SHOWN_MAX
from committer.plan.batch.submitted_manifest import CheckedManifest
from committer.reason import Reason

# Length, magic number, count of bitmaps, checksum: what a vector without positions has.
_VECTOR_BYTES_MIN = 20


@dataclass(frozen=True, slots=True)
class DeleteFileCheck:
    """Of one table. Errors: `InvalidRequestError` naming the delete file."""

    format_version: int
    schemas: Sequence[Schema]

    def check(self, manifests: Iterable[CheckedManifest]) -> None:
        vectors: set[str] = set()
        places: set[tuple[str, int | None]] = set()
        for manifest in manifests:
            for file in manifest.walked.delete_files:
                self._check_file(file)
                if file.is_deletion_vector:
                    _check_alone(file, vectors, places)

    def _check_file(self, file: DataFile) -> None:
        if is_equality_delete_file(file):
            self._check_equality(file)
        elif file.is_deletion_vector:
            _check_vector(file)
        elif self.format_version > 2:
            raise _mismatch(
                file, "a position delete file, and format version 3 takes deletion vectors only"
            )
        if not file.is_deletion_vector:
            _check_no_place(file)

    def _check_equality(self, file: DataFile) -> None:
        ids = file.equality_ids or ()
        if len(set(ids)) != len(ids):
            raise _mismatch(file, "an equality delete file that names a column twice")
        unknown = [one for one in ids if not any(_is_comparable(one, it) for it in self.schemas)]
        if unknown:
            raise InvalidRequestError(
                Reason.SCHEMA_MISMATCH,
                f"{_named(file)} compares field {unknown[0]}, expected a primitive column of the"
                " table that is not inside a list or map",
            )
        if file.referenced_data_file is not None:
            raise _mismatch(file, "an equality delete file that names a data file")


def _is_comparable(field_id: int, schema: Schema) -> bool:
    field = schema.field(field_id)
    if field is None or not field.field_type.is_primitive:
        return False
    return all(isinstance(one.field_type, StructType) for one in schema.ancestors(field_id))


def _check_vector(file: DataFile) -> None:
    offset, size = file.content_offset or 0, file.content_size_in_bytes or 0
    if size < _VECTOR_BYTES_MIN or offset + size > file.file_size_in_bytes:
        raise _mismatch(
            file,
            f"a deletion vector of {size} bytes at {offset} in a file of"
            f" {file.file_size_in_bytes} bytes",
        )
    if not file.record_count:
        raise _mismatch(file, "a deletion vector without a position")
    if file.equality_ids:
        raise _mismatch(file, "a deletion vector with equality ids")


def _check_no_place(file: DataFile) -> None:
    if file.content_offset is not None or file.content_size_in_bytes is not None:
        raise _mismatch(file, "a delete file with a place in it, which only deletion vectors have")


def _check_alone(file: DataFile, vectors: set[str], places: set[tuple[str, int | None]]) -> None:
    """Refuse a second vector of one data file, and one place that two vectors share."""
    named, place = file.referenced_data_file or "", (file.file_path, file.content_offset)
    if named in vectors:
        raise InvalidRequestError(
            Reason.VECTOR_REPEATED,
            f"data file `{named[:PATH_SHOWN_MAX]}` has two deletion vectors in this request,"
            " expected one with the positions of both",
        )
    if place in places:
        raise InvalidRequestError(
            Reason.VECTOR_REPEATED, f"{_named(file)} lists two deletion vectors at one offset"
        )
    vectors.add(named)
    places.add(place)


def _mismatch(file: DataFile, found: str) -> InvalidRequestError:
    return InvalidRequestError(
        Reason.MANIFEST_CONTENT_MISMATCH, f"{_named(file)} is listed as {found}"
    )


def _named(file: DataFile) -> str:
    return f"delete file `{file.file_path[:PATH_SHOWN_MAX]}`"
