"""The Arrow schema of the batches that Spark exchanges with a Python data source."""

from __future__ import annotations

import inspect

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def spark_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the schema of Spark's batches.
    Errors: `PySparkException`, `ArrowException` for a column that Arrow cannot carry."""
    has_zone = "timezone" in inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, **({"timezone": "UTC"} if has_zone else {}))
