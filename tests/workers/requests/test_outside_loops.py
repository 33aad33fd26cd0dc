"""Work of a notebook, whose loop runs already: answers, errors, and the end of the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.requests.outside_loops import outside_any_loop

ROOT = Path(__file__).parents[3]
# The opening of a FIFO that no process writes to stands for a disk that does not answer.
_HANGS = """
import asyncio, os, signal, sys
from workers.requests.outside_loops import outside_any_loop

def work():
    os.kill(os.getpid(), signal.SIGINT)
    os.open(sys.argv[1], os.O_RDONLY)

async def cell():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as a notebook has it
    outside_any_loop(work)

try:
    asyncio.run(cell())
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupted_call_that_never_returns_does_not_keep_the_process(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    ended = subprocess.run(
        [sys.executable, "-c", _HANGS, tmp_path / "fifo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "interrupted\n"), ended.stderr


async def test_answers_and_errors_are_those_of_the_work() -> None:
    assert outside_any_loop(lambda: 7) == 7

    def fail() -> None:
        raise OSError("of the disk")

    with pytest.raises(OSError, match="of the disk"):
        outside_any_loop(fail)
