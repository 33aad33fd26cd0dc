"""A table as `frazil.load_table` reads it is what PyIceberg reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import frazil
from committer.iceberg.metadata.snapshot import print_snapshot, print_snapshot_ref
from committer.iceberg.schema.partition_spec import print_partition_spec
from committer.iceberg.schema.schema import print_schema
from committer.iceberg.schema.sort_order import print_sort_order
from tests.frazil.lake import COLUMNS, NAME, make_table, rows, with_delay


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def theirs(home: Path) -> Any:
    return make_table(home)


@pytest.fixture
def ours(home: Path, theirs: Any) -> frazil.Table:
    return frazil.load_table(NAME, home=str(home))


def json_of(value: Any) -> Any:
    """Return the JSON form without empty identifier fields, which PyIceberg prints."""
    found = json.loads(value.model_dump_json())
    return {key: each for key, each in found.items() if (key, each) != ("identifier-field-ids", [])}


def by_id(found: dict[Any, Any], form: Callable[[Any], Any]) -> dict[Any, Any]:
    return {key: form(value) for key, value in found.items()}


# --- Metadata ------------------------------------------------------------------------------------


def test_schemas_specs_and_orders_are_those_that_pyiceberg_reads(
    ours: frazil.Table, theirs: Any
) -> None:
    assert by_id(ours.schemas(), print_schema) == by_id(theirs.schemas(), json_of)
    assert by_id(ours.specs(), print_partition_spec) == by_id(theirs.specs(), json_of)
    assert by_id(ours.sort_orders(), print_sort_order) == by_id(theirs.sort_orders(), json_of)
    assert print_schema(ours.schema()) == json_of(theirs.schema())
    assert print_partition_spec(ours.spec()) == json_of(theirs.spec())
    assert print_sort_order(ours.sort_order()) == json_of(theirs.sort_order())
    assert len(ours.schemas()) == len(ours.specs()) == 2


def test_what_a_table_says_of_itself_is_what_pyiceberg_reads(
    ours: frazil.Table, theirs: Any
) -> None:
    assert ours.name() == theirs.name()
    assert ours.location() == theirs.location()
    assert ours.metadata_location == theirs.metadata_location
    assert ours.format_version == theirs.format_version
    assert ours.properties == theirs.properties
    assert ours.last_sequence_number == theirs.last_sequence_number == 5
    assert ours.last_partition_id() == theirs.last_partition_id()
    assert ours.metadata.table_uuid == theirs.metadata.table_uuid
    assert repr(ours) == f"Table('db.flights', '{theirs.metadata_location}')"


def test_snapshots_refs_and_history_are_those_that_pyiceberg_reads(
    ours: frazil.Table, theirs: Any
) -> None:
    assert [print_snapshot(one) for one in ours.snapshots()] == list(
        map(json_of, theirs.snapshots())
    )
    assert by_id(ours.refs(), print_snapshot_ref) == by_id(theirs.refs(), json_of)
    assert [(one.timestamp_ms, one.snapshot_id) for one in ours.history()] == [
        (one.timestamp_ms, one.snapshot_id) for one in theirs.history()
    ]
    assert set(ours.refs()) == {"main", "then", "audit"}


def id_of(snapshot: Any) -> int | None:
    return None if snapshot is None else int(snapshot.snapshot_id)


def test_snapshots_are_found_as_pyiceberg_finds_them(ours: frazil.Table, theirs: Any) -> None:
    assert id_of(ours.current_snapshot()) == id_of(theirs.current_snapshot())
    for name in ("main", "then", "audit", "none"):
        assert id_of(ours.snapshot_by_name(name)) == id_of(theirs.snapshot_by_name(name))
    for snapshot_id in (theirs.snapshots()[1].snapshot_id, 7):
        assert id_of(ours.snapshot_by_id(snapshot_id)) == id_of(theirs.snapshot_by_id(snapshot_id))
    for entry in theirs.history():
        for time_ms in (entry.timestamp_ms - 1, entry.timestamp_ms, entry.timestamp_ms + 1):
            for inclusive in (True, False):
                assert id_of(ours.snapshot_as_of_timestamp(time_ms, inclusive)) == id_of(
                    theirs.snapshot_as_of_timestamp(time_ms, inclusive)
                )


# --- Scans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row_filter",
    ["carrier = 'UA'", "carrier = 'UA' and id < 15", "id > 20", "delay is null", "id > 1000"],
)
def test_a_scan_plans_the_files_that_pyiceberg_plans(
    ours: frazil.Table, theirs: Any, row_filter: str
) -> None:
    planned = ours.scan(row_filter).plan_files()
    wanted = theirs.scan(row_filter).plan_files()
    assert {task.file.file_path for task in planned} == {task.file.file_path for task in wanted}
    assert {task.file.record_count for task in planned} == {
        task.file.record_count for task in wanted
    }
    everything = ours.scan().filter(row_filter).plan_files()
    assert everything == planned


def test_a_scan_of_a_snapshot_or_a_ref_plans_what_pyiceberg_plans(
    ours: frazil.Table, theirs: Any
) -> None:
    for snapshot in theirs.snapshots():
        chosen = {"snapshot_id": snapshot.snapshot_id}
        assert paths(ours.scan(**chosen)) == paths(theirs.scan(**chosen))
    for name in ("then", "audit"):
        assert paths(ours.scan().use_ref(name)) == paths(theirs.scan().use_ref(name))
    assert paths(ours.scan().use_ref("audit")) != paths(ours.scan())


def paths(scan: Any) -> set[str]:
    return {task.file.file_path for task in scan.plan_files()}


@pytest.mark.parametrize("fields", [("*",), ("id",), ("route.km", "carrier"), ("route",)])
def test_a_projection_is_that_of_pyiceberg(
    ours: frazil.Table, theirs: Any, fields: tuple[str, ...]
) -> None:
    for snapshot_id in (None, theirs.snapshots()[0].snapshot_id):
        found = ours.scan(selected_fields=fields, snapshot_id=snapshot_id).projection()
        wanted = theirs.scan(selected_fields=fields, snapshot_id=snapshot_id).projection()
        assert print_schema(found) == json_of(wanted)
    assert (
        ours.scan().select(*fields).projection() == ours.scan(selected_fields=fields).projection()
    )


def test_names_of_columns_may_be_spelled_in_any_case(ours: frazil.Table) -> None:
    scan = ours.scan("CARRIER = 'UA'", selected_fields=("ID",))
    with pytest.raises(frazil.InvalidFilterError, match="no column `CARRIER`"):
        scan.plan_files()
    with pytest.raises(frazil.InvalidFilterError, match="no column `ID`: expected some of `id`"):
        scan.projection()
    loose = scan.with_case_sensitive(False)
    assert loose.plan_files() == ours.scan("carrier = 'UA'").plan_files()
    assert [field.name for field in loose.projection().fields] == ["id"]


def test_metrics_come_when_they_are_asked_for(ours: frazil.Table) -> None:
    assert all(task.file.value_counts is None for task in ours.scan().plan_files())
    assert all(task.file.value_counts for task in ours.scan().plan_files(with_metrics=True))


def test_what_is_not_there_is_told_with_what_to_ask(ours: frazil.Table) -> None:
    with pytest.raises(frazil.NotFoundError, match=r"db\.flights: .* snapshot 7; `snapshots\(\)`"):
        ours.scan(snapshot_id=7).plan_files()
    with pytest.raises(frazil.NotFoundError, match=r"db\.flights: .* tag `none`; `refs\(\)`"):
        ours.scan().use_ref("none")
    with pytest.raises(frazil.NotFoundError, match="snapshot 7"):
        ours.inspect.files(snapshot_id=7)
    with pytest.raises(ValueError, match="expected no ref, `then`"):
        ours.scan(snapshot_id=7).use_ref("then")
    with pytest.raises(frazil.InvalidFilterError):
        ours.scan("id ==== 5")


# --- The table moves on --------------------------------------------------------------------------


def test_a_commit_of_another_engine_shows_after_a_refresh_and_not_before(tmp_path: Path) -> None:
    theirs = make_table(tmp_path)
    ours = frazil.load_table(("db", "flights"), catalog_uri=f"sqlite:///{tmp_path}/catalog.db")
    before, scan = ours.snapshots(), ours.scan()
    theirs.append(with_delay(rows(40, "B6")))
    assert ours.snapshots() == before
    assert ours.refresh() is ours
    assert [one.snapshot_id for one in ours.snapshots()] == [
        one.snapshot_id for one in theirs.snapshots()
    ]
    assert paths(scan) < paths(ours.scan())


def test_another_table_of_the_name_is_not_taken_for_the_one_that_was_loaded(tmp_path: Path) -> None:
    catalog = make_table(tmp_path).catalog
    ours = frazil.load_table(NAME, home=str(tmp_path))
    catalog.drop_table(NAME)
    with pytest.raises(frazil.NoSuchTableError, match=r"no table db\.flights"):
        ours.refresh()
    catalog.create_table(NAME, schema=COLUMNS)
    with pytest.raises(frazil.NoSuchTableError, match=r"frazil\.load_table reads that one"):
        ours.refresh()
    assert len(ours.snapshots()) == 5
