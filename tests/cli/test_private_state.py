"""Files in the home are their owner's alone, whatever the umask; other places follow the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.builders.request_builders import build_request
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import serving, wait_until

pytestmark = pytest.mark.server


@pytest.fixture(
    params=[0o000, *(pytest.param(mask, marks=pytest.mark.heavy) for mask in (0o022, 0o077))],
    ids=oct,
)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """Return the permissions of a folder and of all below it, by name."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        with suppress(FileNotFoundError):  # a committer runs there
            found[str(path)] = stat.S_IMODE(path.lstat().st_mode)
    return found


def work(home: Path, frazil: Frazil, settings: dict[str, str]) -> None:
    """Make files in every way: a table, a request, one in quarantine, and a committer."""
    assert frazil("table", "create", "db.flights", "--schema", "id long").code == 0
    frazil.put(build_request(frazil.load(), catalog="another"))
    with serving(home.parent, {**settings, "FRAZIL_HOME": str(home)}) as service:
        service.wait_until_ready()
        wait_until(lambda: bool(frazil.quarantined()), "a request is in quarantine")
        frazil.put(build_request(frazil.load(), epoch=1))
        names = {Path(path).name for path in require_private(home)}
        assert {"catalog.db", "catalog.db-wal", "redis.sock", "server.lock", "server.log"} <= names
        assert {"requests", "warehouse", "flights"} <= names
        assert service.end() == 0


def require_private(home: Path) -> dict[str, int]:
    """Return the modes of all of it, and check that others have no rights. Others cannot reach the
    tables, whose files follow the umask.
    """
    found = modes(home)
    tables = str(home / "warehouse")
    assert found[str(home)] == 0o700
    open_to_others = {path: oct(mode) for path, mode in found.items() if mode & 0o077}
    assert {path for path in open_to_others if not path.startswith(tables)} == set()
    return found


def test_all_of_a_home_is_private_whatever_the_umask(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    umask: int,
) -> None:
    home = tmp_path / "h"
    frazil = Frazil(home, monkeypatch, capsys, {"FRAZIL_QUEUE__URL": "private"})
    work(home, frazil, {})
    require_private(home)


def test_what_is_made_in_a_home_that_everybody_may_enter_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A volume of Kubernetes, say, which is mounted with a mode of its own."""
    home = tmp_path / "h"
    home.mkdir()
    home.chmod(0o777)
    before = os.umask(0)
    try:
        Frazil(home, monkeypatch, capsys, {})
        with serving(tmp_path, {"FRAZIL_HOME": str(home)}) as service:
            service.wait_until_ready()
            assert service.end() == 0
    finally:
        os.umask(before)
    found = modes(home)
    assert found.pop(str(home)) == 0o777
    assert {path: oct(mode) for path, mode in found.items() if mode & 0o077} == {}


def test_an_inbox_of_its_own_place_follows_the_umask(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    umask: int,
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    settings = {"FRAZIL_INBOX": f"file://{shared}/inbox", "FRAZIL_QUEUE__URL": "none"}
    frazil = Frazil(tmp_path / "h", monkeypatch, capsys, settings)
    assert frazil("table", "create", "db.flights", "--schema", "id long").code == 0
    frazil.put(build_request(frazil.load()))
    found = modes(shared / "inbox")
    files = {mode for path, mode in found.items() if Path(path).is_file()}
    folders = {mode for path, mode in found.items() if Path(path).is_dir()}
    assert (files, folders) == ({0o666 & ~umask}, {0o777 & ~umask})
