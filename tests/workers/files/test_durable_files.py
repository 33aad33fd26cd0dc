"""What a local writer makes durable: each file, and each folder that has a new name in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workers.files.file_system import LocalFileSystem


class Synced:
    """The paths that were synced, by descriptor as the system is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[Path] = []
        monkeypatch.setattr(os, "fsync", self._sync)

    def _sync(self, descriptor: int) -> None:
        self.paths.append(Path(f"/proc/self/fd/{descriptor}").readlink())


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux's /proc")
def test_files_their_folders_and_the_parents_of_new_folders_are_synced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, files = Synced(monkeypatch), LocalFileSystem()
    places = [tmp_path / "data" / f"day={day}" / "f" for day in range(20)]
    for path in places:
        files.create(f"file:{path}").close()
    assert synced.paths == []
    files.make_durable(f"file:{path}" for path in places)
    folders = {tmp_path, tmp_path / "data", *(path.parent for path in places)}
    assert sorted(synced.paths) == sorted([*places, *folders])


def test_a_sync_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    files = LocalFileSystem()
    files.create(f"{tmp_path}/f").close()
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        files.make_durable([f"{tmp_path}/f"])


def test_nothing_is_made_durable_without_files() -> None:
    LocalFileSystem().make_durable([])
