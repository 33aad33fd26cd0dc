"""What a scan is planned into: one task for each data file."""

from __future__ import annotations

from dataclasses import dataclass

from committer.iceberg.data_file import DataFile, ManifestEntry
from committer.iceberg.expressions.expression import Expression


@dataclass(frozen=True, slots=True)
class FileScanTask:
    """Read a data file, leave out what its delete files delete, keep what the residual matches.

    `entry` holds the data file, with its sequence numbers and the snapshot that added it; `deletes`
    are in the order of their paths; `residual` is unbound.
    """

    entry: ManifestEntry
    deletes: tuple[DataFile, ...]
    residual: Expression

    @property
    def data_file(self) -> DataFile:
        return self.entry.data_file

    @property
    def spec_id(self) -> int:
        return self.entry.data_file.spec_id
