"""Registering, renaming and dropping tables by the command."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from committer.ports.pointer_swap import LoadedTable
from tests.support.builders.request_builders import build_request
from tests.support.cli.cli_commands import answer
from tests.support.cli.commands import Frazil


def create(frazil: Frazil, name: str = "db.flights") -> LoadedTable:
    assert frazil("table", "create", name, "--schema", "id long").code == 0
    return frazil.load(name)


def names(frazil: Frazil) -> list[str]:
    return [line["table"] for line in frazil("table", "list", "--json").lines]


def test_a_dropped_table_keeps_its_files_and_registering_brings_it_back(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(frazil)
    answer(monkeypatch, "y")
    dropped = frazil("table", "drop", "db.flights")
    assert dropped.code == 0
    assert table.metadata_location in dropped.err
    assert names(frazil) == []
    registered = frazil("table", "register", "other.deep.flights", table.metadata_location)
    assert (registered.code, registered.out) == (0, "")
    assert names(frazil) == ["other.deep.flights"]
    assert frazil.load("other.deep.flights").metadata == table.metadata


def test_names_that_are_one_name_in_files_are_refused_by_both(frazil: Frazil) -> None:
    columns = ("--schema", "s string, t string")
    made = frazil(
        "table",
        "create",
        "db.flights",
        *columns,
        "--partition",
        "identity(s) as 1, identity(t) as _1",
    )
    assert made.code == 2
    assert "partition fields `1` and `_1`: both are named `_1`" in made.err
    made = frazil("table", "create", "db.flights", "--schema", "1 string, _1 string")
    assert made.code == 2
    assert "columns `1` and `_1`: both are named `_1`" in made.err
    assert names(frazil) == []


def test_a_column_that_iceberg_reserves_is_refused_by_all(frazil: Frazil) -> None:
    said = "column `_file`: Iceberg reserves this name"
    made = frazil("table", "create", "db.flights", "--schema", "id long, _file string")
    assert made.code == 2
    assert said in made.err
    assert frazil("table", "create", "db.flights", "--schema", "place string").code == 0
    file = Path(frazil.load("db.flights").metadata_location.removeprefix("file://"))
    file.write_text(file.read_text().replace('"place"', '"_file"'))
    for command in (
        ("register", "db.other", f"file://{file}"),
        ("add-files", "db.flights", str(file)),
    ):
        refused = frazil("table", *command)
        assert refused.code == 1
        assert said in refused.err
    assert names(frazil) == ["db.flights"]


def test_a_table_of_which_no_file_could_be_read_is_not_registered(frazil: Frazil) -> None:
    made = frazil(
        "table", "create", "db.flights", "--schema", "s string, t string",
        "--partition", "identity(s) as one, identity(t) as _1",
    )  # fmt: skip
    assert made.code == 0
    file = Path(frazil.load("db.flights").metadata_location.removeprefix("file://"))
    file.write_text(file.read_text().replace('"one"', '"1"'))
    for path in (
        ("register", "db.other", f"file://{file}"),
        ("add-files", "db.flights", str(file)),
    ):
        refused = frazil("table", *path)
        assert refused.code == 1
        assert "partition fields `1` and `_1`: both are named `_1`" in refused.err
    assert names(frazil) == ["db.flights"]


@pytest.mark.parametrize("text", ["", "n"])
def test_a_table_is_not_dropped_without_a_yes(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    create(frazil)
    answer(monkeypatch, text)
    refused = frazil("table", "drop", "db.flights")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.endswith("nothing was changed\n")
    assert names(frazil) == ["db.flights"]
    assert frazil("table", "drop", "db.flights", "--yes").code == 0
    assert names(frazil) == []


def test_a_table_whose_metadata_file_is_gone_can_be_dropped(frazil: Frazil) -> None:
    table = create(frazil)
    Path(table.metadata_location.removeprefix("file://")).unlink()
    dropped = frazil("table", "drop", "db.flights", "--yes")
    assert dropped.code == 0
    assert "does not exist" in dropped.err
    assert names(frazil) == []


def test_a_renamed_table_has_its_new_name_only(frazil: Frazil) -> None:
    table = create(frazil)
    create(frazil, "other.trains")
    assert frazil("table", "rename", "db.flights", "other.flights").code == 0
    assert names(frazil) == ["other.flights", "other.trains"]
    assert frazil.load("other.flights").metadata == table.metadata


def test_renaming_or_dropping_asks_where_requests_wait(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(frazil)
    create(frazil, "db.trains")
    frazil.put(build_request(frazil.load(), epoch=0), build_request(frazil.load(), epoch=1))
    answer(monkeypatch, "")
    asked = frazil("table", "rename", "db.flights", "db.ships")
    assert asked.code == 1
    assert "2 requests for db.flights" in asked.err
    assert names(frazil) == ["db.flights", "db.trains"]
    assert frazil("table", "rename", "db.flights", "db.ships", "--yes").code == 0
    dropped = frazil("table", "drop", "db.ships", "--yes")
    assert (dropped.code, "2 requests for db.ships" in dropped.err) == (0, True)
    assert "request" not in frazil("table", "drop", "db.trains", "--yes").err


def test_a_table_is_made_where_its_namespace_wants_it_unless_a_location_is_given(
    frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(frazil)
    with closing(sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)) as connection:
        connection.execute(
            "INSERT INTO iceberg_namespace_properties VALUES ('frazil', 'db', 'location', ?)",
            (f"file://{tmp_path}/elsewhere/",),
        )
    assert create(frazil, "db.trains").metadata.location == f"file://{tmp_path}/elsewhere/trains"
    where = f"file://{tmp_path}/here"
    outside = ("table", "create", "db.ships", "--schema", "id long", "--location", where)
    refused = frazil(*outside)
    assert (refused.code, "`security.locations`" in refused.err) == (2, True)
    monkeypatch.setenv("FRAZIL_SECURITY__LOCATIONS", where)
    assert frazil(*outside).code == 0
    assert frazil.load("db.ships").metadata.location == where


@pytest.mark.parametrize("ending", ["", "/", "/requests"])
def test_a_table_is_not_made_around_the_inbox(frazil: Frazil, tmp_path: Path, ending: str) -> None:
    where = f"file:{tmp_path}{ending}"
    answer = frazil("table", "create", "db.x", "--schema", "id long", "--location", where)
    assert answer.code == 2
    assert "an engine's orphan clean-up could remove" in answer.err
    assert names(frazil) == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("drop", "db.none", "--yes"), "no table db.none"),
        (("rename", "db.none", "db.other"), "no table db.none"),
        (("rename", "db.flights", "db.trains"), "the name db.trains is taken"),
        (("rename", "db.flights", "none.flights"), "no namespace none"),
        (("register", "db.other", "file:///none.metadata.json"), "no metadata file file:///none."),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(
    frazil: Frazil, command: tuple[str, ...], said: str
) -> None:
    create(frazil)
    create(frazil, "db.trains")
    answer = frazil("table", *command)
    assert (answer.code, answer.out, answer.err.count("\n")) == (1, "", 1)
    assert said in answer.err
    assert names(frazil) == ["db.flights", "db.trains"]


def test_a_name_that_is_taken_is_not_registered_again(frazil: Frazil) -> None:
    table = create(frazil)
    other = create(frazil, "db.trains")
    taken = frazil("table", "register", "db.flights", other.metadata_location)
    assert (taken.code, "db.flights is taken" in taken.err) == (1, True)
    assert frazil("table", "register", "db.flights", table.metadata_location).code == 0
    assert frazil.load() == table
