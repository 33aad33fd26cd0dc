"""The private queue server: starts, keeps its state, is shared, and ends with its parent."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import pytest

from committer.errors import SettingsError
from committer.service.redis_server import RedisServer, find_server_binary, start_redis_server

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.server


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, because a unix socket lies in it."""
    with short_folder() as path:
        yield path


@contextmanager
def short_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="frazil-") as path:
        yield Path(path)


@contextmanager
def running(
    folder: Path, *, appendfsync: Literal["everysec", "always"] = "everysec"
) -> Iterator[RedisServer]:
    server = start_redis_server(folder, appendfsync=appendfsync)
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
    with running(folder, appendfsync="always") as server:
        assert ask(server, "PING") == b"+PONG\r\n"
        for setting, value in {
            "port": "0",
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            "save": "",
        }.items():
            answer = ask(server, "CONFIG", "GET", setting).split(b"\r\n")
            assert answer[-2] == value.encode(), setting
        assert (folder / "redis.sock").stat().st_mode & 0o777 == 0o700


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
        "from committer.service.redis_server import start_redis_server\n"
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
    with pytest.raises(SettingsError, match="did not start: it left no log"):
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
