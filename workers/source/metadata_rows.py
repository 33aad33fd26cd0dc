"""Metadata tables as DataFrames: `db.flights$files`. One task reads one of them, in batches.

Columns are those of `frazil table inspect --arrow`. The task gets the table's metadata from the
driver, and reads manifests where the store of the table's files is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from committer.arrow_rows import arrow_batches, arrow_columns
from committer.errors import InvariantError
from committer.iceberg.inspection.metadata_tables import (
    SNAPSHOT_KINDS,
    TableSource,
    inspect_snapshot,
    inspect_table,
)
from committer.iceberg.inspection.values import Row
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot
from workers.files.file_system import StoredFiles
from workers.files.store_access import StoreAccess
from workers.source.driver_table import DriverTable
from workers.spark.message_first import message_first
from workers.spark.spark_batches import as_spark_batch, spark_arrow_schema


def metadata_schema(kind: str) -> StructType:
    """Return the schema of a metadata table."""
    return from_arrow_schema(arrow_columns(kind))


def metadata_reader(
    table: DriverTable, snapshot: Snapshot | None, schema: StructType
) -> DataSourceReader:
    """Make the reader of a metadata table, of all its columns.
    Errors: `SettingsError` for another schema."""
    kind = table.kind
    if kind is None:
        raise InvariantError(f"{table.name} is no metadata table")
    split = MetadataSplit(kind, table.metadata, table.metadata_location, snapshot)
    return MetadataReader(table.access(), spark_arrow_schema(schema), split)


class MetadataSplit(InputPartition):  # type: ignore[misc]  # pyspark has no types for us
    """A whole metadata table."""

    def __init__(
        self, kind: str, metadata: TableMetadata, location: str, snapshot: Snapshot | None
    ) -> None:
        self.kind, self.metadata = kind, metadata
        self.location, self.snapshot = location, snapshot


class MetadataReader(DataSourceReader):  # type: ignore[misc]
    """Reads a metadata table. Without `split` it is the half that travels to the task."""

    def __init__(
        self, access: StoreAccess, schema: pa.Schema, split: MetadataSplit | None = None
    ) -> None:
        self._access, self._schema = access, schema
        self._split = split

    def __reduce__(self) -> tuple[object, ...]:
        return MetadataReader, (self._access, self._schema)

    def partitions(self) -> Sequence[InputPartition]:
        return [self._split]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, MetadataSplit):
            raise InvariantError("a read of a metadata table without its split")
        with message_first():
            for batch in arrow_batches(partition.kind, self._rows(partition)):
                yield as_spark_batch(batch, self._schema)

    def _rows(self, split: MetadataSplit) -> Iterator[Row]:
        source = TableSource(split.metadata, split.location, self._bytes)
        if split.kind in SNAPSHOT_KINDS:
            return inspect_snapshot(split.kind, source, split.snapshot)
        return inspect_table(split.kind, source)

    def _bytes(self, location: str) -> bytes:
        with StoredFiles(self._access)(location) as file:
            return bytes(file.read())
