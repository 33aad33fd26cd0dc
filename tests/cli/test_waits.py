"""Each thing that a committer waits for hangs, in real processes: the others go on, it is named,
and it ends.

The bounds of these tests are deadlines of waiting, not measurements.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from committer.ports.queue import Doorbell
from committer.request.request_format import EncodedRequest, line_digest
from committer.service.process.composition import Parts
from tests.support.builders.request_builders import build_request
from tests.support.cli import serving as processes
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import REPOSITORY, Serving, serving

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

WITHOUT_QUEUE = {"FRAZIL_QUEUE__URL": "none", "FRAZIL_SERVICE__RECONCILE_INTERVAL_S": "1"}
wait_until = partial(processes.wait_until, deadline_s=120.0)
SCHEMA = ("--schema", "id long, name string, n int")


def publish(frazil: Frazil, epoch: int, name: str = "db.flights") -> None:
    """Publish a request as a producer does."""
    sealed = build_request(frazil.load(name), epoch=epoch)

    async def work(parts: Parts) -> None:
        await parts.inbox.put(sealed)
        if parts.queue is not None:
            await parts.queue.announce((_doorbell(sealed),))

    frazil.with_parts(work)


def _doorbell(sealed: EncodedRequest) -> Doorbell:
    request, digest = sealed.request, line_digest(sealed.content)
    return Doorbell(request.table_uuid, request.inbox_key, digest, sealed.content, None)


def commits(frazil: Frazil, name: str = "db.flights") -> int:
    return len(frazil.load(name).metadata.snapshots)


def has_commits(frazil: Frazil, name: str, count: int) -> bool:
    return commits(frazil, name) == count


def status(service: Serving) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(service.ask("/status"))
    return found


_GATE = """
import os

folder, gate = os.environ["GATE_FOLDER"], os.environ["GATE"]

def gated(call):
    def wait_and_call(path, *arguments, **named):
        where = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.fspath(path)
        if where.startswith(folder) and os.path.lexists(gate):
            os.close(opened(gate, os.O_RDONLY))
        return call(path, *arguments, **named)
    return wait_and_call

opened = os.open
for name in ("open", "stat", "fsync", "link", "unlink", "scandir", "mkdir"):
    setattr(os, name, gated(getattr(os, name)))
"""

_NAMES = """
import os, socket

def look_up(host, *arguments, **named):
    if host == "unanswered.invalid":
        os.open(os.environ["GATE"], os.O_RDONLY)
    return before(host, *arguments, **named)

before, socket.getaddrinfo = socket.getaddrinfo, look_up
"""


class Mount:
    """A folder of which a committer's calls hang while the gate is closed: a FIFO to be opened."""

    def __init__(self, home: Path, folder: Path) -> None:
        code = home / "gate"
        code.mkdir()
        (code / "sitecustomize.py").write_text(_GATE)
        self._gate = home / "gate.fifo"
        self.settings = {
            "PYTHONPATH": f"{code}{os.pathsep}{REPOSITORY}",
            "GATE_FOLDER": str(folder),
            "GATE": str(self._gate),
        }

    def hang(self) -> None:
        os.mkfifo(self._gate)

    def answer(self) -> None:
        gate = os.open(self._gate, os.O_RDWR)
        self._gate.unlink()
        os.close(gate)


