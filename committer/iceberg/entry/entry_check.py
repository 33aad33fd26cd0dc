"""Checks decoded manifest entries, one by one: whether a producer may add them.

Source: the specification, "Manifests"; docs/reference/iceberg-notes.md 6.6, 6.7, 6.8.
"""

from __future__ import annotations

from committer.errors import InvalidRequestError
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.schema.bound_forms import ANY_BOUNDS, BoundForms
from committer.reason import Reason

FILE_FORMATS = ("PARQUET", "ORC", "AVRO")


def check_addition(
    entry: ManifestEntry,
    content: ManifestContent,
    format_version: int,
    forms: BoundForms = ANY_BOUNDS,
) -> None:
    """Refuse what is not an addition with everything left to inherit.

    Errors: `InvalidRequestError` with the reason.
    """
    if entry.status != ManifestEntryStatus.ADDED:
        raise _refused(Reason.ENTRY_NOT_ADDED, f"status {entry.status.name}, expected ADDED")
    if entry.snapshot_id is not None:
        raise _refused(Reason.ENTRY_SNAPSHOT_ID_SET, "a snapshot id, expected null")
    if entry.sequence_number is not None or entry.file_sequence_number is not None:
        raise _refused(Reason.ENTRY_SEQUENCE_NUMBER_SET, "a sequence number, expected null")
    check_added_file(entry.data_file, content, format_version, forms)


def check_added_file(
    file: DataFile,
    content: ManifestContent,
    format_version: int,
    forms: BoundForms = ANY_BOUNDS,
) -> None:
    """Refuse a file that cannot be added to a manifest of this content and version.

    Errors: `InvalidRequestError` with the reason.
    """
    if not file.file_path:
        raise _refused(Reason.MANIFEST_MALFORMED, "an empty file path")
    _check_counts(file)
    _check_split_offsets(file)
    _check_bounds(file, forms)
    if file.first_row_id is not None:
        raise _refused(Reason.ROW_ID_SET, "a first row id, expected null")
    if file.manifest_content != content:
        raise _mismatch(f"a file of {file.content.name} in a manifest of {content.name}")
    if content == ManifestContent.DELETES:
        _check_deletes(file, format_version)
    else:
        _check_data(file)


def _check_counts(file: DataFile) -> None:
    if file.record_count < 0 or file.file_size_in_bytes < 0:
        raise _refused(Reason.NEGATIVE_COUNT, "a negative record count or file size")
    for name, counts in (
        ("column size", file.column_sizes),
        ("value count", file.value_counts),
        ("count of nulls", file.null_value_counts),
        ("count of NaNs", file.nan_value_counts),
    ):
        if counts and min(counts.values()) < 0:
            raise _refused(Reason.NEGATIVE_COUNT, f"a negative {name}")


def _check_split_offsets(file: DataFile) -> None:
    """Check split offsets: Java plans no splits by offsets behind the end. spec:
    field 132, sorted ascending."""
    offsets = file.split_offsets
    if not offsets:
        return
    if offsets[0] < 0 or list(offsets) != sorted(offsets):
        raise _refused(
            Reason.SPLIT_OFFSETS_MALFORMED, "split offsets that are negative or not ascending"
        )
    if offsets[-1] >= file.file_size_in_bytes:
        raise _refused(
            Reason.SPLIT_OFFSETS_MALFORMED,
            f"a split at {offsets[-1]} in a file of {file.file_size_in_bytes} bytes",
        )


def _check_bounds(file: DataFile, forms: BoundForms) -> None:
    for name, bounds in (("a lower", file.lower_bounds), ("an upper", file.upper_bounds)):
        column = forms.misfit(bounds or {})
        if column is not None:
            if not forms.knows(column):
                raise _refused(
                    Reason.SCHEMA_MISMATCH,
                    f"{name} bound of field id {column}, which no schema of the table has",
                )
            raise _refused(
                Reason.BOUND_MALFORMED,
                f"{name} bound of column {column} that is no value of its type",
            )


def _check_data(file: DataFile) -> None:
    if file.file_format not in FILE_FORMATS:
        raise _refused(Reason.MANIFEST_MALFORMED, "a file format that is not Parquet, ORC or Avro")
    # Some writers give an empty list for none.
    if file.equality_ids:
        raise _refused(Reason.DELETE_FIELD_SET, "equality ids of a data file")
    if file.referenced_data_file is not None:
        raise _refused(Reason.DELETE_FIELD_SET, "a referenced data file of a data file")
    if file.content_offset is not None or file.content_size_in_bytes is not None:
        raise _refused(Reason.DELETE_FIELD_SET, "a content offset or size of a data file")


def _check_deletes(file: DataFile, format_version: int) -> None:
    if format_version < 2:
        raise _mismatch("a delete file, which format version 1 does not have")
    if file.content == DataFileContent.EQUALITY_DELETES:
        if not file.equality_ids:
            raise _mismatch("equality deletes without the ids of their columns")
        if file.file_format not in FILE_FORMATS:
            raise _refused(Reason.MANIFEST_MALFORMED, "equality deletes in an unknown file format")
    elif format_version > 2:
        _check_deletion_vector(file)
    elif file.file_format not in FILE_FORMATS:
        raise _mismatch("position deletes in another format than Parquet, ORC or Avro")


def _check_deletion_vector(file: DataFile) -> None:
    """Check a deletion vector: version 3 takes new position deletes in no other form."""
    if not file.is_deletion_vector:
        raise _mismatch("position deletes that are no deletion vector in format version 3")
    if not file.referenced_data_file or file.content_offset is None:
        raise _mismatch("a deletion vector that does not say of which data file, or where it is")
    if file.content_offset < 0 or (file.content_size_in_bytes or -1) < 0:
        raise _mismatch("a deletion vector without a place in its file")


def _mismatch(found: str) -> InvalidRequestError:
    return _refused(Reason.MANIFEST_CONTENT_MISMATCH, found)


def _refused(reason: Reason, found: str) -> InvalidRequestError:
    return InvalidRequestError(reason, f"an entry of the manifest has {found}")
