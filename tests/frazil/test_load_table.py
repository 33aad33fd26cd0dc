"""How `frazil.load_table` finds a table, what it leaves behind, and what it says without one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import frazil
from tests.frazil.lake import NAME, make_table
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import REPOSITORY


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    make_table(folder)
    return folder


@pytest.fixture(autouse=True)
def no_settings_of_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def everything_of(table: frazil.Table) -> tuple[int, int]:
    return len(table.scan("id > 25").plan_files()), table.inspect.files().num_rows


# --- Settings ------------------------------------------------------------------------------------


def test_the_settings_are_those_of_the_command(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"sqlite:///{home}/catalog.db"
    with pytest.raises(frazil.NotFoundError, match=r"no catalog at .*/\.frazil/catalog\.db"):
        frazil.load_table(NAME)
    (tmp_path / ".frazil").symlink_to(home)
    assert frazil.load_table(NAME).name() == ("db", "flights")
    monkeypatch.setenv("FRAZIL_HOME", str(tmp_path / "absent"))
    with pytest.raises(frazil.NotFoundError, match=r"no catalog at .*/absent/catalog\.db"):
        frazil.load_table(NAME)
    (tmp_path / "frazil.toml").write_text(f'[catalog]\nuri = "{uri}"\nname = "other"\n')
    monkeypatch.setenv("FRAZIL_CONFIG", str(tmp_path / "frazil.toml"))
    with pytest.raises(frazil.NoSuchTableError, match="in catalog `other`"):
        frazil.load_table(NAME)
    monkeypatch.setenv("FRAZIL_CATALOG__NAME", "frazil")
    assert frazil.load_table(NAME).name() == ("db", "flights")
    with pytest.raises(frazil.NoSuchTableError, match="in catalog `mine`"):
        frazil.load_table(NAME, catalog_name="mine")


def test_a_catalog_that_is_a_folder_has_the_commands_default_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("FRAZIL_CATALOG__TYPE", "hadoop")
    with pytest.raises(frazil.NotFoundError, match=r"no folder .*/home/warehouse"):
        frazil.load_table(NAME, home=str(home))
    command = Frazil(home, monkeypatch, capsys, {})
    assert command("table", "create", NAME, "--schema", "id long").code == 0
    table = frazil.load_table(NAME, home=str(home))
    assert table.location() == f"file://{home}/warehouse/db/flights"
    assert table.refresh().scan().plan_files() == []
    elsewhere = {"warehouse": f"file://{tmp_path}/other"}
    with pytest.raises(frazil.NotFoundError, match=r"no folder .*/other"):
        frazil.load_table(NAME, home=str(home), properties=elsewhere)


def test_what_is_misspelt_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(frazil.SettingsError, match=r"did you mean `catalog\.client\.region`"):
        frazil.load_table(NAME, home=str(home), properties={"client.regoin": "eu-central-1"})
    monkeypatch.setenv("FRAZIL_CATALOG__URL", "x")
    with pytest.raises(frazil.SettingsError, match="did you mean `FRAZIL_CATALOG__URI`"):
        frazil.load_table(NAME, home=str(home))


@pytest.mark.parametrize(
    "name", ["flights", "", ".", (), ("flights",), ("", "flights"), ("db", "")]
)
def test_what_is_no_name_of_a_table_is_refused(home: Path, name: Any) -> None:
    with pytest.raises(ValueError, match=r"expected a .*name such as"):
        frazil.load_table(name, home=str(home))


def test_a_table_that_is_not_there_is_told_with_those_that_are(home: Path) -> None:
    with pytest.raises(frazil.NoSuchTableError, match=r"no table db\.x in .*: `db` has `db\.fl"):
        frazil.load_table("db.x", home=str(home))


# --- Side effects of reading ---------------------------------------------------------------------


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_reading_creates_and_changes_nothing(home: Path, tmp_path: Path) -> None:
    before = files_below(home)
    table = frazil.load_table(NAME, home=str(home))
    everything_of(table.refresh())
    assert files_below(home) == before
    with pytest.raises(frazil.NotFoundError):
        frazil.load_table(NAME, home=str(tmp_path / "absent"))
    assert list(tmp_path.iterdir()) == []


# --- Event loops ---------------------------------------------------------------------------------


async def test_it_is_called_where_a_loop_runs_already_as_in_a_notebook(home: Path) -> None:
    loop = asyncio.get_running_loop()
    table = frazil.load_table(NAME, home=str(home))
    assert everything_of(table.refresh()) == (1, 4)
    assert asyncio.get_running_loop() is loop
    with pytest.raises(frazil.NoSuchTableError):
        frazil.load_table("db.x", home=str(home))


def test_the_loop_of_the_callers_thread_stays_what_it_is(home: Path) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        assert everything_of(frazil.load_table(NAME, home=str(home))) == (1, 4)
        assert asyncio.get_event_loop() is loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def test_threads_share_a_table(home: Path) -> None:
    table = frazil.load_table(NAME, home=str(home))
    found = await asyncio.gather(*(asyncio.to_thread(everything_of, table) for _ in range(4)))
    assert set(found) == {(1, 4)}


# --- Installations -------------------------------------------------------------------------------

READ = """
import json, frazil
try:
    table = frazil.load_table("db.flights", home=HOME)
    print(json.dumps([len(table.schema().fields), len(table.scan("id > 25").plan_files())]))
    print(json.dumps(table.inspect.files().num_rows))
except frazil.FrazilError as error:
    print(json.dumps(str(error)))
"""


def read_with(home: Path, extras: Sequence[str], *without: str) -> list[Any]:
    """Return the output of an installation with these extras."""
    program = READ.replace("HOME", repr(str(home)))
    asked = {"extras": extras, "with": [], "without": without, "program": program}
    command = [sys.executable, "-m", "tests.support.cli.installation", json.dumps(asked)]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.thorough
def test_the_extra_for_reading_is_enough(home: Path) -> None:
    assert read_with(home, ["read"]) == [[4, 1], 4]


@pytest.mark.thorough
def test_without_the_extra_it_is_named_with_what_installs_it(home: Path) -> None:
    (said,) = read_with(home, [])
    assert said.startswith("frazil.load_table needs the package `sqlalchemy`: install the extra")
    assert said.endswith("[read]'`")
    assert read_with(home, ["sql"])[0] == [4, 1]
    said = read_with(home, ["sql"])[1]
    assert said.startswith("inspect.files() needs the package `pyarrow`: install the extra `read`")
