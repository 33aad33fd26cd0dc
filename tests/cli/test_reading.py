"""Commands that only look: they make nothing, and say where they have looked."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.reading import ASKING_THE_CATALOG, READING
from tests.support.cli.commands import Frazil


@pytest.mark.parametrize(
    ("command", "code"),
    READING,
    ids=lambda one: "-".join(map(str, one)) if isinstance(one, tuple) else None,
)
@pytest.mark.parametrize("home_is_there", [False, True])
def test_looking_where_nothing_is_makes_nothing(
    frazil: Frazil,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Sequence[str],
    code: int,
    home_is_there: bool,
) -> None:
    home = tmp_path / "home"
    if home_is_there:
        home.mkdir()
    monkeypatch.setenv("FRAZIL_HOME", str(home))
    monkeypatch.setenv("FRAZIL_SERVICE__HTTP_PORT", "0")
    answer = frazil(*command)
    assert answer.code == code, answer
    assert [*home.rglob("*")] == []
    assert home.exists() == home_is_there
    if command[0] in ASKING_THE_CATALOG:
        where = f"there is no catalog at sqlite:///{home}/catalog.db yet"
        assert where in answer.err
        assert "`frazil table create` makes one" in answer.err
    if command == ("status",):
        assert f"sqlite:///{home}/catalog.db: not there yet" in answer.out


def test_looking_leaves_a_catalog_of_another_engine_as_it_is(
    frazil: Frazil, tmp_path: Path
) -> None:
    assert frazil("table", "create", "db.flights", "--schema", "id long").code == 0
    file = tmp_path / "catalog.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode = delete")
    before = file.read_bytes()
    for command, _ in READING:
        if command[0] != "status" and command[1] in ("list", "show", "files", "plan"):
            assert frazil(*command).code in (0, 1)
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.glob("catalog.db*")) == ["catalog.db"]


def test_an_empty_database_is_no_catalog_and_stays_empty(frazil: Frazil, tmp_path: Path) -> None:
    (tmp_path / "catalog.db").touch()
    answer = frazil("table", "list")
    assert (answer.code, answer.out) == (1, "")
    assert "there is no catalog at" in answer.err
    assert (tmp_path / "catalog.db").stat().st_size == 0


def test_where_there_is_none_the_place_is_named(frazil: Frazil, tmp_path: Path) -> None:
    assert frazil("table", "create", "db.flights", "--schema", "id long").code == 0
    assert frazil("table", "drop", "db.flights", "--yes").code == 0
    answer = frazil("table", "list")
    said = f"frazil: no table in catalog `frazil` (sqlite:///{tmp_path}/catalog.db)\n"
    assert (answer.code, answer.out, answer.err) == (0, "", said)
    answer = frazil("quarantine", "list")
    assert (answer.code, answer.out) == (0, "")
    assert f"nothing in quarantine of file://{tmp_path}/requests" in answer.err
    answer = frazil("table", "list", "nowhere")
    assert answer.code == 1
    assert f"no namespace nowhere in catalog `frazil` (sqlite:///{tmp_path}" in answer.err
