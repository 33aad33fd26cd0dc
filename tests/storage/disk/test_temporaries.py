"""Half-written files of killed processes are removed, and files being written stay."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from committer.ports.storage import NewObject
from committer.storage.disk.local import LocalStorage

ROOT = Path(__file__).parents[3]
OLD_S, YOUNG_S = 25 * 3600, 23 * 3600

_KILLED = """
import os, signal, sys
from committer.storage.disk import durable_writes
durable_writes._link = lambda item: os.kill(os.getpid(), signal.SIGKILL)
from committer.ports.storage import NewObject
durable_writes.create_groups([[NewObject(sys.argv[1], b"x")]])
"""


def leave(path: Path) -> Path:
    """Return the file of a process that is killed between writing and naming it."""
    ended = subprocess.run([sys.executable, "-c", _KILLED, path], cwd=ROOT, check=False)
    assert ended.returncode == -9
    (left,) = path.parent.glob(".frazil-*.tmp")
    return left


def age(path: Path, age_s: float) -> Path:
    then_s = time.time() - age_s  # files have the machine's time
    os.utime(path, (then_s, then_s))
    return path


@pytest.mark.parametrize("place", ["inbox/u/p/e", "quarantine/u/p/e", "upkeep/u", "witness"])
async def test_a_listing_below_an_inbox_root_removes_them_after_a_day(
    tmp_path: Path, place: str
) -> None:
    storage = LocalStorage(prune_below=[str(tmp_path)])
    folder = tmp_path / place
    folder.mkdir(parents=True)
    left = leave(folder / "a")
    top = f"{tmp_path}/{place.split('/')[0]}"
    for age_s, stays in ((0, True), (YOUNG_S, True), (OLD_S, False)):
        if age_s:
            age(left, age_s)
        assert [one async for one in storage.list(top)] == []
        assert left.exists() == stays
    assert not folder.exists(), "and the folder that it left empty"


async def test_nothing_else_goes_however_old_it_is(tmp_path: Path) -> None:
    storage = LocalStorage(prune_below=[str(tmp_path)])
    folder = tmp_path / "inbox"
    (folder / ".frazil-f.tmp").mkdir(parents=True)
    (tmp_path / "target").write_bytes(b"x")
    age(tmp_path / "target", OLD_S)
    (folder / ".frazil-l.tmp").symlink_to(tmp_path / "target")
    for name in (".frazil-x", "frazil-1-1.tmp", ".hidden", "a.tmp"):
        (folder / name).write_bytes(b"x")
        age(folder / name, OLD_S)
    before = sorted(folder.iterdir())
    assert len([one async for one in storage.list(str(folder))]) == 4
    assert sorted(folder.iterdir()) == before


async def test_a_first_write_into_a_tables_folder_removes_them_once(tmp_path: Path) -> None:
    storage = LocalStorage(prune_below=[str(tmp_path / "requests")])
    folder = tmp_path / "table/metadata"
    folder.mkdir(parents=True)
    old, young = age(leave(folder / "a"), OLD_S), folder / ".frazil-9-9.tmp"
    young.write_bytes(b"x")
    await storage.create([NewObject(f"file://{folder}/b", b"x")])
    assert (old.exists(), young.exists()) == (False, True)
    age(young, OLD_S)
    await storage.create([NewObject(f"{folder}/c", b"x")])
    assert young.exists(), "the next process looks again"
    await LocalStorage().create([NewObject(f"{folder}/d", b"x")])
    assert not young.exists()


async def test_a_listing_of_a_tables_folder_removes_nothing(tmp_path: Path) -> None:
    storage = LocalStorage(prune_below=[str(tmp_path / "requests")])
    left = age(leave(tmp_path / "a"), OLD_S)
    assert [one async for one in storage.list(str(tmp_path))] == []
    assert left.exists()
