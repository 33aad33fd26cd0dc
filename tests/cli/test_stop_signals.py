"""SIGTERM and SIGINT at any moment of `frazil serve`: real processes, also as a container's first.

A gate in the child holds it where it imports a certain module, so each moment is met for certain.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.cli.serving import REPOSITORY, wait_until
from tests.support.servers.free_port import free_port

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

_GATE = """
import os, sys

class Gate:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["GATE_MODULE"]:
            sys.meta_path.remove(self)
            os.write(int(os.environ["GATE_REACHED"]), b"x")
            os.read(int(os.environ["GATE_OPENED"]), 1)

sys.meta_path.insert(0, Gate())
"""
_AS_FIRST = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
# From the first import behind the handler to those inside the event loop.
MOMENTS = (
    "committer.service.telemetry.json_stderr",
    "committer.cli.app",
    "typer",
    "committer.settings.service_settings",
    "pydantic",
    "committer.service.telemetry.log",
    "structlog",
    "committer.service.process.composition",
    "aiohttp",
    "committer.catalog.sql.sql_catalog",
)


@dataclass
class Child:
    process: subprocess.Popen[bytes]
    home: Path
    reached: int
    opened: int

    def wait_for_the_gate(self) -> None:
        assert os.read(self.reached, 1) == b"x", "the module is never imported"

    def open_the_gate(self) -> None:
        os.close(self.opened)

    def signal(self, number: signal.Signals) -> None:
        """Signal the process itself, not the one that made its namespace."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        command = Path(f"/proc/{self.process.pid}/comm").read_text().strip()
        target = int(children.read_text()) if command == "unshare" else self.process.pid
        os.kill(target, number)

    def end(self) -> tuple[int, str]:
        """Return its exit code and output. It must exit, with its queue server."""
        _, said = self.process.communicate(timeout=60)
        wait_until(self._has_no_queue, "the queue server has ended, too")
        return self.process.returncode, said.decode()

    def _has_no_queue(self) -> bool:
        lock = self.home / "queue" / "server.lock"
        if not lock.exists():
            return True
        with lock.open() as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True


@contextmanager
def serve(home: Path, moment: str, *, wrapper: Sequence[str] = ()) -> Iterator[Child]:
    gate = home / "gate"
    gate.mkdir()
    (gate / "sitecustomize.py").write_text(_GATE)
    reached, child_reached = os.pipe()
    child_opened, opened = os.pipe()
    process = subprocess.Popen(
        [*wrapper, sys.executable, "-m", "committer", "serve"],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "PYTHONPATH": f"{gate}{os.pathsep}{REPOSITORY}",
            "GATE_MODULE": moment,
            "GATE_REACHED": str(child_reached),
            "GATE_OPENED": str(child_opened),
            "FRAZIL_HOME": str(home),
            "FRAZIL_QUEUE__URL": "private",
            "FRAZIL_SERVICE__HTTP_PORT": str(free_port()),
        },
        pass_fds=(child_reached, child_opened),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    os.close(child_reached)
    os.close(child_opened)
    try:
        yield Child(process, home, reached, opened)
    finally:
        process.kill()
        process.wait()
        os.close(reached)


def require_namespaces() -> None:
    found = shutil.which("unshare")
    tried = subprocess.run([*_AS_FIRST, "true"], capture_output=True) if found else None
    if tried is None or tried.returncode:
        pytest.skip(f"no namespace of processes can be made here: {tried and tried.stderr!r}")


@pytest.mark.parametrize("moment", MOMENTS)
def test_sigterm_while_it_starts_ends_it(tmp_path: Path, moment: str) -> None:
    with serve(tmp_path, moment) as child:
        child.wait_for_the_gate()
        child.signal(signal.SIGTERM)
        child.open_the_gate()
        code, said = child.end()
    assert code in (-signal.SIGTERM, 0), said
    assert "Traceback" not in said
    assert "service.started" not in said


@pytest.mark.parametrize("moment", MOMENTS)
def test_sigterm_ends_the_first_process_of_a_container_while_it_starts(
    tmp_path: Path, moment: str
) -> None:
    require_namespaces()
    with serve(tmp_path, moment, wrapper=_AS_FIRST) as child:
        child.wait_for_the_gate()
        child.signal(signal.SIGTERM)
        child.open_the_gate()
        code, said = child.end()
    assert code in (128 + signal.SIGTERM, 0), said
    assert "Traceback" not in said
    assert "service.started" not in said


def test_ctrl_c_while_it_starts_ends_it_without_a_trace(tmp_path: Path) -> None:
    with serve(tmp_path, "pydantic") as child:
        child.wait_for_the_gate()
        child.signal(signal.SIGINT)
        child.open_the_gate()
        code, said = child.end()
    assert (code, said) == (128 + signal.SIGINT, "")


_BETWEEN = """
import asyncio, os, signal, time
from committer.stop_signals import StopRequest

async def work():
    stop = asyncio.Event()
    told.set_on(stop)
    await stop.wait()
    print("stopped")

told = StopRequest()
os.kill(os.getpid(), signal.SIGTERM)
while not told._is_made:
    time.sleep(0.001)
asyncio.run(work())
told.outlive_loop()
os.kill(os.getpid(), signal.SIGTERM)
print("ended")
"""


def test_a_signal_between_handler_and_loop_is_kept_and_one_behind_the_loop_harmless() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _BETWEEN], cwd=REPOSITORY, capture_output=True, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (0, b"stopped\nended\n")


def test_sigterm_at_any_moment_from_the_first_on_ends_it(tmp_path: Path) -> None:
    """A sweep without a gate: the kernel's own default, the handler, the loop, and in between."""
    codes = []
    for number in range(12):
        home = tmp_path / str(number)
        home.mkdir()
        with serve(home, "nothing") as child:
            time.sleep(number * 0.08)
            child.signal(signal.SIGTERM)
            code, said = child.end()
        assert code in (-signal.SIGTERM, 0), said
        codes.append(code)
    print(f"exit codes over time: {codes}")
