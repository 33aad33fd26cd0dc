"""The tasks that a scan is planned into: one for each data file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.entry.drafts import Head
from committer.iceberg.expressions.expression import Expression


@dataclass(frozen=True, slots=True)
class FileScanTask:
    """Read a data file, leave out what its delete files delete, keep what the residual matches.

    `delete_files` are in the order of their paths; `residual` is unbound. `head` is what the
    manifest entry says beside the file, None for a task that is of no manifest.
    """

    file: DataFile
    delete_files: tuple[DataFile, ...]
    residual: Expression
    head: Head | None = None

    @property
    def spec_id(self) -> int:
        return self.file.spec_id

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that added the file."""
        return None if self.head is None else self.head[1]

    @property
    def sequence_number(self) -> int | None:
        """The data sequence number."""
        return None if self.head is None else self.head[2]


class _TaskDraft:
    """Becomes a task, several times as fast as one is made: see `entry/drafts.py`."""

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
