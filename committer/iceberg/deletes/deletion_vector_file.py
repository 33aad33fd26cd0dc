"""Puffin files of deletion vectors, and the delete files that manifests track in them.

One Puffin file holds the vectors of many data files; each has a delete file of its own.
Source: the specification, "Deletion Vectors"; the Puffin specification;
docs/reference/iceberg-notes.md 6.7.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from committer.errors import InvalidMetadataError, InvariantError
from committer.iceberg.deletes.deletion_vector import (
    DeletionVector,
    decode_deletion_vector,
    encode_deletion_vector,
)
from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.deletes.puffin import Blob, BlobMetadata, encode_puffin
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.schema.metadata_columns import ROW_POSITION

DELETION_VECTOR_TYPE = "deletion-vector-v1"
# Neither is known yet when the file is written.
_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class EncodedVectors:
    """A Puffin file's bytes, and a delete file for each vector, in the order given."""

    content: bytes
    delete_files: tuple[DataFile, ...]


def encode_deletion_vectors(
    vectors: Iterable[tuple[DataFile, DeletionVector]], *, file_path: str, created_by: str
) -> EncodedVectors:
    """Write the vectors of these data files into one Puffin file that will lie at `file_path`.

    A vector must hold all positions that were deleted before too: it replaces `superseded_deletes`.
    Errors: `InvariantError` for two vectors of one data file, or one without positions.
    """
    pairs = tuple(vectors)
    for file, vector in pairs:
        if not vector.cardinality:
            raise InvariantError(f"{file.file_path}: a deletion vector without positions")
    if len({file.file_path for file, _ in pairs}) < len(pairs):
        raise InvariantError(f"{file_path}: two deletion vectors of one data file")
    puffin = encode_puffin(
        (_blob(file, vector) for file, vector in pairs), properties={"created-by": created_by}
    )
    return EncodedVectors(
        puffin.content,
        tuple(
            _delete_file(file, vector, blob, file_path, len(puffin.content))
            for (file, vector), blob in zip(pairs, puffin.blobs, strict=True)
        ),
    )


def _blob(file: DataFile, vector: DeletionVector) -> Blob:
    return Blob(
        type=DELETION_VECTOR_TYPE,
        fields=(ROW_POSITION.field_id,),
        snapshot_id=_UNKNOWN,
        sequence_number=_UNKNOWN,
        content=encode_deletion_vector(vector),
        properties={
            "referenced-data-file": file.file_path,
            "cardinality": str(vector.cardinality),
        },
    )


def _delete_file(
    file: DataFile, vector: DeletionVector, blob: BlobMetadata, file_path: str, size: int
) -> DataFile:
    return DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=file_path,
        file_format="PUFFIN",
        partition=file.partition,
        spec_id=file.spec_id,
        record_count=vector.cardinality,
        file_size_in_bytes=size,
        referenced_data_file=file.file_path,
        content_offset=blob.offset,
        content_size_in_bytes=blob.length,
    )


def vector_range(file: DataFile) -> tuple[int, int]:
    """Return offset and length in bytes of a delete file's vector, for a ranged read.

    Errors: `InvalidMetadataError` for a delete file that is no deletion vector, or has no place.
    """
    offset, length = file.content_offset, file.content_size_in_bytes
    if not file.is_deletion_vector or offset is None or length is None:
        raise InvalidMetadataError(f"{file.file_path}: expected a deletion vector with its place")
    if offset < 0 or length < 0 or offset + length > file.file_size_in_bytes:
        raise InvalidMetadataError(
            f"{file.file_path}: a deletion vector of {length} bytes at {offset}, in a file of"
            f" {file.file_size_in_bytes}"
        )
    return offset, length


def decode_vector_of(file: DataFile, blob: bytes | memoryview) -> DeletionVector:
    """Read the vector of a delete file from the bytes of its `vector_range`.

    Errors: `InvalidMetadataError` naming file and place, also if it has another cardinality.
    """
    offset, length = vector_range(file)
    where = f"{file.file_path}: the deletion vector at {offset}"
    if len(blob) != length:
        raise InvalidMetadataError(f"{where}: {len(blob)} bytes, expected {length}")
    return decode_deletion_vector(blob, cardinality=file.record_count, where=where)


def superseded_deletes(deletes: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """Return those deletes of one data file that a new vector of it replaces.

    That is its old vector, and position delete files of it alone. Others stay until every data file
    that they are for has a vector: readers ignore them where there is one.
    """
    return tuple(file for file in deletes if referenced_data_file(file) is not None)
