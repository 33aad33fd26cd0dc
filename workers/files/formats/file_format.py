"""The port between the writer of a task and its files: what each file format implements."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from workers.arrow.footer_metrics import FileMetrics
from workers.files.write_properties import FormatName


class OpenFile(Protocol):
    """The content of one file in the making."""

    def write(self, rows: pa.Table) -> None:
        """Write rows, at least one, behind those before. They are in the sink then, but for what a
        few blocks hold."""

    def close(self) -> FileMetrics:
        """Write what the file ends with, and return its metrics. The sink stays open."""

    def abandon(self) -> None:
        """Free what the format holds; the content is not wanted anymore. Errors: anything."""


class FileFormat(Protocol):
    """The format of all data files of one writer, with the table's properties."""

    @property
    def name(self) -> FormatName: ...

    @property
    def target_file_bytes(self) -> int:
        """The size of a file that is large enough, on disk."""

    @property
    def row_group_bytes(self) -> int:
        """The size of the rows that are written at once, on disk."""

    def open(self, sink: pa.NativeFile, first_rows: pa.Table) -> OpenFile:
        """Begin a file. `first_rows`: those that are written first, all of whose columns the format
        may look at; they are not written yet."""
