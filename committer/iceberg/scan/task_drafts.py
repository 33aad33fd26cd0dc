"""Makes the tasks of a scan by the hundred thousand, as the other `drafts.py` makes data files."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.entry.drafts import Head
from committer.iceberg.expressions.expression import Expression
from committer.iceberg.scan.scan_task import FileScanTask


class _TaskDraft:
    __slots__ = tuple(FileScanTask.__slots__)

    def __init__(
        self, file: DataFile, delete_files: tuple[DataFile, ...], residual: Expression, head: Head
    ) -> None:
        self.file = file
        self.delete_files = delete_files
        self.residual = residual
        self.head = head
        self.__class__ = FileScanTask  # type: ignore[assignment]


new_task = cast(
    "Callable[[DataFile, tuple[DataFile, ...], Expression, Head], FileScanTask]", _TaskDraft
)
