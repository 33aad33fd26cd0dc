"""Rows of a scan: as PyIceberg reads them, a batch at a time, also where a loop runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from tests.frazil.lake import NAME, make_table


@pytest.fixture
def theirs(tmp_path: Path) -> Any:
    return make_table(tmp_path / "home")


@pytest.fixture
def ours(tmp_path: Path, theirs: Any) -> frazil.Table:
    return frazil.load_table(NAME, home=str(tmp_path / "home"))


def in_order(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=lambda row: int(row["id"]))


@pytest.mark.parametrize(
    ("row_filter", "fields"),
    [
        ("", ("*",)),
        ("carrier = 'UA' and id > 1", ("*",)),
        ("delay is null", ("id", "delay")),
        ("route.km >= 20", ("id", "route.origin")),
        ("id > 100", ("id",)),
    ],
)
def test_rows_are_those_that_pyiceberg_reads(
    ours: frazil.Table, theirs: Any, row_filter: str, fields: tuple[str, ...]
) -> None:
    where: dict[str, Any] = {"row_filter": row_filter} if row_filter else {}
    scan, their_scan = (one.scan(**where, selected_fields=fields) for one in (ours, theirs))
    found, wanted = scan.to_arrow(), their_scan.to_arrow()
    assert in_order(found) == in_order(wanted)
    assert found.schema.names == [field.name for field in scan.projection().fields]
    assert scan.count() == their_scan.count() == wanted.num_rows


def test_another_snapshot_is_read_with_its_schema(ours: frazil.Table, theirs: Any) -> None:
    snapshot_id = theirs.refs()["then"].snapshot_id
    wanted = theirs.scan(snapshot_id=snapshot_id).to_arrow()
    for scan in (ours.scan(snapshot_id=snapshot_id), ours.scan().use_ref("then")):
        assert in_order(scan.to_arrow()) == in_order(wanted)
        assert "delay" not in scan.to_arrow().schema.names
    assert ours.scan().use_ref("audit").count() == 3


def test_metadata_columns_are_read_where_they_are_named(ours: frazil.Table) -> None:
    scan = ours.scan("id = 31", selected_fields=("_pos", "id", "_file", "_partition"))
    (row,) = scan.to_arrow().to_pylist()
    assert list(row) == ["id", "_pos", "_file", "_partition"]
    assert (row["id"], row["_pos"], row["_partition"]) == (31, 1, {"carrier": "DL"})
    assert row["_file"] == scan.plan_files()[0].file.file_path
    every = ours.scan(selected_fields=("*", "_pos")).to_arrow()
    assert every.schema.names == ["id", "carrier", "route", "delay", "_pos"]


def test_a_reader_gives_batches_as_they_are_read(ours: frazil.Table) -> None:
    reader = ours.scan(selected_fields=("id",)).to_arrow_batch_reader()
    assert reader.schema == pa.schema([pa.field("id", pa.int64(), nullable=False)])
    first = reader.read_next_batch()
    assert first.num_rows <= 3
    assert first.num_rows + reader.read_all().num_rows == ours.scan().count()


def test_an_unknown_column_is_named(ours: frazil.Table) -> None:
    with pytest.raises(frazil.InvalidFilterError, match="_nothing"):
        ours.scan(selected_fields=("_nothing",)).to_arrow()


def test_a_data_file_that_is_gone_is_named(ours: frazil.Table) -> None:
    path = ours.scan("id = 31").plan_files()[0].file.file_path
    Path(path.removeprefix("file://")).unlink()
    with pytest.raises(frazil.NotFoundError, match=Path(path).name):
        ours.scan("id = 31").to_arrow()


async def test_rows_are_read_where_a_loop_runs(ours: frazil.Table, theirs: Any) -> None:
    assert in_order(ours.scan().to_arrow()) == in_order(theirs.scan().to_arrow())
    assert ours.scan().count() == 11
