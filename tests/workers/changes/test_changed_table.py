"""What a table's properties and files say of a change, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast
from uuid import UUID

import pytest

from committer.errors import SettingsError
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.expressions.expression import (
    ALWAYS_TRUE,
    EqualTo,
    Expression,
    GreaterThan,
    Reference,
)
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import new_table_metadata
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.partition_spec import UNPARTITIONED
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.values.single_value import encode_value
from committer.iceberg.values.types import DoubleType, LongType, NestedField, StringType
from committer.request.needs import Needs
from committer.request.table_identifier import TableIdentifier
from committer.table_reader import TableReader
from workers.branches.branch_state import BranchState
from workers.changes.change_options import ChangeOptions, Command
from workers.changes.change_run import isolation_needs, removal_needs
from workers.changes.changed_rows import removes_whole_files
from workers.changes.changed_table import ChangedTable, for_tasks
from workers.changes.spark_conditions import ALL_ROWS, RowFilter
from workers.files.store_access import USUAL_ACCESS
from workers.settings.wap import TO_MAIN
from workers.settings.worker_settings import WorkerSettings

SCHEMA = Schema((NestedField(1, "id", LongType(), False),))
ABOVE_5 = GreaterThan(Reference("id"), 5)


def table(version: int = 2, /, **properties: str) -> ChangedTable:
    metadata = new_table_metadata(
        table_uuid=UUID(int=1),
        location="file:/t",
        schema=SCHEMA,
        partition_spec=UNPARTITIONED,
        sort_order=UNSORTED,
        properties={name.replace("__", "-").replace("_", "."): v for name, v in properties.items()},
        format_version=version,
        now_ms=1,
    )
    state = BranchState(
        TableIdentifier.parse("db.t"),
        TO_MAIN,
        cast(WorkerSettings, None),
        metadata,
        None,
        USUAL_ACCESS,
        cast(TableReader, None),
    )
    return ChangedTable(ChangeOptions("db.t", {}), state)


def file(low: int, high: int) -> DataFile:
    return DataFile(
        file_path=f"f{low}",
        record_count=10,
        file_size_in_bytes=100,
        value_counts={1: 10},
        null_value_counts={1: 0},
        lower_bounds={1: encode_value(LongType(), low)},
        upper_bounds={1: encode_value(LongType(), high)},
    )


MODES: Mapping[tuple[int, str, str], str | None] = {
    (1, "merge-on-read", "file"): None,
    (2, "copy-on-write", "file"): None,
    (2, "merge-on-read", "file"): "files",
    (2, "merge-on-read", "partition"): "partitions",
    (3, "copy-on-write", "file"): None,
    (3, "Merge-On-Read", "partition"): "vectors",
}


@pytest.mark.parametrize("command", ["delete", "update", "merge"])
def test_the_form_of_deletes_follows_version_mode_and_granularity(command: Command) -> None:
    for (version, mode, granularity), form in MODES.items():
        modes = {f"write_{command}_mode": mode, "write_delete_granularity": granularity}
        assert table(version, **modes).delete_form(command) == form
    assert table(3).delete_form(command) is None
    with pytest.raises(SettingsError, match=f"`write.{command}.mode` is `both`, expected"):
        table(**{f"write_{command}_mode": "both"}).delete_form(command)


def test_a_mode_is_of_its_command_alone() -> None:
    found = table(2, write_delete_mode="merge-on-read")
    assert [found.delete_form(one) for one in ("delete", "update", "merge")] == [
        "files",
        None,
        None,
    ]


def test_what_others_must_not_have_done_is_the_tables_word_and_the_scope_of_the_read() -> None:
    scope = RowFilter(EqualTo(Reference("id"), 7), True)
    assert isolation_needs(table(), "merge", ALL_ROWS) == {"isolation_level": "serializable"}
    snapshot = table(write_merge_isolation__level="snapshot")
    assert isolation_needs(snapshot, "merge", scope) == {
        "isolation_level": "snapshot",
        "conflict_filter": {"type": "eq", "term": "id", "value": 7},
    }
    assert isolation_needs(snapshot, "delete", scope)["isolation_level"] == "serializable"
    # No property lets a key have two rows.
    snapshot = table(write_upsert_isolation__level="snapshot")
    assert isolation_needs(snapshot, "upsert", scope)["isolation_level"] == "serializable"


def test_positions_are_deleted_in_the_form_of_the_table_whatever_the_mode_of_its_merges() -> None:
    assert table(3, write_merge_mode="copy-on-write").position_form == "vectors"
    assert table().position_form == "files"
    assert table(write_delete_granularity="partition").position_form == "partitions"


def test_the_base_is_the_snapshot_that_was_read() -> None:
    empty = table()
    assert empty.base() == {"base_sequence_number": 0}
    snapshot = Snapshot(snapshot_id=9, sequence_number=3, timestamp_ms=1, manifest_list="m")
    written = ChangedTable(empty.options, replace(empty.state, snapshot=snapshot))
    assert written.base() == {"base_snapshot_id": 9}


def test_whole_files_are_removed_only_where_all_rows_surely_match() -> None:
    def is_whole(found: RowFilter, *tasks: tuple[DataFile, Expression]) -> bool:
        planned = [FileScanTask(one, (), residual) for one, residual in tasks]
        return removes_whole_files(table(), planned, found)

    above, across = (file(6, 9), ABOVE_5), (file(5, 9), ABOVE_5)
    by_partition = (file(0, 9), ALWAYS_TRUE)
    assert is_whole(RowFilter(ABOVE_5, True), above, by_partition)
    assert not is_whole(RowFilter(ABOVE_5, True), above, across)
    assert not is_whole(RowFilter(ABOVE_5, False), above)
    assert is_whole(ALL_ROWS, (file(0, 9), ALWAYS_TRUE))
    assert not is_whole(RowFilter(ALWAYS_TRUE, False), (file(0, 9), ALWAYS_TRUE))


def test_tasks_get_neither_filters_nor_metrics() -> None:
    deletes = (file(1, 2),)
    sent = for_tasks(FileScanTask(file(0, 9), deletes, ABOVE_5))
    assert (sent.residual, sent.file.lower_bounds) == (ALWAYS_TRUE, None)
    assert sent.delete_files == deletes


def test_filters_name_columns_that_the_table_has_already_with_their_types() -> None:
    name = NestedField(2, "name", StringType(), False)
    found = replace(table(), wider_schema=Schema((*SCHEMA.fields, name)))
    assert found.schema.fields == (*SCHEMA.fields, name)
    assert found.filter_schema.fields == SCHEMA.fields
    wider = NestedField(1, "id", DoubleType(), False)
    assert replace(table(), wider_schema=Schema((wider, name))).filter_schema.fields == ()
    assert table().filter_schema == SCHEMA


def test_a_file_that_the_table_holds_twice_is_removed_by_one_name() -> None:
    file = DataFile(file_path="a", record_count=9, file_size_in_bytes=9)
    vector = DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path="v",
        file_format="PUFFIN",
        record_count=1,
        file_size_in_bytes=50,
        referenced_data_file="a",
        content_offset=4,
        content_size_in_bytes=40,
    )
    task = FileScanTask(file, (vector,), ALWAYS_TRUE)
    other = FileScanTask(replace(file, file_path="b"), (), ALWAYS_TRUE)
    needs = Needs.model_validate(removal_needs([task, other, task]))
    assert needs.removed_data_files == ("a", "b")
    assert [one.file_path for one in needs.removed_delete_files] == ["v"]
