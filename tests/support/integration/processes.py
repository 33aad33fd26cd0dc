"""Ends whole families of processes: what Spark starts does not end with the one that started it."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path


def session_members(session: int) -> list[int]:
    """Return all processes of a session. Spark's Python workers leave the group only."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                # pid (name) state parent group session …; the name may hold anything.
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session:
                    found.append(int(folder.name))
    return found


def signal_session(session: int, number: signal.Signals) -> None:
    for member in session_members(session):
        with suppress(ProcessLookupError):
            os.kill(member, number)


def kill_session(leader: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Kill, with SIGKILL, every process that one started with `start_new_session` has started."""
    signal_session(leader.pid, signal.SIGKILL)
    leader.wait()
    while session_members(leader.pid):  # what was born meanwhile
        signal_session(leader.pid, signal.SIGKILL)
    for pipe in (leader.stdin, leader.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
