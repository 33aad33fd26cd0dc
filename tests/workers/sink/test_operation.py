from __future__ import annotations

from dataclasses import replace

import pytest

from committer.errors import SettingsError
from committer.iceberg.values.types import LongType
from committer.request.needs import Needs
from tests.support.builders.table_builders import build_table
from tests.support.workers.tables import optional, schema
from workers.files.store_access import USUAL_ACCESS
from workers.settings.options import WriteOptions
from workers.settings.overwrite_options import OverwriteOptions
from workers.settings.wap import Destination
from workers.sink.operation import WriteOperation, check_filter, operation_of
from workers.sink.target import TableHead, TargetTable
from workers.upserts.upsert import Upsert

EMPTY = TargetTable.of("db.t", build_table(warehouse="memory://w").metadata, USUAL_ACCESS)
TARGET = replace(EMPTY, head=TableHead(4711, 42))
BASE = {"base_snapshot_id": 4711, "base_sequence_number": 42}


def operation(
    overwrite: OverwriteOptions | None, target: TargetTable = TARGET, **options: object
) -> WriteOperation:
    written = WriteOptions("db.t", {}, overwrite=overwrite)
    return operation_of(replace(written, **options), target)  # type: ignore[arg-type]


def test_a_plain_write_is_an_append_without_needs() -> None:
    found = operation(None)
    assert (found.name, found.needs, found.takes_none, found.is_in_order) == (
        "append",
        Needs(),
        False,
        False,
    )


def test_the_base_is_the_head_of_the_branch_that_the_session_names() -> None:
    overwrite = OverwriteOptions(isolation_level="snapshot")
    heads = {"main": TableHead(4711, 42), "audit": TableHead(4712, 43)}
    target, options = replace(TARGET, heads=heads), WriteOptions("db.t", {}, overwrite=overwrite)
    ids = [
        operation_of(options, target, Destination(branch)).needs.base_snapshot_id
        for branch in ("main", "audit", "new")
    ]
    # A branch that is not there begins at the head of main.
    assert ids == [4711, 4712, 4711]


def test_a_static_overwrite_removes_all_rows_also_without_new_ones() -> None:
    found = operation(OverwriteOptions())
    assert (found.name, found.needs) == ("overwrite", Needs(row_filter=True))
    assert found.takes_none
    assert found.is_in_order


def test_a_filter_is_sent_as_the_committer_reads_it() -> None:
    found = operation(OverwriteOptions(filter="Id >= 7 and carrier in ('AA', 'UA')"))
    assert found.needs.row_filter == {
        "type": "and",
        "left": {"type": "gt-eq", "term": "Id", "value": 7},
        "right": {"type": "in", "term": "carrier", "values": ["AA", "UA"]},
    }
    assert not found.needs.case_sensitive


def test_a_dynamic_overwrite_of_no_rows_does_nothing() -> None:
    found = operation(OverwriteOptions(mode="dynamic"))
    assert (found.name, found.needs) == ("replace-partitions", Needs())
    assert not found.takes_none
    assert found.is_in_order


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_without_a_base_the_isolation_level_holds_since_the_write_began(mode: str) -> None:
    isolated = OverwriteOptions(mode=mode, isolation_level="snapshot")  # type: ignore[arg-type]
    assert operation(isolated).needs.model_dump(exclude_defaults=True).items() >= BASE.items()
    needs = operation(isolated, EMPTY).needs
    assert (needs.base_snapshot_id, needs.base_sequence_number) == (None, 0)


def test_a_named_base_is_the_base() -> None:
    needs = operation(OverwriteOptions(isolation_level="serializable", base_snapshot_id=9)).needs
    assert (needs.base_snapshot_id, needs.base_sequence_number) == (9, None)
    assert needs.isolation_level == "serializable"


def test_a_conflict_is_kept_or_only_told() -> None:
    assert operation(OverwriteOptions()).needs.on_conflict == "quarantine"
    assert operation(OverwriteOptions(), on_conflict="fail").needs.on_conflict == "fail"


def test_an_upsert_is_a_row_delta_that_has_read_nothing() -> None:
    found = operation(None, upsert=Upsert(("id",)))
    assert (found.name, found.needs, found.takes_none) == ("row-delta", Needs(), False)
    assert found.is_in_order


@pytest.mark.parametrize("text", ["id >", "other = 1", "id = 'x'"])
def test_a_filter_that_does_not_fit_the_table_is_refused_before_rows_are_written(text: str) -> None:
    table = schema(optional(1, "ID", LongType()))
    check_filter(OverwriteOptions(filter="id = 1"), table)
    check_filter(OverwriteOptions(), table)
    with pytest.raises(SettingsError, match="option `overwrite-filter`"):
        check_filter(OverwriteOptions(filter=text), table)
