"""Rows that delete files delete: of each kind, of several at once, in one turn and in many."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from committer.errors import InvalidMetadataError, NotFoundError
from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import encode_deletion_vectors
from committer.iceberg.deletes.position_deletes import (
    POSITION_DELETE_SCHEMA,
)
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.scan.task_part import split_task
from committer.iceberg.schema.metadata_columns import IS_DELETED, ROW_POSITION
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import DoubleType, IntegerType, LongType, StringType
from tests.support.workers.reading import (
    parquet_file,
    read_of,
    rows_of,
    table_of,
    task_of,
)
from tests.support.workers.tables import optional, required, schema, struct
from workers.files.file_system import StoredFiles
from workers.files.store_access import USUAL_ACCESS
from workers.read.deletes import deleted_values
from workers.read.deletes.delete_cache import DeleteCache
from workers.read.task_reader import count_rows, read_task

IDS = schema(required(1, "id", LongType()), optional(2, "name", StringType()))
TEN = table_of(IDS, id=range(10), name=[f"n{at}" for at in range(10)])
READ = read_of(IDS, columns=[IDS.fields[0]])


def ten(folder: Path, **changes: Any) -> DataFile:
    return parquet_file(folder, TEN, **changes)


def ids(*tasks: Any, **options: Any) -> list[int]:
    return [row[0] for row in rows_of(READ, *tasks, **options)]


def position_deletes(folder: Path, name: str, positions: dict[str, list[int]]) -> DataFile:
    rows = [(path, at) for path in sorted(positions) for at in sorted(positions[path])]
    table = table_of(
        POSITION_DELETE_SCHEMA, file_path=[p for p, _ in rows], pos=[n for _, n in rows]
    )
    return parquet_file(folder, table, name=name, content=DataFileContent.POSITION_DELETES)


def vector(folder: Path, file: DataFile, *positions: int) -> DataFile:
    path = folder / "deletes.puffin"
    encoded = encode_deletion_vectors(
        [(file, DeletionVector(positions))], file_path=f"file:{path}", created_by="test"
    )
    path.write_bytes(encoded.content)
    return encoded.delete_files[0]


def equality_deletes(
    folder: Path, file_name: str, deleted: Schema, /, *equality_ids: int, **columns: Any
) -> DataFile:
    wanted = equality_ids or tuple(field.field_id for field in deleted.fields)
    return parquet_file(
        folder,
        table_of(deleted, **columns),
        name=file_name,
        content=DataFileContent.EQUALITY_DELETES,
        equality_ids=wanted,
    )


# --- Positions -----------------------------------------------------------------------------------


def test_positions_of_this_file_are_deleted_and_those_of_others_are_not(tmp_path: Path) -> None:
    file = ten(tmp_path)
    deletes = position_deletes(
        tmp_path, "d.parquet", {file.file_path: [0, 9, 3], "file:/other": [1, 2]}
    )
    assert ids(task_of(file, deletes)) == [1, 2, 4, 5, 6, 7, 8]


def test_several_delete_files_add_up(tmp_path: Path) -> None:
    file = ten(tmp_path)
    first = position_deletes(tmp_path, "d1.parquet", {file.file_path: [1, 2]})
    second = position_deletes(tmp_path, "d2.parquet", {file.file_path: [2, 3]})
    assert ids(task_of(file, first, second, vector(tmp_path, file, 9))) == [0, 4, 5, 6, 7, 8]


def test_a_position_behind_the_end_deletes_nothing(tmp_path: Path) -> None:
    file = ten(tmp_path)
    assert ids(task_of(file, vector(tmp_path, file, 8, 10, 1 << 40))) == [*range(8), 9]


def test_positions_are_of_the_file_and_not_of_the_row_group_or_part(tmp_path: Path) -> None:
    file = ten(tmp_path, parquet={"row_group_size": 3})
    task = task_of(file, vector(tmp_path, file, 0, 4, 8))
    assert ids(*split_task(task, 1)) == [1, 2, 3, 5, 6, 7, 9]


def test_rows_of_an_unsorted_delete_file_are_found(tmp_path: Path) -> None:
    file = ten(tmp_path)
    rows = [(file.file_path, 7), ("file:/other", 1), (file.file_path, 2), (file.file_path, 7)]
    table = table_of(
        POSITION_DELETE_SCHEMA, file_path=[p for p, _ in rows], pos=[n for _, n in rows]
    )
    deletes = parquet_file(
        tmp_path, table, name="d.parquet", content=DataFileContent.POSITION_DELETES
    )
    assert ids(task_of(file, deletes)) == [0, 1, 3, 4, 5, 6, 8, 9]


def test_a_negative_position_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    file = ten(tmp_path)
    deletes = position_deletes(tmp_path, "d.parquet", {file.file_path: [-1]})
    with pytest.raises(InvalidMetadataError, match=r"d\.parquet"):
        ids(task_of(file, deletes))


def test_deleted_rows_are_marked_where_that_is_wanted(tmp_path: Path) -> None:
    file = ten(tmp_path, parquet={"row_group_size": 5})
    gone = equality_deletes(tmp_path, "e.parquet", schema(required(1, "id", LongType())), id=[8])
    read = read_of(IDS, columns=[IS_DELETED, ROW_POSITION])
    found = rows_of(read, task_of(file, vector(tmp_path, file, 6), gone))
    assert found == [(at in (6, 8), at) for at in range(10)]


# --- Values --------------------------------------------------------------------------------------


def test_rows_that_are_equal_in_all_compared_columns_are_deleted(tmp_path: Path) -> None:
    rows = table_of(IDS, id=[1, 1, 2, 2], name=["a", None, "a", None])
    file = parquet_file(tmp_path, rows)
    deletes = equality_deletes(tmp_path, "e.parquet", IDS, id=[1, 2], name=[None, "a"])
    read = read_of(IDS)
    assert rows_of(read, task_of(file, deletes)) == [(1, "a"), (2, None)]


def test_null_is_equal_to_null_and_nan_to_nan_but_not_minus_zero_to_zero(tmp_path: Path) -> None:
    known = schema(optional(1, "x", DoubleType()), optional(2, "n", LongType()))
    nan = float("nan")
    rows = table_of(known, x=[nan, None, 0.0, -0.0, 1.0, math.inf], n=range(6))
    file = parquet_file(tmp_path, rows)
    one = schema(known.fields[0])
    deletes = equality_deletes(tmp_path, "e.parquet", one, x=[-nan, None, -0.0, math.inf])
    read = read_of(known, columns=known.fields[1:])
    assert rows_of(read, task_of(file, deletes)) == [(2,), (4,)]


def test_delete_files_of_other_columns_are_sets_of_their_own(tmp_path: Path) -> None:
    file = ten(tmp_path)
    by_id = equality_deletes(tmp_path, "e1.parquet", schema(IDS.fields[0]), id=[3])
    more = equality_deletes(tmp_path, "e2.parquet", schema(IDS.fields[0]), id=[4])
    by_name = equality_deletes(tmp_path, "e3.parquet", schema(IDS.fields[1]), name=["n5"])
    assert ids(task_of(file, by_id, more, by_name)) == [0, 1, 2, 6, 7, 8, 9]


def test_a_delete_file_may_hold_more_columns_than_it_compares(tmp_path: Path) -> None:
    deletes = equality_deletes(tmp_path, "e.parquet", IDS, 1, id=[3], name=["other"])
    assert ids(task_of(ten(tmp_path), deletes)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_a_column_that_is_not_wanted_or_dropped_or_promoted_is_compared(tmp_path: Path) -> None:
    stored = schema(optional(1, "id", IntegerType()), optional(3, "old", StringType()))
    file = parquet_file(tmp_path, table_of(stored, id=[1, 2], old=["a", "b"]))
    dropped = equality_deletes(tmp_path, "e.parquet", schema(stored.fields[1]), old=["b"])
    promoted = equality_deletes(
        tmp_path, "f.parquet", schema(optional(1, "id", LongType())), id=[1 << 40]
    )
    now = replace(IDS, schema_id=1)
    read = read_of(now, stored, columns=[IDS.fields[0]])
    assert rows_of(read, task_of(file, dropped, promoted)) == [(1,)]


def test_a_column_that_is_younger_than_the_file_is_compared_by_its_default(tmp_path: Path) -> None:
    young = replace(optional(3, "kind", StringType()), initial_default="x")
    grown = schema(*IDS.fields, young)
    deletes = equality_deletes(tmp_path, "e.parquet", schema(young), kind=["x"])
    kept = equality_deletes(tmp_path, "f.parquet", schema(young), kind=["y", None])
    read, file = read_of(grown, columns=[IDS.fields[0]]), ten(tmp_path)
    assert rows_of(read, task_of(file, kept)) == [(at,) for at in range(10)]
    assert rows_of(read, task_of(file, deletes)) == []


def test_a_column_inside_a_struct_is_compared(tmp_path: Path) -> None:
    inner = struct(optional(5, "x", LongType()), optional(6, "y", LongType()))
    known = schema(required(1, "id", LongType()), optional(4, "s", inner))
    rows = table_of(known, id=[0, 1, 2, 3], s=[{"x": 1, "y": 1}, {"x": 1, "y": 2}, None, {"x": 2}])
    file = parquet_file(tmp_path, rows)
    narrow = schema(optional(4, "s", struct(optional(5, "x", LongType()))))
    deletes = equality_deletes(tmp_path, "e.parquet", narrow, 5, s=[{"x": 1}, None])
    read = read_of(known, columns=[known.fields[0]])
    assert rows_of(read, task_of(file, deletes)) == [(3,)]


def test_deletes_of_an_unknown_column_are_an_error(tmp_path: Path) -> None:
    deletes = equality_deletes(tmp_path, "e.parquet", schema(IDS.fields[0]), 9, id=[3])
    with pytest.raises(InvalidMetadataError, match=r"e\.parquet.*9"):
        ids(task_of(ten(tmp_path), deletes))


def test_random_deletes_of_several_columns_are_those_that_python_finds(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    known = schema(
        optional(1, "a", LongType()), optional(2, "b", StringType()), optional(3, "c", DoubleType())
    )

    def row() -> tuple[object, ...]:
        return (
            chance.choice([None, 1, 2, -3]),
            chance.choice([None, "", "x", "yy"]),
            chance.choice([None, 0.0, -0.0, 1.5]),
        )

    rows, gone = [row() for _ in range(300)], [row() for _ in range(40)]
    file = parquet_file(tmp_path, columns_of(known, rows), parquet={"row_group_size": 100})
    deletes = parquet_file(
        tmp_path,
        columns_of(known, gone),
        name="e.parquet",
        content=DataFileContent.EQUALITY_DELETES,
        equality_ids=(1, 2, 3),
    )
    found = rows_of(read_of(known), task_of(file, deletes))
    dead = set(map(repr, gone))
    assert list(map(repr, found)) == [repr(one) for one in rows if repr(one) not in dead]


def columns_of(known: Schema, rows: list[tuple[object, ...]]) -> pa.Table:
    names = [field.name for field in known.fields]
    return table_of(known, **dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


# --- Memory --------------------------------------------------------------------------------------


def test_a_set_that_is_too_large_is_made_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = ten(tmp_path, parquet={"row_group_size": 4})
    files = [
        equality_deletes(tmp_path, f"e{at}.parquet", schema(IDS.fields[0]), id=[at, at + 5])
        for at in range(4)
    ]
    task = task_of(file, vector(tmp_path, file, 4), *files)
    assert ids(task) == [9]
    monkeypatch.setattr(deleted_values, "SET_BYTES_MAX", 1)
    assert ids(task) == [9]
    read = read_of(IDS, columns=[IS_DELETED, ROW_POSITION])
    assert rows_of(read, task) == [(at != 9, at) for at in range(10)]


class Opened(StoredFiles):
    """Remembers which files were opened."""

    names: list[str]

    def __call__(self, location: str) -> pa.NativeFile:
        self.names.append(location.rpartition("/")[2])
        return super().__call__(location)


def opened_by_two_tasks(tmp_path: Path, cache: DeleteCache) -> list[str]:
    file = ten(tmp_path)
    deletes = [
        position_deletes(tmp_path, "d.parquet", {file.file_path: [1], "file:/other": [2]}),
        vector(tmp_path, file, 2),
        equality_deletes(tmp_path, "e.parquet", schema(IDS.fields[0]), id=[3]),
    ]
    opener = Opened(USUAL_ACCESS)
    object.__setattr__(opener, "names", [])
    for _ in range(2):
        batches = list(read_task(READ, task_of(file, *deletes), opener, cache))
        assert pa.Table.from_batches(batches).column(0).to_pylist() == [0, 4, 5, 6, 7, 8, 9]
    return sorted(opener.names)


def test_delete_files_are_read_once_for_all_tasks_of_a_process(tmp_path: Path) -> None:
    assert opened_by_two_tasks(tmp_path, DeleteCache()) == [
        *["d.parquet", "data.parquet", "data.parquet", "deletes.puffin", "e.parquet"]
    ]


def test_what_is_too_large_to_be_kept_is_read_again(tmp_path: Path) -> None:
    cache = DeleteCache(entry_bytes_max=0)
    assert len(opened_by_two_tasks(tmp_path, cache)) == 8
    assert cache.size_bytes == 0


def test_the_least_recently_used_content_makes_room() -> None:
    cache = DeleteCache(bytes_max=10, entry_bytes_max=8)
    for key in ("a", "b"):
        cache.keep(key, key, 5)
    assert cache.find("a") == "a"
    cache.keep("c", "c", 5)
    assert [cache.find(key) for key in "abc"] == ["a", None, "c"]
    cache.keep("d", "d", 9)
    cache.keep("c", "new", 1)
    assert (cache.find("d"), cache.find("c"), cache.size_bytes) == (None, "new", 6)


# --- Counts --------------------------------------------------------------------------------------


def counted(task: FileScanTask) -> int:
    return count_rows(READ, task, StoredFiles(USUAL_ACCESS), DeleteCache())


def test_rows_are_counted_without_the_data_file_unless_values_decide(tmp_path: Path) -> None:
    file = ten(tmp_path)
    by_position = vector(tmp_path, file, 2, 9, 10, 1 << 40)
    twice = position_deletes(tmp_path, "d.parquet", {file.file_path: [2, 3, 11]})
    by_value = equality_deletes(tmp_path, "e.parquet", schema(IDS.fields[0]), id=[4])
    assert counted(task_of(file, by_value, by_position)) == 7
    assert counted(task_of(file, residual=parse_where("id > 6"))) == 3
    (tmp_path / "data.parquet").unlink()
    assert counted(task_of(file)) == 10
    assert counted(task_of(file, by_position, twice)) == 7
    with pytest.raises(NotFoundError):
        counted(task_of(file, by_value))
