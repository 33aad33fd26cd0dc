"""SIGTERM is heard though the event loop is stuck in a call: a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli.serving import REPOSITORY

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

_STUCK_LOOP = """
import asyncio, os, sys
from committer.service.process.last_exit import end_by
from committer.service.process.startup import serve
from committer.service.telemetry.log import configure_logs
from committer.service.telemetry.log_stream import write_in_background
from committer.settings.service_settings import load_settings
from committer.stop_signals import StopRequest

def stuck():
    # The opening of a FIFO that no process writes to stands for a call that never returns.
    print("opened", flush=True)
    os.open(sys.argv[1], os.O_RDONLY)

write_in_background()
configure_logs("json", "info")
asyncio.run(serve(load_settings(), StopRequest(), opened=stuck, end_by=end_by))
"""


def test_sigterm_ends_a_process_whose_loop_is_stuck(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    process = subprocess.Popen(
        [sys.executable, "-c", _STUCK_LOOP, tmp_path / "fifo"],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "FRAZIL_HOME": str(tmp_path),
            "FRAZIL_QUEUE__URL": "none",
            "FRAZIL_SERVICE__HTTP_PORT": "0",
            "FRAZIL_SERVICE__DRAIN_TIMEOUT_S": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "opened\n"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    last = json.loads(said.splitlines()[-1])
    assert last["event"] == "service.end_forced"
    assert "MainThread" in last["threads"]
