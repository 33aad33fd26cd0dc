"""The private queue server: starts, keeps its state, is shared, and ends with its parent."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast
from urllib.parse import unquote

import pytest
from structlog.testing import capture_logs

from committer.errors import SettingsError
from committer.ports.world import World
from committer.service.process.redis_server import (
    RedisServer,
    claim_folder,
    find_server_binary,
    keep_running,
    start_redis_server,
)

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.server


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder with a short path, because a unix socket lies in it."""
    with short_folder() as path:
        yield path


@contextmanager
def short_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="frazil-") as path:
        yield Path(path)


@contextmanager
def running(folder: Path) -> Iterator[RedisServer]:
    server = start_redis_server(folder)
    try:
        yield server
    finally:
        server.stop()


def ask(server: RedisServer, *words: str) -> bytes:
    """Send one command (RESP) and return the whole short answer."""
    parts = [f"*{len(words)}\r\n", *(f"${len(word)}\r\n{word}\r\n" for word in words)]
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(unquote(server.url.removeprefix("unix://")))
        client.sendall("".join(parts).encode())
        return client.recv(65_536)


def test_a_server_is_ready_private_and_safe_when_it_was_started(folder: Path) -> None:
    with running(folder) as server:
        assert ask(server, "PING") == b"+PONG\r\n"
        for setting, value in {
            "port": "0",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "save": "",
        }.items():
            answer = ask(server, "CONFIG", "GET", setting).split(b"\r\n")
            assert answer[-2] == value.encode(), setting
        assert (folder / "redis.sock").stat().st_mode & 0o777 == 0o700


class Alarm:
    """A clock that a test moves: each wait ends at once, the test looks on, and the last never."""

    def __init__(self, *looks: Callable[[], None]) -> None:
        self._looks = list(looks)
        self._now_s = 0.0
        self.waited_s: list[float] = []

    def monotonic_s(self) -> float:
        return self._now_s

    async def sleep(self, delay_s: float) -> None:
        if not self._looks:
            raise asyncio.CancelledError
        self._looks.pop(0)()
        self._now_s += delay_s
        self.waited_s.append(delay_s)


def kill(server: RedisServer) -> None:
    assert server.process
    server.process.kill()
    server.process.wait()


def wait_for_answer(server: RedisServer) -> None:
    """Wait until the restarted server has loaded the data of the dead one, and answers with it."""
    end_s = time.monotonic() + 30
    answer = b"-LOADING"
    while answer.startswith(b"-LOADING"):
        assert time.monotonic() < end_s
        time.sleep(0.02)
        with suppress(ConnectionError, FileNotFoundError):
            answer = ask(server, "GET", "kept")
    assert answer.endswith(b"yes\r\n")


async def test_a_server_that_dies_is_started_again_and_less_often_while_it_does_not_last(
    folder: Path,
) -> None:
    with running(folder) as server:
        ask(server, "SET", "kept", "yes")
        first = server.process
        clock = Alarm(lambda: None, *[lambda: kill(server)] * 4, lambda: None)
        with pytest.raises(asyncio.CancelledError), capture_logs() as logs:
            await keep_running(server, cast(World, clock))
        assert server.process is not first
        wait_for_answer(server)
    assert [entry["event"] for entry in logs] == ["queue.server_died"] * 4
    assert clock.waited_s == [1.0, 1.0, 2.0, 4.0, 8.0, 16.0]


async def test_a_server_of_another_process_is_started_again_too(folder: Path) -> None:
    with running(folder) as first, running(folder) as second:
        ask(first, "SET", "kept", "yes")
        assert (second.process, second.revive()) == (None, None)
        kill(first)
        assert second.revive() is not None
        wait_for_answer(second)
        second.stop()


async def test_a_server_that_cannot_be_started_is_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(folder) as server:
        ask(server, "SET", "kept", "yes")

        def lose() -> None:
            kill(server)
            monkeypatch.setattr("committer.service.process.redis_server.find_server_binary", refuse)

        def refuse() -> Path:
            raise SettingsError("no queue server for this machine")

        clock = Alarm(lose, monkeypatch.undo, lambda: None)
        with pytest.raises(asyncio.CancelledError), capture_logs() as logs:
            await keep_running(server, cast(World, clock))
        assert logs[0]["error"].startswith("no queue server")
        wait_for_answer(server)


def test_a_second_committer_of_one_folder_is_refused_while_the_first_one_runs(folder: Path) -> None:
    said = rf"\(process {os.getpid()}\).*`{folder}`.*--home"
    with claim_folder(folder), pytest.raises(SettingsError, match=said):
        claim_folder(folder)
    claim_folder(folder).close()


def test_what_the_server_holds_survives_a_stop_and_a_kill(folder: Path) -> None:
    for number in range(3):
        with running(folder) as server:
            assert ask(server, "INCR", "starts") == f":{number + 1}\r\n".encode()
            if number == 1:
                assert server.process
                server.process.kill()
                server.process.wait()


def test_a_running_server_is_used_and_left_alone(folder: Path) -> None:
    with running(folder) as first:
        with running(folder) as second:
            assert second.process is None
            assert second.url == first.url
        assert ask(first, "PING") == b"+PONG\r\n"
        assert len(list(folder.glob("*.sock"))) == 1
    first.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_killed_parent_takes_the_server_along_and_the_next_start_is_not_fooled(
    folder: Path,
) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from committer.service.process.redis_server import start_redis_server\n"
        "server = start_redis_server(Path(sys.argv[1]))\n"
        "print(server.process.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as parent:
        assert parent.stdout
        orphan = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    with running(folder) as server:
        assert server.process is not None, "the dying server was taken for a live one"
        assert ask(server, "PING") == b"+PONG\r\n"
        with suppress(ProcessLookupError):
            state = Path(f"/proc/{orphan}/stat")
            assert not state.exists() or state.read_text().split()[2] == "Z"


def test_a_terminals_interrupt_does_not_reach_the_server(folder: Path) -> None:
    with running(folder) as server:
        assert server.process
        assert os.getpgid(server.process.pid) != os.getpgid(0)


def test_a_server_that_dies_at_the_start_leaves_its_last_words(folder: Path) -> None:
    with running(folder) as server:
        ask(server, "SET", "key", "value")
    for file in (folder / "appendonlydir").glob("*.manifest"):
        file.write_text("rubbish\n")
    with pytest.raises(SettingsError, match=r"did not start: .*AOF"):
        start_redis_server(folder)


def test_a_program_that_is_no_server_is_named(folder: Path) -> None:
    with pytest.raises(SettingsError, match="did not start: there is no log"):
        start_redis_server(folder, binary=Path(shutil.which("true") or "/bin/true"))


def test_a_folder_too_long_for_a_socket_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="too long for a unix socket"):
        start_redis_server(tmp_path / ("x" * 100))
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_a_server_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert find_server_binary().name == "valkey-server"
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    monkeypatch.setattr(shutil, "which", {"redis-server": "/opt/redis-server"}.get)
    assert find_server_binary() == Path("/opt/redis-server")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(SettingsError, match=r"pdp11.*has no server.*install Redis"):
        find_server_binary()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SettingsError, match="is not installed"):
        find_server_binary()
