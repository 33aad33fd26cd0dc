"""Every public name but those of `frazil.spark`. `docs/reference/python.md` lists them."""

from __future__ import annotations

from committer.errors import (
    AccessError,
    FrazilError,
    InvalidFilterError,
    InvalidMetadataError,
    NoSuchTableError,
    NotFoundError,
    PublishError,
    SettingsError,
    TableAlreadyExistsError,
    TransientError,
    UnsupportedError,
)
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.expressions.expression import Expression
from committer.iceberg.metadata.snapshot import Snapshot, SnapshotLogEntry, SnapshotRef
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import SortField, SortOrder
from committer.iceberg.values.types import NestedField
from frazil.inspect_table import InspectTable
from frazil.read_only_table import Table, load_table
from frazil.table_scan import TableScan

__all__ = [
    "AccessError",
    "DataFile",
    "DataFileContent",
    "Expression",
    "FileScanTask",
    "FrazilError",
    "InspectTable",
    "InvalidFilterError",
    "InvalidMetadataError",
    "NestedField",
    "NoSuchTableError",
    "NotFoundError",
    "PartitionField",
    "PartitionSpec",
    "PublishError",
    "Schema",
    "SettingsError",
    "Snapshot",
    "SnapshotLogEntry",
    "SnapshotRef",
    "SortField",
    "SortOrder",
    "Table",
    "TableAlreadyExistsError",
    "TableScan",
    "TransientError",
    "UnsupportedError",
    "load_table",
]
