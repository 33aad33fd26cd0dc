"""Makes data files and manifest entries by the hundred thousand.

A frozen dataclass sets each of its fields by a call, which for twenty fields takes longer than to
inflate and read the entry itself. Here a plain class of the same slots is filled, and then becomes
the frozen one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.entry.map_layouts import Maps

# status, snapshot_id, sequence_number, file_sequence_number: what an entry says beside its file.
Head = tuple[ManifestEntryStatus, int | None, int | None, int | None]
# key_metadata, split_offsets, equality_ids, sort_order_id, first_row_id, referenced_data_file,
# content_offset, content_size_in_bytes: the order of the specification, and of Frazil's writers.
Tail = tuple[
    bytes | None,
    tuple[int, ...] | None,
    tuple[int, ...] | None,
    int | None,
    int | None,
    str | None,
    int | None,
    int | None,
]


class _DataFileDraft:
    __slots__ = tuple(DataFile.__slots__)

    def __init__(
        self,
        content: DataFileContent,
        file_path: str,
        file_format: str,
        partition: tuple[object, ...],
        record_count: int,
        size_in_bytes: int,
        maps: Maps,
        tail: Tail,
        spec_id: int,
    ) -> None:
        self.content = content
        self.file_path = file_path
        self.file_format = file_format
        self.partition = partition
        self.record_count = record_count
        self.file_size_in_bytes = size_in_bytes
        (
            self.column_sizes,
            self.value_counts,
            self.null_value_counts,
            self.nan_value_counts,
            self.lower_bounds,
            self.upper_bounds,
        ) = maps
        (
            self.key_metadata,
            self.split_offsets,
            self.equality_ids,
            self.sort_order_id,
            self.first_row_id,
            self.referenced_data_file,
            self.content_offset,
            self.content_size_in_bytes,
        ) = tail
        self.spec_id = spec_id
        self.__class__ = DataFile  # type: ignore[assignment]


class _EntryDraft:
    __slots__ = tuple(ManifestEntry.__slots__)

    def __init__(self, head: Head, data_file: DataFile) -> None:
        self.status, self.snapshot_id, self.sequence_number, self.file_sequence_number = head
        self.data_file = data_file
        self.__class__ = ManifestEntry  # type: ignore[assignment]


new_data_file = cast(
    "Callable[[DataFileContent, str, str, tuple[object, ...], int, int, Maps, Tail, int],"
    " DataFile]",
    _DataFileDraft,
)
new_entry = cast("Callable[[Head, DataFile], ManifestEntry]", _EntryDraft)
