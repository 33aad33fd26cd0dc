"""The metadata tables of `Table.inspect` hold what PyIceberg's hold, in the columns that both have.

Tables are those of the fixtures: deletes of all kinds, expired and rolled back snapshots, several
specs, branches, rewrites.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pytest

import frazil
from committer.catalog.catalog_properties import CatalogProperties
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from frazil.handle import TableHandle
from tests.support.builders.fixtures import expected, read_bytes
from tests.support.builders.moved_io import read_by_pyiceberg

T = TypeVar("T")
TABLES = (
    "v1_void",
    "v2_branches_tags",
    "v2_equality_deletes",
    "v2_expired",
    "v2_partition_evolution",
    "v2_position_deletes",
    "v2_rewrites",
    "v2_rollback_cherrypick",
    "v3_deletion_vectors",
)


class _FixtureReader:
    def read(self, location: str) -> bytes:
        return read_bytes(location)


@dataclass(frozen=True, slots=True)
class FixtureHandle(TableHandle):
    """A table of the fixtures, which lies elsewhere than its metadata says."""

    def reading(self, work: Callable[[Any], T]) -> T:
        return work(_FixtureReader())


def read_by_us(name: str) -> frazil.Table:
    location = expected(name)["metadata_location"]
    metadata = parse_table_metadata(read_bytes(location))
    loaded = LoadedTable(TableIdentifier.parse("db.t"), metadata, location)
    return frazil.Table(FixtureHandle(CatalogProperties("none"), loaded))


def ids(table: Any) -> list[int | None]:
    return [None, *(snapshot.snapshot_id for snapshot in table.snapshots())]


# --- The same in both ----------------------------------------------------------------------------


def in_hex(bounds: Any) -> Any:
    return None if bounds is None else [(key, bound["hex"]) for key, bound in bounds]


def as_hex(bounds: Any) -> Any:
    return None if bounds is None else [(key, bound.hex()) for key, bound in bounds]


def known(values: Mapping[str, Any]) -> dict[str, str]:
    """Drop nulls: PyIceberg's partitions have the fields of all specs."""
    return {name: str(value) for name, value in values.items() if value is not None}


# Columns with another form here than in PyIceberg: converters to a common form.
OURS: Mapping[str, Callable[[Any], Any]] = {
    "lower_bounds": in_hex,
    "upper_bounds": in_hex,
    "partition": lambda text: known(json.loads(text)),
}
THEIRS: Mapping[str, Callable[[Any], Any]] = {
    "lower_bounds": as_hex,
    "upper_bounds": as_hex,
    "key_metadata": lambda key: None if key is None else key.hex(),
    "type": str.lower,
    "partition": lambda values: known(values or {}),
    # It cannot tell a list that is empty from one that is not there.
    **dict.fromkeys(("split_offsets", "equality_ids"), lambda found: found or None),
}


def shared(
    table: pa.Table, columns: list[str], forms: Mapping[str, Callable[[Any], Any]]
) -> list[str]:
    """Return the rows, sorted, of these columns alone."""
    found = (
        {name: forms.get(name, lambda value: value)(row[name]) for name in columns}
        for row in table.to_pylist()
    )
    return sorted(map(repr, found))


def compare(ours: pa.Table, theirs: pa.Table, *wanted: str) -> None:
    columns = [name for name in ours.column_names if name in theirs.column_names]
    assert set(wanted) <= set(columns), columns
    assert ours.num_rows == theirs.num_rows
    assert shared(ours, columns, OURS) == shared(theirs, columns, THEIRS)


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_the_whole_table_are_those_of_pyiceberg(name: str) -> None:
    ours, theirs = read_by_us(name).inspect, read_by_pyiceberg(name).inspect
    compare(ours.snapshots(), theirs.snapshots(), "snapshot_id", "parent_id", "manifest_list")
    compare(ours.history(), theirs.history(), "snapshot_id", "is_current_ancestor")
    compare(ours.refs(), theirs.refs(), "name", "type")
    entries = ours.metadata_log_entries(), theirs.metadata_log_entries()
    compare(*entries, "latest_snapshot_id", "latest_schema_id", "latest_sequence_number")
    compare(ours.all_manifests(), theirs.all_manifests(), "reference_snapshot_id", "content")


# PyIceberg fails at deletion vectors, which have no column sizes.
@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in TABLES if name != "v3_deletion_vectors"])
def test_tables_of_a_snapshot_are_those_of_pyiceberg(name: str) -> None:
    ours, theirs = read_by_us(name).inspect, read_by_pyiceberg(name).inspect
    compare(ours.manifests(), theirs.manifests(), "content", "partition_spec_id")
    for snapshot_id in ids(read_by_us(name)):
        compare(ours.entries(snapshot_id), theirs.entries(snapshot_id), "status", "snapshot_id")
        for kind in ("files", "data_files", "delete_files"):
            found, wanted = getattr(ours, kind)(snapshot_id), getattr(theirs, kind)(snapshot_id)
            compare(found, wanted, "file_path", "record_count", "lower_bounds")
        compare(ours.partitions(snapshot_id), theirs.partitions(snapshot_id), "file_count")


# PyIceberg plans no scan of a table with equality deletes.
@pytest.mark.parametrize("name", [name for name in TABLES if name != "v2_equality_deletes"])
def test_a_scan_plans_the_files_and_deletes_of_pyiceberg(name: str) -> None:
    ours, theirs = read_by_us(name), read_by_pyiceberg(name)
    for snapshot_id in ids(ours):
        found = deletes_by_file(ours.scan(snapshot_id=snapshot_id))
        wanted = deletes_by_file(theirs.scan(snapshot_id=snapshot_id))
        if name == "v3_deletion_vectors":
            # It gives a file also the vectors of others that lie in one partition with it.
            wanted = {file: wanted[file] & deletes for file, deletes in found.items()}
        assert found == wanted


def deletes_by_file(scan: Any) -> dict[str, set[str]]:
    return {
        task.file.file_path: {one.file_path for one in task.delete_files}
        for task in scan.plan_files()
    }


# --- On its own ----------------------------------------------------------------------------------


def test_every_metadata_table_has_its_method() -> None:
    from committer.iceberg.inspection.metadata_tables import SNAPSHOT_KINDS, TABLE_KINDS

    inspect = read_by_us("v3_deletion_vectors").inspect
    for kind in (*SNAPSHOT_KINDS, *TABLE_KINDS):
        assert getattr(inspect, kind)().num_rows > 0, kind
    public = {name for name in dir(inspect) if not name.startswith("_")}
    assert public == {*SNAPSHOT_KINDS, *TABLE_KINDS}


def test_a_table_without_a_snapshot_has_no_rows() -> None:
    inspect = read_by_us("v3_empty").inspect
    assert (inspect.files().num_rows, inspect.snapshots().num_rows) == (0, 0)
    assert "file_path" in inspect.files().column_names
