"""A demo as a process of its own, and the processes that it starts, on the whole machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
_RUN_S_MAX = 300.0
END_S_MAX = 30.0


class Demo:
    """A running demo whose output is read from a file. `module`: what of Python is run."""

    def __init__(self, folder: Path, module: Sequence[str], arguments: Sequence[str]) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._out = folder / "out.txt"
        command = [sys.executable, "-m", *module, "--home", "home", *arguments]
        with self._out.open("w") as out:
            # A group of its own, as a shell gives it: Ctrl-C reaches all of it.
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdout=out,
                stderr=out,
                process_group=0,
            )

    @property
    def output(self) -> str:
        return self._out.read_text()

    def wait(self) -> int:
        return self.process.wait(_RUN_S_MAX)

    def wait_for(self, text: str) -> None:
        until(lambda: text in self.output or self.process.poll() is not None, _RUN_S_MAX)
        assert text in self.output, self.output

    def left(self) -> list[str]:
        """Return the processes that belong to this run, itself excluded."""
        found = processes_of(self.home)
        return [command for command in found if " demo --home" not in command]


@contextmanager
def running(
    folder: Path, *arguments: str, module: Sequence[str] = ("committer", "demo")
) -> Iterator[Demo]:
    demo = Demo(folder, module, arguments)
    try:
        yield demo
    finally:
        if demo.process.poll() is None:
            demo.process.terminate()
            demo.process.wait(END_S_MAX)


def processes_of(home: Path) -> list[str]:
    """Return processes with the home in their variable or (Valkey renames itself) command."""
    variable, place = f"FRAZIL_HOME={home}".encode(), f"{home}/".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                variables = (folder / "environ").read_bytes().split(b"\0")
                if variable in variables or place in command:
                    found.append(command.decode(errors="replace"))
    return found


def until(holds: Callable[[], bool], limit_s: float) -> None:
    end_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.1)


def descendants(pid: int) -> set[int]:
    """Return the processes that a process started, and theirs."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found |= {child} | descendants(child)
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    """Return whether a process runs; one that has ended may wait for its parent to notice."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
