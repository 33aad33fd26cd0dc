"""The input itself: all of it, with real types, and from its start again where more is asked."""

from __future__ import annotations

import pyarrow as pa
import pytest

from committer.demo.demo_readers import sums_by_carrier
from committer.demo.demo_table import flights_table
from committer.demo.demo_verdict import Sums, total
from committer.demo.writers.flights import (
    iceberg_schema,
    read_flights,
    spark_schema,
)
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.values.types import DateType, IntegerType
from workers.arrow.arrow_schema import arrow_schema, match_columns

ALL = 336_776


@pytest.mark.thorough
def test_all_flights_are_read_and_then_again_from_the_start() -> None:
    flights = read_flights(ALL + 3)
    assert flights.num_rows == ALL + 3
    assert flights.slice(ALL).equals(flights.slice(0, 3))
    # Published with the data set (its reference manual, and many a textbook).
    sums = total(sums_by_carrier(flights.slice(0, ALL)))
    assert sums == Sums(ALL, 327_346, 350_217_607, 2_257_174)
    assert flights.schema.field("time_hour").type == pa.timestamp("us", "UTC")
    assert flights["tailnum"].slice(0, ALL).null_count == 2_512


def test_the_tables_columns_take_the_inputs_without_a_change() -> None:
    flights = read_flights(1)
    assert match_columns(flights.schema, iceberg_schema()).schema.names == flights.schema.names
    assert [each.type for each in arrow_schema(iceberg_schema())] == flights.schema.types
    assert len(spark_schema().split(",")) == flights.num_columns


def test_the_table_is_partitioned_by_month_and_bucket() -> None:
    schema = iceberg_schema()
    spec = flights_table().partition_spec
    assert [str(field.transform) for field in spec.fields] == ["month", "bucket[8]"]
    assert [schema.column_name(field.source_id) for field in spec.fields] == [
        "time_hour",
        "carrier",
    ]
    types = [type(field.field_type) for field in partition_type(spec, schema).fields]
    assert types in ([IntegerType, IntegerType], [DateType, IntegerType])
