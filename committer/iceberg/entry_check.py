"""What a manifest entry must be so that a producer may add it. Checks decoded entries, one by one.

Source: the specification, "Manifests"; format.md 8.6, 8.7, 8.8.
"""

from __future__ import annotations

from committer.errors import InvalidRequestError
from committer.iceberg.data_file import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.reason import Reason

FILE_FORMATS = ("PARQUET", "ORC", "AVRO")


def check_addition(entry: ManifestEntry, content: ManifestContent, format_version: int) -> None:
    """Refuse what is not an addition with everything left to inherit.

    Errors: `InvalidRequestError` with the reason.
    """
    if entry.status != ManifestEntryStatus.ADDED:
        raise _refused(Reason.ENTRY_NOT_ADDED, f"status {entry.status.name}, expected ADDED")
    if entry.snapshot_id is not None:
        raise _refused(Reason.ENTRY_SNAPSHOT_ID_SET, "a snapshot id, expected null")
    if entry.sequence_number is not None or entry.file_sequence_number is not None:
        raise _refused(Reason.ENTRY_SEQUENCE_NUMBER_SET, "a sequence number, expected null")
    check_added_file(entry.data_file, content, format_version)


def check_added_file(file: DataFile, content: ManifestContent, format_version: int) -> None:
    """Refuse a file that cannot be added to a manifest of this content and version.

    Errors: `InvalidRequestError` with the reason.
    """
    if not file.file_path:
        raise _refused(Reason.MANIFEST_MALFORMED, "an empty file path")
    if file.record_count < 0 or file.file_size_in_bytes < 0:
        raise _refused(Reason.NEGATIVE_COUNT, "a negative record count or file size")
    if file.first_row_id is not None:
        raise _refused(Reason.ROW_ID_SET, "a first row id, expected null")
    if file.manifest_content != content:
        raise _mismatch(f"a file of {file.content.name} in a manifest of {content.name}")
    if content == ManifestContent.DELETES:
        _check_deletes(file, format_version)
    elif file.file_format not in FILE_FORMATS:
        raise _refused(Reason.MANIFEST_MALFORMED, "a file format that is not Parquet, ORC or Avro")


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
    """Version 3 takes new position deletes as deletion vectors only."""
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