@contextmanager
def full_pipe() -> Iterator[tuple[int, int]]:
    """Yield both ends of a pipe that takes no further byte until it is read."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(write, bytes(4096))
    os.set_blocking(write, True)
    yield read, write
    os.close(read)
    os.close(write)


def test_a_log_that_no_process_reads_holds_up_neither_commits_nor_the_end(
    tmp_path: Path, frazil: Frazil
) -> None:
    assert frazil("table", "create", "db.flights", *SCHEMA).code == 0
    with (
        full_pipe() as (_, write),
        serving(tmp_path, WITHOUT_QUEUE, stderr=write) as service,
    ):
        service.wait_until_ready()
        publish(frazil, 0)
        wait_until(lambda: commits(frazil) == 1, "the request has landed")
        assert json.loads(service.ask("/livez"))["status"] == "ok"
        assert b"frazil_log_dropped_lines_total 0.0" in service.ask("/metrics")
        assert service.end(signal.SIGTERM) == 0


def test_a_table_whose_mount_hangs_holds_up_itself_alone_and_is_named(
    tmp_path: Path, frazil: Frazil
) -> None:
    for name in ("db.hung", "db.good"):
        assert frazil("table", "create", name, *SCHEMA).code == 0
    folder = Path(frazil.load("db.hung").metadata.location.removeprefix("file://"))
    mount = Mount(tmp_path, folder)
    with serving(tmp_path, {**WITHOUT_QUEUE, **mount.settings}) as service:
        service.wait_until_ready()
        publish(frazil, 0, "db.hung")
        wait_until(lambda: commits(frazil, "db.hung") == 1, "it lands before the mount hangs")
        mount.hang()
        for epoch in range(1, 13):
            publish(frazil, epoch, "db.hung")
        for epoch in range(3):
            publish(frazil, epoch, "db.good")
            wait_until(partial(has_commits, frazil, "db.good", epoch + 1), "the other goes on")
        place = "files of table db.hung"
        wait_until(lambda: place in status(service)["conditions"], "the place is named")
        assert str(folder) in status(service)["conditions"][place]
        assert service.is_ready()
        assert b"frazil_hung_calls 0.0" not in service.ask("/metrics")
        mount.answer()
        wait_until(lambda: len(frazil.outstanding()) == 0, "all have landed")
        wait_until(lambda: place not in status(service)["conditions"], "the condition is gone")
        assert service.end(signal.SIGTERM) == 0
    events = [line for line in service.log.splitlines() if "place." in line]
    assert len(events) == 2, events


def test_sigterm_ends_a_committer_of_a_table_whose_mount_hangs(
    tmp_path: Path, frazil: Frazil
) -> None:
    assert frazil("table", "create", "db.hung", *SCHEMA).code == 0
    folder = Path(frazil.load("db.hung").metadata.location.removeprefix("file://"))
    mount = Mount(tmp_path, folder)
    settings = {**WITHOUT_QUEUE, **mount.settings, "FRAZIL_SERVICE__DRAIN_TIMEOUT_S": "1"}
    with serving(tmp_path, settings) as service:
        service.wait_until_ready()
        mount.hang()
        publish(frazil, 0, "db.hung")
        wait_until(lambda: bool(status(service)["conditions"]), "the place is named")
        assert service.end(signal.SIGTERM) == 0
    assert "service.drain_exceeded" in service.log
    mount.answer()


def test_an_inbox_that_hangs_is_named_and_the_endpoints_answer(
    tmp_path: Path, frazil: Frazil
) -> None:
    assert frazil("table", "create", "db.flights", *SCHEMA).code == 0
    mount = Mount(tmp_path, tmp_path / "requests")
    with serving(tmp_path, {**WITHOUT_QUEUE, **mount.settings}) as service:
        service.wait_until_ready()
        mount.hang()
        place = "files of the inbox"
        wait_until(lambda: place in status(service)["conditions"], "the place is named")
        assert json.loads(service.ask("/livez"))["status"] == "ok"
        mount.answer()
        publish(frazil, 0)
        wait_until(lambda: commits(frazil) == 1, "the request lands")
        wait_until(lambda: place not in status(service)["conditions"], "the condition is gone")
        assert service.end(signal.SIGTERM) == 0


@pytest.mark.heavy
def test_a_name_server_that_does_not_answer_does_not_hold_up_the_end(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.mkdir()
    (gate / "sitecustomize.py").write_text(_NAMES)
    os.mkfifo(tmp_path / "gate.fifo")
    settings = {
        "FRAZIL_QUEUE__URL": "none",
        "FRAZIL_CATALOG__TYPE": "rest",
        "FRAZIL_CATALOG__URI": "http://unanswered.invalid/",
        "PYTHONPATH": f"{gate}{os.pathsep}{REPOSITORY}",
        "GATE": str(tmp_path / "gate.fifo"),
    }
    with serving(tmp_path, settings) as service:
        wait_until(lambda: "names of servers" in conditions(service), "the name server is named")
        assert service.end(signal.SIGTERM) == 0


def conditions(service: Serving) -> str:
    """Return the conditions of a committer that may not listen yet."""
    try:
        return str(status(service)["conditions"])
    except OSError:
        return ""


@pytest.mark.heavy
def test_a_private_queue_server_that_is_stopped_ends_with_its_committer(
    tmp_path: Path, frazil: Frazil
) -> None:
    assert frazil("table", "create", "db.flights", *SCHEMA).code == 0
    settings = {"FRAZIL_QUEUE__URL": "private", "FRAZIL_SERVICE__DRAIN_TIMEOUT_S": "2"}
    with serving(tmp_path, settings) as service:
        service.wait_until_ready()
        (server,) = (child for child in children(service.process.pid) if "server" in command(child))
        os.kill(server, signal.SIGSTOP)
        try:
            frazil.put(build_request(frazil.load()))
            wait_until(lambda: "queue" in status(service)["conditions"], "the queue is named")
            wait_until(lambda: commits(frazil) == 1, "the request lands without it")
            assert service.end(signal.SIGTERM) == 0
            wait_until(lambda: "server" not in command(server), "the server has ended")
        finally:
            with suppress(ProcessLookupError):
                os.kill(server, signal.SIGKILL)


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def command(pid: int) -> str:
    """Return the name of a process; empty for one that has ended."""
    try:
        is_zombie = ") Z " in Path(f"/proc/{pid}/stat").read_text()
        return "" if is_zombie else Path(f"/proc/{pid}/comm").read_text()
    except FileNotFoundError:
        return ""
