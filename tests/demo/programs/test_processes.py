"""Child processes end with all that they started; signals end a run in order."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from committer.demo.programs.interruption import Interruption, run_until_signal
from committer.demo.programs.processes import ChildProcess, DemoError, start

# A child of its own, and both deaf to a polite request.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


async def child(tmp_path: Path, program: str) -> ChildProcess:
    command: Sequence[str] = (sys.executable, "-c", program)
    return await start("child", command, log=tmp_path / "logs" / "log", environment=os.environ)


async def first_line(path: Path) -> str:
    await until(lambda: path.read_text().endswith("\n"))
    return path.read_text().strip()  # noqa: ASYNC240


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110  # other processes do not tell
            await asyncio.sleep(0.01)


def lives(pid: int) -> bool:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def test_nothing_of_a_stubborn_child_is_left(tmp_path: Path) -> None:
    stubborn = await child(tmp_path, STUBBORN)
    grandchild = int(await first_line(stubborn.log))
    assert lives(grandchild)
    assert await stubborn.stop(0.1) == -signal.SIGKILL
    await until(lambda: not lives(grandchild))


async def test_a_child_that_ends_in_order_says_so(tmp_path: Path) -> None:
    polite = await child(tmp_path, "print('up', flush=True); import time; time.sleep(60)")
    await first_line(polite.log)
    assert polite.exit_code is None
    assert await polite.stop(10) == -signal.SIGTERM
    with pytest.raises(DemoError, match="child ended with SIGTERM"):
        polite.check()


async def test_a_child_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    failed = await child(tmp_path, "print('first'); raise SystemExit('no such table')")
    await failed.process.wait()
    with pytest.raises(DemoError, match=r"child ended with exit code 1(.|\n)*\n  no such table"):
        failed.check()


async def test_a_child_that_has_done_its_work_is_fine(tmp_path: Path) -> None:
    done = await child(tmp_path, "print('done')")
    await done.process.wait()
    done.check()
    assert await done.stop(1) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_once_it_has_cleaned_up(number: signal.Signals, code: int) -> None:
    done = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        finally:
            heard = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, heard.set)
            os.kill(os.getpid(), signal.SIGINT)  # an impatient second one
            os.kill(os.getpid(), signal.SIGUSR1)  # heard after it
            await heard.wait()
            done.append("cleaned up")

    with pytest.raises(Interruption) as interruption:
        run_until_signal(work())
    assert interruption.value.exit_code == code
    assert done == ["cleaned up"]


def test_a_run_without_a_signal_returns_what_it_returns() -> None:
    async def work() -> int:
        return 7

    assert run_until_signal(work()) == 7
