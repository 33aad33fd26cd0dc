"""Reads what other processes append to a file, line by line, without waiting."""

from __future__ import annotations

from collections import deque
from pathlib import Path


class Tail:
    """Whole lines only: the end of one that is being written comes with the next read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> list[str]:
        """Read the lines since the last call; none if the file is not there yet."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                content = file.read()
        except FileNotFoundError:
            return []
        whole = content[: content.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.decode(errors="replace").splitlines()


def last_lines(path: Path, count: int) -> list[str]:
    """Read the end of a file; nothing if it is not there."""
    try:
        with path.open(errors="replace") as file:
            return [line.rstrip("\n") for line in deque(file, count)]
    except FileNotFoundError:
        return []
