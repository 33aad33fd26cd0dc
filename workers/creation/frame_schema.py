"""The columns that Spark sends for a DataFrame, as Arrow has them, and their fit to a table."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from committer.errors import PublishError
from committer.iceberg.schema.schema import Schema
from workers.arrow.arrow_schema import MatchedColumns, match_columns
from workers.spark.spark_batches import spark_arrow_schema


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Return the schema that Spark's batches will have.
    Errors: `PublishError` for a column that Arrow cannot carry."""
    try:
        return spark_arrow_schema(schema)
    except (PySparkException, pa.ArrowException) as error:
        raise PublishError(f"the DataFrame has a column that Arrow cannot carry: {error}") from None


def check_fits(where: str, columns: pa.Schema, table: Schema) -> MatchedColumns:
    """Match the columns with the table's. Errors: `PublishError` that begins with `where`."""
    try:
        return match_columns(columns, table)
    except PublishError as error:
        raise PublishError(f"{where}: {error}") from None
