"""Residuals asked of Arrow batches and of row groups: as rows answer them one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from committer.errors import InvalidFilterError
from committer.iceberg.expressions.expression import (
    And,
    EqualTo,
    Expression,
    GreaterThan,
    IsNull,
    LessThan,
    Not,
    NotEqualTo,
    Reference,
)
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.scan.column_projection import FileContext
from committer.iceberg.schema.metadata_columns import ROW_POSITION
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)
from tests.support.builders.projections import filters_on, one_column
from tests.support.iceberg.expression_builders import VALUES
from tests.support.iceberg.expression_builders import rows_of as values_of
from tests.support.iceberg.row_evaluator import row_evaluator
from tests.support.workers.reading import parquet_file, read_of, rows_of, table_of, task_of
from tests.support.workers.tables import optional, required, schema, struct
from workers.arrow.arrow_schema import arrow_schema
from workers.files.file_system import StoredFiles
from workers.files.store_access import USUAL_ACCESS
from workers.read.file_projections import FileProjections
from workers.read.open_rows import opened_rows
from workers.read.read_types import read_array, read_schema
from workers.read.row_filter import RowFilter
from workers.read.row_groups import row_group_test

KINDS = sorted(VALUES, key=str)
C = Reference("c")


def matching(kind: IcebergType, expression: Expression, values: list[Any]) -> list[bool]:
    test = row_evaluator(one_column(kind), expression)
    return [test((value,)) for value in values]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_batch_matches_as_its_rows_do(kind: IcebergType, data: st.DataObject) -> None:
    expression = data.draw(filters_on(kind))
    values = data.draw(st.lists(values_of(kind), min_size=1, max_size=20))
    known = one_column(kind)
    asked = RowFilter.of(known, expression)
    assert asked is not None
    fields = asked.columns or known.fields
    batch = pa.RecordBatch.from_arrays([read_array(values, kind)], schema=read_schema(fields))
    assert asked.mask(batch).tolist() == matching(kind, expression, values)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_row_group_that_has_matching_rows_is_left_out(
    tmp_path: Path, kind: IcebergType, data: st.DataObject
) -> None:
    expression = data.draw(filters_on(kind))
    values = data.draw(st.lists(values_of(kind), max_size=12))
    known = one_column(kind)
    rows = pa.Table.from_arrays([read_array(values, kind)], schema=arrow_schema(known))
    file = parquet_file(tmp_path, rows, parquet={"row_group_size": 3})
    found = rows_of(read_of(known, columns=[ROW_POSITION]), task_of(file, residual=expression))
    matches = enumerate(matching(kind, expression, values))
    assert found == [(position,) for position, is_match in matches if is_match]


# --- Row groups ----------------------------------------------------------------------------------


def groups_read(folder: Path, known: Schema, rows: pa.Table, expression: Expression) -> list[int]:
    """Return the numbers of the row groups, of two rows each, that may match."""
    file = parquet_file(folder, rows, parquet={"row_group_size": 2})
    asked = RowFilter.of(known, expression)
    assert asked is not None
    with opened_rows(file, StoredFiles(USUAL_ACCESS)) as stored:
        context = FileContext({})
        opened = FileProjections.of(read_of(known), file, stored, context, asked.columns)
        test = row_group_test(stored, asked, opened.projections[0])
        return [number for number in range(-(-rows.num_rows // 2)) if test(number)]


def test_row_groups_without_matching_rows_are_not_read(tmp_path: Path) -> None:
    known = schema(optional(1, "c", LongType()))
    rows = table_of(known, c=[1, 2, 3, 4, None, None, 7, None])
    for expression, wanted in (
        (GreaterThan(C, 2), [1, 3]),
        (EqualTo(C, 5), []),
        (IsNull(C), [2, 3]),
        (And.of(GreaterThan(C, 1), LessThan(C, 3)), [0]),
        (Not.of(IsNull(C)), [0, 1, 3]),
    ):
        assert groups_read(tmp_path, known, rows, expression) == wanted


@pytest.mark.parametrize(
    ("stored", "now", "values", "where", "wanted"),
    [
        (IntegerType(), LongType(), [1, 2, 3, 4], "c > 2", [1]),
        (DateType(), TimestampType(), [1, 2, 3, 4], "c >= '1970-01-04T00:00:00'", [1]),
        (DecimalType(5, 2), DecimalType(9, 2), [1, 2, 3, 4], "c > 2.5", [1]),
        (StringType(), StringType(), ["a", "b", "c", "d"], "c like 'd%'", [1]),
        (DoubleType(), DoubleType(), [-1.0, 0.0, 0.5, 1.0], "c < -0.0", [0]),
    ],
    ids=str,
)
def test_statistics_are_of_the_stored_type(
    tmp_path: Path,
    stored: IcebergType,
    now: IcebergType,
    values: list[Any],
    where: str,
    wanted: list[int],
) -> None:
    rows = table_of(schema(optional(1, "c", stored)), c=values)
    known = schema(optional(1, "c", now))
    assert groups_read(tmp_path, known, rows, parse_where(where)) == wanted


# --- What a filter may name ----------------------------------------------------------------------


def test_a_filter_may_name_columns_that_are_not_wanted_and_fields_of_structs(
    tmp_path: Path,
) -> None:
    inner = struct(optional(3, "x", LongType()), optional(4, "y", LongType()))
    known = schema(required(1, "id", LongType()), optional(2, "s", inner))
    rows = table_of(known, id=[1, 2, 3], s=[{"x": 0, "y": 5}, None, {"x": 5, "y": None}])
    file = parquet_file(tmp_path, rows)
    read = read_of(known, columns=[known.fields[0]])
    for where, wanted in (("s.y = 5", [1]), ("s.y != 5", [2, 3]), ("s is null", [2])):
        assert rows_of(read, task_of(file, residual=parse_where(where))) == [(n,) for n in wanted]


def test_names_have_their_case_unless_the_read_says_so(tmp_path: Path) -> None:
    known = schema(required(1, "Id", LongType()))
    file = parquet_file(tmp_path, table_of(known, Id=[1, 2]))
    task = task_of(file, residual=EqualTo(Reference("ID"), 2))
    assert rows_of(read_of(known, case_sensitive=False), task) == [(2,)]
    with pytest.raises(InvalidFilterError, match="ID"):
        rows_of(read_of(known), task)


def test_a_filter_that_the_schema_decides_needs_no_column(tmp_path: Path) -> None:
    known = schema(required(1, "id", LongType()))
    file = parquet_file(tmp_path, table_of(known, id=[1, 2]))
    id_ = Reference("id")
    assert rows_of(read_of(known), task_of(file, residual=IsNull(id_))) == []
    all_rows = rows_of(read_of(known), task_of(file, residual=Not.of(IsNull(id_))))
    assert all_rows == [(1,), (2,)]


def test_a_filter_on_a_column_that_the_file_lacks_is_asked_of_its_default(tmp_path: Path) -> None:
    stored = schema(required(1, "id", LongType()))
    file = parquet_file(tmp_path, table_of(stored, id=[1, 2]))
    young = replace(optional(2, "c", LongType()), initial_default=7)
    read = read_of(schema(*stored.fields, young), columns=stored.fields)
    assert rows_of(read, task_of(file, residual=EqualTo(C, 7))) == [(1,), (2,)]
    assert rows_of(read, task_of(file, residual=NotEqualTo(C, 7))) == []
