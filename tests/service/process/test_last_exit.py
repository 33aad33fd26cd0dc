"""A process that was told to end ends, though a thread of it is stuck in a call for ever."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from committer.service.process.startup import CLOSING_S_MAX, serve
from committer.settings.service_settings import load_settings
from committer.stop_signals import STOP_SIGNALS, StopRequest

ROOT = Path(__file__).parents[3]

_STUCK = """
import asyncio, os, sys
from committer.service.process.last_exit import end_by
from committer.service.telemetry.log import configure_logs
configure_logs("json", "info")

async def run():
    # The opening of a FIFO that nobody writes to stands for a disk that does not answer.
    stuck = asyncio.get_running_loop().run_in_executor(None, os.open, sys.argv[1], os.O_RDONLY)
    await asyncio.wait([stuck], timeout=0.2)
    end_by(600.0)
    end_by(0.5)
    end_by(300.0)

asyncio.run(run())
"""


@pytest.mark.thorough
def test_a_stuck_thread_does_not_outlive_the_time_to_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    ended = subprocess.run(
        [sys.executable, "-c", _STUCK, tmp_path / "fifo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    (line,) = map(json.loads, ended.stderr.splitlines())
    assert line["event"] == "service.end_forced"
    assert line["threads"], "the stuck thread is named"


@pytest.mark.thorough
def test_a_log_that_nobody_reads_does_not_keep_it_either(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    read, write = os.pipe()
    os.set_blocking(write, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(write, bytes(65_536))
    os.set_blocking(write, True)
    ended = subprocess.run(
        [sys.executable, "-c", _STUCK, tmp_path / "fifo"], cwd=ROOT, stderr=write, check=False
    )
    os.close(read)
    os.close(write)
    assert ended.returncode == 1


async def test_the_time_to_end_begins_when_the_service_is_told_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "FRAZIL_HOME": str(tmp_path),
        "FRAZIL_QUEUE__URL": "none",
        "FRAZIL_SERVICE__HTTP_PORT": "0",
        "FRAZIL_SERVICE__DRAIN_TIMEOUT_S": "7",
    }.items():
        monkeypatch.setenv(name, value)
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    left: list[float] = []
    try:
        await asyncio.wait_for(
            serve(
                load_settings(),
                StopRequest(),
                opened=lambda: os.kill(os.getpid(), signal.SIGTERM),
                end_by=left.append,
            ),
            60.0,
        )
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert left == [7 + CLOSING_S_MAX, CLOSING_S_MAX]
