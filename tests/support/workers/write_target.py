"""A table to write to, and a writer of its files, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionField, PartitionSpec
from committer.iceberg.schema.sort_order import UNSORTED, SortOrder
from committer.iceberg.values.transforms import parse_transform
from workers.arrow.arrow_schema import arrow_schema
from workers.files.file_writer import FileNames, PartitionedWriter, WriterLimits
from workers.files.store_access import USUAL_ACCESS, StoreAccess
from workers.files.write_target import WriteTarget

ATTEMPT = "0b0e4a5e-7a2b-5c3d-9e4f-001122334455"


@dataclass(frozen=True, slots=True)
class Target(WriteTarget):
    spec: PartitionSpec = UNPARTITIONED
    properties: Mapping[str, str] = field(default_factory=dict)
    access: StoreAccess = USUAL_ACCESS
    table_order: SortOrder = UNSORTED


def spec_of(*fields: tuple[int, str, str]) -> PartitionSpec:
    """Build a spec of (source id, name, transform)."""
    return PartitionSpec(
        1,
        tuple(
            PartitionField((source,), 1000 + at, name, parse_transform(text))
            for at, (source, name, text) in enumerate(fields)
        ),
    )


def names(*, partition_id: int = 3, salt: str = "5a17") -> FileNames:
    return FileNames(partition_id, 42, ATTEMPT, salt)


class MeasuredWriter(PartitionedWriter):
    """Remembers the most bytes that waited at any moment."""

    buffered_bytes_max = 0

    def _count_buffered(self, change: int) -> None:
        super()._count_buffered(change)
        self.buffered_bytes_max = max(self.buffered_bytes_max, self._buffered_bytes)


def writer_of(
    target: Target, *, limits: WriterLimits | None = None, file_names: FileNames | None = None
) -> MeasuredWriter:
    file_schema = arrow_schema(target.schema)
    return MeasuredWriter(target, file_schema, file_names or names(), limits=limits)


def write_rows(
    target: Target, *batches: pa.RecordBatch, limits: WriterLimits | None = None
) -> list[DataFile]:
    with writer_of(target, limits=limits) as writer:
        for batch in batches:
            writer.write(batch)
        return writer.close()


def path_of(file: DataFile) -> Path:
    return Path(file.file_path.removeprefix("file:"))


def read_file(file: DataFile) -> pa.Table:
    return pq.ParquetFile(path_of(file)).read()


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
