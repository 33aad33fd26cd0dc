"""Data files, delete files and the manifest entries that track them, as values.

No encoding here: `manifest.py` writes them as Avro, `content_file_json.py` as JSON.
Source: the specification, "Manifests" (fields `manifest_entry` and `data_file`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum


class DataFileContent(IntEnum):
    """The content of a file. spec: data_file field 134."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class ManifestContent(IntEnum):
    """The content of the files of a manifest. spec: manifest_file field 517."""

    DATA = 0
    DELETES = 1


class ManifestEntryStatus(IntEnum):
    """The status of a file in a manifest. spec: manifest_entry field 0."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One data or delete file: the `data_file` record of a manifest entry.

    `partition` has one value per field of the partition spec, in its order. Metrics are keyed by
    field id, bounds are binary single values; None means not collected. `referenced_data_file`,
    `content_offset` and `content_size_in_bytes` belong to position deletes and deletion vectors.
    `spec_id` is not part of the record: the manifest says it.
    """

    content: DataFileContent = DataFileContent.DATA
    file_path: str
    file_format: str = "PARQUET"
    partition: tuple[object, ...] = ()
    record_count: int
    file_size_in_bytes: int
    column_sizes: Mapping[int, int] | None = None
    value_counts: Mapping[int, int] | None = None
    null_value_counts: Mapping[int, int] | None = None
    nan_value_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None
    spec_id: int = 0

    @property
    def is_deletion_vector(self) -> bool:
        """Whether this is a delete file in Puffin format (docs/reference/iceberg-notes.md 6.7)."""
        return self.content == DataFileContent.POSITION_DELETES and self.file_format == "PUFFIN"

    @property
    def manifest_content(self) -> ManifestContent:
        """The kind of manifest that may hold this file."""
        return ManifestContent(min(self.content, 1))


def is_position_delete_file(file: DataFile) -> bool:
    """Return whether a file is one of position deletes, and no deletion vector."""
    return file.content is DataFileContent.POSITION_DELETES and not file.is_deletion_vector


def is_equality_delete_file(file: DataFile) -> bool:
    return file.content is DataFileContent.EQUALITY_DELETES


def has_no_order(file: DataFile) -> bool:
    """Return whether a file ought to have a sort order and names none. spec:
    data_file field 140."""
    return file.sort_order_id is None and file.content is not DataFileContent.POSITION_DELETES


def with_order(file: DataFile) -> DataFile:
    """Return the file; unsorted if it does not say how it is sorted.
    The specification takes null for that too, but there are readers that fail on it (Trino)."""
    return replace(file, sort_order_id=0) if has_no_order(file) else file


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One row of a manifest. Null ids are inherited: docs/reference/iceberg-notes.md 6.6."""

    status: ManifestEntryStatus
    snapshot_id: int | None
    sequence_number: int | None
    file_sequence_number: int | None
    data_file: DataFile

    @property
    def is_live(self) -> bool:
        return self.status != ManifestEntryStatus.DELETED
