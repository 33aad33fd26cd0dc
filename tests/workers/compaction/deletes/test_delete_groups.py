"""Which delete files are rewritten, in which groups, and that the rows stay as they were.

Rows are those that our reader reads of real files, before and after.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from committer.iceberg.entry.data_file import (
    DataFile,
    is_equality_delete_file,
    is_position_delete_file,
)
from tests.workers.compaction.deletes.tables_with_deletes import Table
from workers.compaction.deletes.delete_groups import (
    DeletesGroup,
    group_equalities,
    group_positions,
)
from workers.compaction.rewrite_groups import RewriteSizes
from workers.files.deletes.position_delete_writer import DeleteForm

SIZES = RewriteSizes(1 << 20, 700 << 10, 2 << 20, input_files=2)
FORMS: tuple[DeleteForm, ...] = ("vectors", "files", "partitions")


def every(_: DataFile) -> bool:
    return True


def conversions(table: Table, **about: Any) -> list[DeletesGroup]:
    return group_equalities(table.live(), every, **about)


def joined(table: Table, form: DeleteForm = "partitions", **sizes: Any) -> list[DeletesGroup]:
    return group_positions(table.live(), replace(SIZES, **sizes), every, form)


def kinds(table: Table) -> tuple[int, int, int]:
    """Count vectors, files of position deletes, files of equality deletes."""
    files = [entry.data_file for entry in table.deletes]
    vectors = sum(file.is_deletion_vector for file in files)
    positions = sum(map(is_position_delete_file, files))
    return vectors, positions, sum(map(is_equality_delete_file, files))


# --- Equality deletes ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_a_delete_by_value_becomes_positions_of_older_data_of_its_partition_alone(
    tmp_path: Path, form: DeleteForm
) -> None:
    table = Table(tmp_path)
    old, other = table.append([1, 2, 3]), table.append([1, 2], "w")
    table.delete_ids([2, 7])
    new = table.append([2, 9])
    before = table.rows()
    [group] = conversions(table)
    assert [task.file.file_path for task in group.tasks] == [old.file_path]
    [written] = table.rewrite(group, form)
    assert (
        table.rows()
        == before
        == sorted([(1, "e"), (3, "e"), (1, "w"), (2, "w"), (2, "e"), (9, "e")])
    )
    assert (written.record_count, kinds(table)[2]) == (1, 0)
    [left] = [task for task in table.live().tasks if task.delete_files]
    assert left.file.file_path == old.file_path
    assert {new.file_path, other.file_path}.isdisjoint({left.file.file_path})


def test_deletes_of_an_unpartitioned_spec_join_the_groups_of_all_partitions(
    tmp_path: Path,
) -> None:
    table = Table(tmp_path)
    for region in "ewn":
        table.append([1, 2, 3], region)
    table.delete_ids([1], "e")
    table.delete_ids([2], "w")
    assert [len(group.removed) for group in conversions(table)] == [1, 1]
    table.delete_ids([3], spec_id=0)
    [group] = conversions(table)
    assert (len(group.removed), len(group.tasks)) == (3, 3)
    before = table.rows()
    table.rewrite(group, "vectors")
    assert table.rows() == before and kinds(table) == (3, 0, 0)


def test_of_many_deletes_the_oldest_are_converted_with_all_of_their_data(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.append([1, 2, 3])
    table.delete_ids([1])
    table.append([4, 5, 6])
    newest = table.delete_ids([2, 5])
    before = table.rows()
    [group] = conversions(table, files_max=1)
    assert [entry.data_file.file_path for entry in group.removed] != [newest.file_path]
    table.rewrite(group, "vectors")
    assert table.rows() == before and kinds(table) == (1, 0, 1)
    assert conversions(table, files_min=2) == []
    [rest] = conversions(table)
    table.rewrite(rest, "vectors")
    assert table.rows() == before and kinds(table) == (2, 0, 0)


def test_a_delete_that_matches_nothing_goes_without_a_trace(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.append([1, 3])
    table.delete_ids([2])
    [group] = conversions(table)
    assert table.rewrite(group, "vectors") == [] and table.deletes == []


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_were_deleted_by_position_stay_deleted(tmp_path: Path, form: DeleteForm) -> None:
    table = Table(tmp_path)
    file = table.append([1, 2, 3, 4])
    if form == "vectors":
        table.vector(file, 0)
    else:
        table.delete_positions({file.file_path: [0]})
    table.delete_ids([1, 3])
    before = table.rows()
    [group] = conversions(table)
    [written] = table.rewrite(group, form)
    assert table.rows() == before == [(2, "e"), (4, "e")]
    # A vector, or the only file of a data file, holds what it replaces; another repeats nothing.
    assert written.record_count == (1 if form == "partitions" else 2)
    assert len(table.deletes) == (2 if form == "partitions" else 1)


def test_what_a_filter_leaves_out_stays(tmp_path: Path) -> None:
    table = Table(tmp_path)
    for region in "ew":
        table.append([1, 2], region)
        table.delete_ids([1], region)
    [group] = group_equalities(table.live(), lambda file: file.partition == ("w",))
    before = table.rows()
    table.rewrite(group, "vectors")
    assert table.rows() == before and kinds(table) == (1, 0, 1)


# --- Position deletes ----------------------------------------------------------------------------


def test_small_files_of_a_partition_become_one_and_rows_of_gone_data_are_left_out(
    tmp_path: Path,
) -> None:
    table = Table(tmp_path)
    files = [table.append(range(at, at + 4)) for at in (0, 10, 20)]
    for at, file in enumerate(files):
        table.delete_positions({file.file_path: [at], "file:/gone.parquet": [7]})
    table.delete_positions({"file:/gone.parquet": [8]})
    table.append([1, 2], "w")
    before = table.rows()
    [group] = joined(table)
    [written] = table.rewrite(group, "partitions")
    assert table.rows() == before
    assert (written.record_count, kinds(table)) == (3, (0, 1, 0))


def test_few_files_and_those_of_the_right_size_stay(tmp_path: Path) -> None:
    table = Table(tmp_path)
    file = table.append([1, 2, 3])
    table.delete_positions({file.file_path: [0]})
    assert joined(table) == []
    table.delete_positions({file.file_path: [1]})
    assert len(joined(table)) == 1
    assert joined(table, input_files=3) == []
    assert joined(table, min_bytes=0) == []
    assert len(joined(table, min_bytes=0, rewrites_all=True)) == 1
    assert len(joined(table, group_bytes=1, rewrites_all=True)) == 2


def test_files_of_single_data_files_stay_unless_there_are_several_of_one(tmp_path: Path) -> None:
    table = Table(tmp_path)
    first, second = table.append([1, 2, 3]), table.append([4, 5, 6])
    for file in (first, second):
        table.delete_positions({file.file_path: [0]})
    assert joined(table, "files") == [] and len(joined(table)) == 1
    assert len(joined(table, "files", rewrites_all=True)) == 1
    table.delete_positions({first.file_path: [1]})
    before = table.rows()
    [group] = joined(table, "files")
    table.rewrite(group, "files")
    assert table.rows() == before and kinds(table) == (0, 2, 0)


def test_all_position_deletes_of_a_partition_become_vectors_but_for_hidden_ones(
    tmp_path: Path,
) -> None:
    table = Table(tmp_path)
    first, second, third = (table.append(range(at, at + 4)) for at in (0, 10, 20))
    table.delete_positions({first.file_path: [0], second.file_path: [1]})
    table.delete_positions({second.file_path: [2]})
    table.delete_positions({third.file_path: [3]})
    # Its vector holds what was deleted before, and hides the file.
    table.vector(third, 2, 3)
    before = table.rows()
    # However few they are.
    [group] = joined(table, "vectors", input_files=100)
    written = table.rewrite(group, "vectors")
    assert table.rows() == before and kinds(table) == (3, 0, 0)
    assert [file.record_count for file in written] == [1, 2]


def test_a_position_delete_that_is_older_than_its_data_is_not_brought_to_life(
    tmp_path: Path,
) -> None:
    table = Table(tmp_path)
    file = table.append([1, 2])
    early = table.delete_positions({file.file_path: [0], "file:/other.parquet": [0]})
    table.data[0] = replace(table.data[0], sequence_number=table.number + 1)
    table.number += 1
    table.delete_positions({file.file_path: [1], "file:/other.parquet": [1]})
    assert table.rows() == [(1, "e")]
    [group] = joined(table)
    assert early in [entry.data_file for entry in group.removed]
    table.rewrite(group, "partitions")
    assert table.rows() == [(1, "e")]


# --- Any table -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(4))
def test_no_rewrite_of_any_deletes_changes_a_row(
    tmp_path: Path, form: DeleteForm, seed: int
) -> None:
    chance = random.Random(f"{form}{seed}")
    table = Table(tmp_path)
    vectors: set[str] = set()
    for _ in range(24):
        region, spec_id = chance.choice("ew"), chance.choice([0, 1, 1])
        what = chance.choice(["append", "append", "value", "position", "rewrite", "join"])
        of_region = [e.data_file for e in table.data if e.data_file.partition == (region,)]
        if what == "append":
            table.append(chance.sample(range(12), 5), region, spec_id)
        elif what == "value":
            table.delete_ids(chance.sample(range(12), 2), region, spec_id)
        elif what == "position" and form == "vectors":
            fresh = [file for file in of_region if file.file_path not in vectors]
            fresh = [f for f in fresh if not _has_vector(table, f)]
            if fresh:
                vectors.add(fresh[0].file_path)
                table.vector(fresh[0], chance.randrange(5))
        elif what == "position" and of_region:
            some = chance.sample(of_region, min(2, len(of_region)))
            table.delete_positions({f.file_path: [chance.randrange(5)] for f in some}, region)
        elif what == "rewrite":
            _keeps_rows(table, conversions(table, files_max=chance.choice([1, 2, 9])), form)
        elif what == "join":
            _keeps_rows(table, joined(table, form), form)
    _keeps_rows(table, conversions(table), form)
    assert kinds(table)[2] == 0


def _has_vector(table: Table, file: DataFile) -> bool:
    return any(e.data_file.referenced_data_file == file.file_path for e in table.deletes)


def _keeps_rows(table: Table, groups: list[DeletesGroup], form: DeleteForm) -> None:
    before = table.rows()
    for group in groups:
        table.rewrite(group, form)
        assert table.rows() == before


# --- Deletes of nothing --------------------------------------------------------------------------


def unused(table: Table) -> set[str]:
    return {entry.data_file.file_path for entry in table.live().unused()}


def test_a_delete_is_unused_once_no_older_data_of_its_partition_is_left(tmp_path: Path) -> None:
    table = Table(tmp_path)
    early = table.delete_ids([1])
    file = table.append([1, 2])
    used = table.delete_ids([1])
    elsewhere = table.delete_ids([1], "w")
    other_values = table.delete_ids([5])
    everywhere = table.delete_ids([1], spec_id=0)
    by_path = table.delete_positions({file.file_path: [1]})
    gone = table.delete_positions({"file:/gone.parquet": [1]})
    # Test files have no metrics: any value may be in them.
    assert other_values.file_path not in unused(table)
    assert unused(table) == {one.file_path for one in (early, elsewhere, gone)}
    table.vector(file, 0, 1)
    assert unused(table) == {one.file_path for one in (early, elsewhere, gone, by_path)}
    table.data.clear()
    assert {used.file_path, everywhere.file_path} <= unused(table)
