"""`frazil table orphans`: what it tells, what it asks, and what it refuses."""

from __future__ import annotations

import io
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.ports.pointer_swap import LoadedTable
from tests.support.builders.request_builders import build_request
from tests.support.cli.commands import Frazil

DAY_S = 86_400


def create(frazil: Frazil, *options: str) -> LoadedTable:
    assert frazil("table", "create", "db.flights", "--schema", "id long", *options).code == 0
    return frazil.load()


def drop(table: LoadedTable, name: str, *, days: float = 10.0) -> Path:
    """Write a file below the table's folder, of that age."""
    path = Path(table.metadata.location.removeprefix("file://")) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"four")
    then_s = time.time() - days * DAY_S
    os.utime(path, (then_s, then_s))
    return path


def test_orphans_are_listed_with_size_age_and_kind(frazil: Frazil) -> None:
    table = create(frazil)
    left = drop(table, "data/left.parquet")
    drop(table, "data/young.parquet", days=2.0)
    told = frazil("table", "orphans", "db.flights")
    assert told.code == 0
    (row,) = [line.split() for line in told.out.splitlines() if "left.parquet" in line]
    assert row[1:] == ["data", "file", "4", "10.0", "d"]
    assert "data file: 1 object, 4 bytes" in told.err
    found = frazil("table", "orphans", "db.flights", "--json").object
    assert Path(found["location"].removeprefix("file://")) == left
    assert (found["kind"], found["size-bytes"], found["stays"]) == ("data file", 4, None)
    assert found["age-s"] // DAY_S == 10
    assert left.exists()


def test_a_table_without_orphans_says_so(frazil: Frazil) -> None:
    create(frazil)
    told = frazil("table", "orphans", "db.flights", "--older-than", "0s")
    assert (told.code, told.out) == (0, "")
    assert "unnamed" in told.err


def test_no_orphans_are_looked_for_where_the_catalogs_service_removes_them(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = drop(create(frazil), "data/left.parquet")
    maintained = replace(SqlCatalog.capabilities, maintains_tables=True)
    monkeypatch.setattr(SqlCatalog, "capabilities", maintained)
    for options in ((), ("--remove", "--yes")):
        told = frazil("table", "orphans", "db.flights", *options)
        assert (told.code != 0, told.out) == (True, "")
        assert "removes orphan files itself" in told.err
    assert left.exists()


def test_removing_asks_and_takes_the_old_only(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(frazil)
    left, young = drop(table, "data/left.parquet"), drop(table, "data/young.parquet", days=2.0)
    unknown = drop(table, "data/notes.txt")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    refused = frazil("table", "orphans", "db.flights", "--remove")
    assert refused.code == 1
    assert "Remove 1 object?" in refused.err
    assert left.exists()
    removed = frazil("table", "orphans", "db.flights", "--remove", "--yes")
    assert removed.code == 0
    assert "removed 1 object" in removed.err
    assert [one.exists() for one in (left, young, unknown)] == [False, True, True]
    assert Path(frazil.load().metadata_location.removeprefix("file://")).exists()


def test_a_clock_that_runs_ahead_of_the_storages_removes_nothing_young(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(frazil)
    young = drop(table, "data/young.parquet", days=2.0)
    ahead_ms = int((time.time() + 10 * DAY_S) * 1000)
    monkeypatch.setattr("committer.real_world.RealWorld.now_ms", lambda _: ahead_ms)
    assert frazil("table", "orphans", "db.flights", "--remove", "--yes").code == 0
    assert young.exists()


def test_under_a_day_nothing_is_removed_unless_no_writer_is_active(frazil: Frazil) -> None:
    table = create(frazil)
    left = drop(table, "data/left.parquet", days=0.5)
    asked = ("table", "orphans", "db.flights", "--older-than", "1h", "--remove", "--yes")
    refused = frazil(*asked)
    assert refused.code == 2
    assert "--no-active-writers" in refused.err
    assert left.exists()
    assert frazil(*asked, "--no-active-writers").code == 0
    assert not left.exists()


@pytest.mark.parametrize("age", ["3", "d", "-1d", "3 weeks", "1.5d"])
def test_an_age_that_is_none_is_refused(frazil: Frazil, age: str) -> None:
    create(frazil)
    assert frazil("table", "orphans", "db.flights", f"--older-than={age}").code == 2


def test_files_of_a_request_in_quarantine_stay(frazil: Frazil) -> None:
    table = create(frazil)
    sealed = build_request(table)
    name = f"data/00000-{sealed.request.attempt}.parquet"
    left = drop(table, name)
    frazil.quarantine(sealed, "table_unknown", has_files=False)
    assert frazil("table", "orphans", "db.flights", "--remove", "--yes").code == 0
    assert left.exists()


def test_an_answer_of_which_no_request_is_kept_stops_no_removal(frazil: Frazil) -> None:
    table = create(frazil)
    left = drop(table, "data/left.parquet")
    frazil.quarantine(build_request(table), "conflict", is_told_only=True)
    removed = frazil("table", "orphans", "db.flights", "--remove", "--yes")
    assert removed.code == 0, removed
    assert not left.exists()


def test_a_request_that_nobody_can_read_stops_a_removal_and_is_named(frazil: Frazil) -> None:
    table = create(frazil)
    left = drop(table, "data/left.parquet")
    sealed = build_request(table)
    key = frazil.quarantine(sealed, "table_unknown")
    frazil.with_parts(lambda parts: parts.quarantine.delete([key]))
    record = b'{"key":"x","reason":"y","message":"z","quarantined_at_ms":0}\nnot a request'

    async def spoil(parts: object) -> None:
        from committer.ports.storage import NewObject
        from committer.service.process.composition import Parts

        assert isinstance(parts, Parts)
        await parts.storage.create([NewObject(parts.quarantine.location(key), record)])

    frazil.with_parts(spoil)
    listed = frazil("table", "orphans", "db.flights")
    assert listed.code == 0
    assert "nothing may be removed" in listed.err
    refused = frazil("table", "orphans", "db.flights", "--remove", "--yes")
    assert refused.code == 1
    assert key in refused.err
    assert left.exists()


def test_a_folder_outside_the_location_needs_to_be_asked_for(
    frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "apart"
    monkeypatch.setenv("FRAZIL_SECURITY__LOCATIONS", f"file://{outside}")
    table = create(frazil, "--property", f"write.data.path=file://{outside}")
    inside = drop(table, "data/left.parquet")
    outside.mkdir()
    left = outside / "left.parquet"
    inside.rename(left)
    assert frazil("table", "orphans", "db.flights", "--remove", "--yes").code == 0
    assert left.exists()
    assert (
        frazil(
            "table", "orphans", "db.flights", "--remove", "--yes", "--allow-outside-location"
        ).code
        == 0
    )
    assert not left.exists()
