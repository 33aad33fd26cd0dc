"""Tables in memory for tests of the reader: files in a folder, read without a catalog."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestEntryStatus
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.scan.task_part import TaskPart
from committer.iceberg.schema.name_mapping import NameMapping
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import NestedField
from workers.arrow.arrow_schema import arrow_schema
from workers.files.file_system import StoredFiles
from workers.files.store_access import USUAL_ACCESS
from workers.read.shared_read import TableRead
from workers.read.task_reader import read_task

TABLE_UUID = UUID("00000000-0000-4000-8000-000000000001")
SEQUENCE_NUMBER = 7


def read_of(
    schema: Schema,
    *older: Schema,
    columns: Iterable[NestedField] | None = None,
    specs: Iterable[PartitionSpec] = (UNPARTITIONED,),
    mapping: NameMapping | None = None,
    case_sensitive: bool = True,
) -> TableRead:
    """Return a read of a table with these schemas; it has been sent to a task."""
    wanted = schema.fields if columns is None else tuple(columns)
    read = TableRead(
        TABLE_UUID, schema, wanted, (*older, schema), tuple(specs), mapping, case_sensitive
    )
    sent: TableRead = pickle.loads(pickle.dumps(read))
    return sent


def parquet_file(
    folder: Path, table: pa.Table, *, name: str = "data.parquet", **changes: Any
) -> DataFile:
    """Write a data file. `parquet`: options of the writer; the others are fields of the entry."""
    path = folder / name
    pq.write_table(table, path, **changes.pop("parquet", {}))
    return entry_of(path, table.num_rows, **changes)


def entry_of(path: Path, rows: int, **changes: Any) -> DataFile:
    file = DataFile(
        content=DataFileContent.DATA,
        file_path=f"file:{path}",
        file_format=path.suffix[1:].upper(),
        partition=(),
        spec_id=0,
        record_count=rows,
        file_size_in_bytes=path.stat().st_size,
    )
    return replace(file, **changes)


def table_of(schema: Schema, /, **columns: Any) -> pa.Table:
    """Build rows as the table's own writer stores them."""
    kinds = arrow_schema(schema)
    arrays = [pa.array(columns[field.name], field.type) for field in kinds]
    return pa.Table.from_arrays(arrays, schema=kinds)


def task_of(file: DataFile, *deletes: DataFile, residual: Expression = ALWAYS_TRUE) -> FileScanTask:
    head = (ManifestEntryStatus.ADDED, 1, SEQUENCE_NUMBER, SEQUENCE_NUMBER)
    task = FileScanTask(file, deletes, residual, head)
    sent: FileScanTask = pickle.loads(pickle.dumps(task))
    return sent


def read_all(read: TableRead, *tasks: FileScanTask | TaskPart, **options: Any) -> pa.Table:
    open_file = pickle.loads(pickle.dumps(StoredFiles(USUAL_ACCESS)))
    batches = [batch for task in tasks for batch in read_task(read, task, open_file, **options)]
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, schema=read.arrow_schema)


def rows_of(
    read: TableRead, *tasks: FileScanTask | TaskPart, **options: Any
) -> list[tuple[Any, ...]]:
    """Read rows as tuples of Python values."""
    found = read_all(read, *tasks, **options)
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))
