"""Chooses the format of a writer's files: the table's properties say which.

Only the chosen one is imported: most tables are of Parquet.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from committer.iceberg.schema.metrics_config import metrics_config
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import SortOrder
from workers.arrow.column_metrics import metrics_leaves
from workers.files.formats.file_format import FileFormat
from workers.files.formats.parquet_format import ParquetFormat
from workers.files.formats.parquet_options import parquet_options
from workers.files.write_properties import format_name


def choose_format(
    properties: Mapping[str, str], schema: pa.Schema, table: Schema, order: SortOrder
) -> FileFormat:
    """Return the format for files of this schema. `order`: the table's sort order.

    Errors: `UnsupportedError` names the property that asks for what no writer knows, or the column
    that the format has nothing for.
    """
    if format_name(properties) == "avro":
        from workers.files.formats.avro_format import AvroFormat, avro_options

        return AvroFormat(schema, table, avro_options(properties))
    leaves = metrics_leaves(schema, table, metrics_config(properties, table, order))
    if format_name(properties) == "orc":
        from workers.files.formats.orc_format import OrcFormat, orc_options

        return OrcFormat(schema, leaves, orc_options(properties))
    return ParquetFormat(schema, leaves, parquet_options(properties, table))
