"""Makes the tasks of a scan by the hundred thousand, as the other `drafts.py` makes data files."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from committer.iceberg.data_file import DataFile
from committer.iceberg.drafts import Head
from committer.iceberg.expressions.expression import Expression
from committer.iceberg.scan.scan_task import FileScanTask


class _TaskDraft:
    __slots__ = tuple(FileScanTask.__slots__)

    def __init__(
        self, data_file: DataFile, deletes: tuple[DataFile, ...], residual: Expression, head: Head
    ) -> None:
        self.data_file = data_file
        self.deletes = deletes
        self.residual = residual
        self.head = head
        self.__class__ = FileScanTask  # type: ignore[assignment]


new_task = cast(
    "Callable[[DataFile, tuple[DataFile, ...], Expression, Head], FileScanTask]", _TaskDraft
)
