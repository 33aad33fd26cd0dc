"""Tasks read from Parquet files: whole and in parts, and only what is wanted of a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from committer.errors import InvalidMetadataError, NotFoundError, UnsupportedError
from committer.iceberg.scan.task_part import TaskPart, split_task
from committer.iceberg.schema.metadata_columns import (
    FILE_PATH,
    IS_DELETED,
    LAST_UPDATED_SEQUENCE_NUMBER,
    ROW_ID,
    ROW_POSITION,
    SPEC_ID,
    partition_column,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.schema_selection import select_columns
from committer.iceberg.schema.table_partition import table_partition_type
from committer.iceberg.values.types import LongType, StringType
from tests.support.workers.reading import (
    entry_of,
    parquet_file,
    read_all,
    read_of,
    rows_of,
    table_of,
    task_of,
)
from tests.support.workers.tables import all_primitives, nested, optional, required, schema
from tests.support.workers.write_target import spec_of
from workers.arrow.arrow_schema import arrow_schema

IDS = schema(required(1, "id", LongType()), optional(2, "name", StringType()))
TEN = table_of(IDS, id=range(10), name=[f"n{at}" for at in range(10)])


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    task = task_of(parquet_file(tmp_path, TEN))
    found = read_all(read_of(IDS), task)
    assert found.schema == pa.schema(
        [pa.field("id", pa.int64(), False), pa.field("name", pa.string())]
    )
    assert found.to_pylist() == TEN.to_pylist()


def test_the_columns_of_a_file_are_found_by_id_and_not_by_name(tmp_path: Path) -> None:
    task = task_of(parquet_file(tmp_path, TEN))
    turned = schema(optional(2, "id", StringType()), required(1, "name", LongType()))
    assert rows_of(read_of(turned), task)[:2] == [("n0", 0), ("n1", 1)]


@pytest.mark.parametrize("table", [all_primitives(), nested()], ids=["primitives", "nested"])
def test_every_type_is_read_also_where_all_is_null(tmp_path: Path, table: Schema) -> None:
    optional_fields = [replace(field, required=False) for field in table.fields]
    known = schema(*optional_fields)
    nulls = {field.name: [None, None] for field in arrow_schema(known)}
    task = task_of(parquet_file(tmp_path, table_of(known, **nulls)))
    assert read_all(read_of(known), task).to_pylist() == [dict.fromkeys(nulls)] * 2


def test_only_the_wanted_parts_of_nested_columns_are_read(tmp_path: Path) -> None:
    table = nested()
    rows = {
        "id": [1, 2, 3],
        "point": [
            {"x": 1.5, "y": 2, "deep": {"text": "t"}},
            None,
            {"x": None, "y": 4, "deep": None},
        ],
        "tags": [["a"], [], None],
        "attributes": [[("k", 1.0)], [], None],
        "points": [[{"x": 1, "at": None}, None], [], None],
        "matrix": [[[1.0], None], [], None],
    }
    task = task_of(parquet_file(tmp_path, table_of(table, **rows)))
    deep = select_columns(table, ["point.deep"]).fields
    found = rows_of(read_of(table, columns=deep), task)
    assert found == [({"deep": {"text": "t"}},), (None,), ({"deep": None},)]
    whole = rows_of(read_of(table), task)
    assert whole == list(zip(*rows.values(), strict=True))


def test_a_struct_of_which_the_file_has_no_wanted_field_keeps_its_nulls(tmp_path: Path) -> None:
    kind = schema(optional(10, "x", LongType())).as_struct
    stored = schema(optional(1, "s", kind))
    task = task_of(parquet_file(tmp_path, table_of(stored, s=[{"x": 1}, None])))
    wanted = schema(optional(1, "s", schema(optional(11, "y", LongType())).as_struct))
    assert rows_of(read_of(wanted), task) == [({"y": None},), (None,)]


# --- Parts ---------------------------------------------------------------------------------------


def test_the_parts_of_a_task_have_each_row_once(tmp_path: Path) -> None:
    file = parquet_file(tmp_path, TEN, parquet={"row_group_size": 3})
    read = read_of(IDS, columns=[IDS.fields[0], ROW_POSITION])
    for size in range(1, file.file_size_in_bytes + 2, 37):
        parts = list(split_task(task_of(file), size))
        assert rows_of(read, *parts) == [(at, at) for at in range(10)]
        assert sum(part.length for part in parts) == file.file_size_in_bytes


def test_a_part_reads_the_row_groups_that_start_in_it(tmp_path: Path) -> None:
    file = parquet_file(tmp_path, TEN, parquet={"row_group_size": 5})
    read = read_of(IDS, columns=[IDS.fields[0]])
    assert rows_of(read, TaskPart(task_of(file), 0, 5)) == [(at,) for at in range(5)]
    assert rows_of(read, TaskPart(task_of(file), 0, 4)) == []
    rest = TaskPart(task_of(file), 5, file.file_size_in_bytes - 5)
    assert rows_of(read, rest) == [(at,) for at in range(5, 10)]


# --- Metadata columns ----------------------------------------------------------------------------


def test_metadata_columns_say_where_a_row_is_and_what_it_inherits(tmp_path: Path) -> None:
    spec = spec_of((2, "name", "identity"))
    file = replace(parquet_file(tmp_path, TEN), spec_id=1, partition=("a",), first_row_id=100)
    partition = partition_column(table_partition_type([spec], IDS))
    columns = [
        *(FILE_PATH, ROW_POSITION, IS_DELETED, SPEC_ID),
        *(ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER, partition),
    ]
    read = read_of(IDS, columns=columns, specs=[spec])
    assert rows_of(read, task_of(file))[3] == (
        *(file.file_path, 3, False, 1),
        *(103, 7, {"name": "a"}),
    )


def test_a_read_without_columns_says_how_many_rows_there_are(tmp_path: Path) -> None:
    task = task_of(parquet_file(tmp_path, TEN))
    assert read_all(read_of(IDS, columns=[]), task).num_rows == 10


# --- What cannot be read -------------------------------------------------------------------------


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    file = parquet_file(tmp_path, TEN)
    (tmp_path / "data.parquet").unlink()
    with pytest.raises(NotFoundError, match=r"data\.parquet"):
        read_all(read_of(IDS), task_of(file))


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"no rows")
    with pytest.raises(InvalidMetadataError, match=r"x\.parquet"):
        read_all(read_of(IDS), task_of(entry_of(tmp_path / "x.parquet", 1)))


def test_nulls_in_a_required_column_are_an_error(tmp_path: Path) -> None:
    task = task_of(parquet_file(tmp_path, table_of(IDS, id=[1], name=[None])))
    strict = schema(required(2, "name", StringType()))
    with pytest.raises(InvalidMetadataError, match=r"data\.parquet: column name is required"):
        read_all(read_of(strict), task)


def test_encrypted_files_are_refused(tmp_path: Path) -> None:
    file = replace(parquet_file(tmp_path, TEN), key_metadata=b"k")
    with pytest.raises(UnsupportedError, match="encrypted"):
        read_all(read_of(IDS), task_of(file))
