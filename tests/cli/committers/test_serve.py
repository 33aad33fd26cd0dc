"""`frazil serve` as an operator meets it: real process, private queue, SQLite, local files."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from committer.errors import QueueUnavailableError
from committer.ports.queue import Doorbell
from committer.request.request_format import EncodedRequest, line_digest
from committer.service.process.composition import Parts
from tests.support.builders.request_builders import build_request
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import REPOSITORY, serving, wait_until
from tests.support.servers.free_port import free_port

pytestmark = pytest.mark.server


@pytest.fixture
def frazil(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Frazil:
    """Return the command beside a private queue, with one table."""
    frazil = Frazil(tmp_path, monkeypatch, capsys, {"FRAZIL_QUEUE__URL": "private"})
    assert frazil("table", "create", "db.flights", "--schema", "id long, name string").code == 0
    return frazil


def publish(frazil: Frazil, epochs: Sequence[int], *, announce: bool = True) -> None:
    """Make requests durable and announce them, as a producer does."""
    table = frazil.load()

    async def work(parts: Parts) -> None:
        requests = [build_request(table, epoch=epoch) for epoch in epochs]
        for sealed in requests:
            await parts.inbox.put(sealed)
        if announce:
            assert parts.queue is not None
            await parts.queue.announce([doorbell(sealed) for sealed in requests])

    frazil.with_parts(work)


def doorbell(sealed: EncodedRequest) -> Doorbell:
    request = sealed.request
    return Doorbell(
        request.table_uuid, request.inbox_key, line_digest(sealed.content), sealed.content, None
    )


def landed(frazil: Frazil) -> str:
    """Return the epochs that the ledger lists as landed."""
    producers = frazil("status", "--json").object["producers"]
    return ",".join(one["epochs"] for one in producers)


def live_paths(home: Path) -> list[str]:
    """Return the table's live files as another reader finds them."""
    catalog = SqlCatalog("frazil", uri=f"sqlite:///{home}/catalog.db", warehouse=str(home))
    try:
        table = catalog.load_table("db.flights")
        return [task.file.file_path for task in table.scan().plan_files()]
    finally:
        catalog.close()


def test_a_published_request_is_committed_and_found_by_pyiceberg(
    frazil: Frazil, tmp_path: Path
) -> None:
    with serving(tmp_path) as service:
        service.wait_until_ready()
        publish(frazil, [0, 1, 2])
        wait_until(lambda: landed(frazil) == "0-2", "three epochs have landed")
        wait_until(lambda: not frazil.outstanding(), "the inbox is empty")
        found = frazil("status", "--json")
        assert (found.code, found.object["queue"]["waiting"]) == (0, 0)
        assert service.end() == 0
    assert len(set(live_paths(tmp_path))) == 3
    assert len(frazil("table", "files", "db.flights", "--json").lines) == 3
    rows = frazil("table", "snapshots", "db.flights", "--json").lines
    assert sum(int(row["summary"]["added-records"]) for row in rows) == 30


def test_a_request_that_nobody_announced_is_found_at_the_start(
    frazil: Frazil, tmp_path: Path
) -> None:
    publish(frazil, [0], announce=False)
    with serving(tmp_path):
        wait_until(lambda: landed(frazil) == "0", "the epoch has landed")


def test_bad_input_is_quarantined_and_a_replay_brings_it_back_to_judgment(
    frazil: Frazil, tmp_path: Path
) -> None:
    with serving(tmp_path) as service:
        service.wait_until_ready()
        table = frazil.load()
        bad = build_request(table, epoch=0, catalog="another")
        frazil.put(bad)
        frazil.write_files(bad)

        async def announce(parts: Parts) -> None:
            assert parts.queue is not None
            await parts.queue.announce([doorbell(bad)])

        frazil.with_parts(announce)
        publish(frazil, [1])
        wait_until(lambda: landed(frazil) == "1", "the other one has landed")
        wait_until(lambda: bool(frazil.quarantined()), "the bad one is in quarantine")
        first = frazil("quarantine", "list", "--json").object
        assert first["reason"] == "catalog_mismatch"
        assert frazil("quarantine", "replay", first["key"][:8]).code == 0

        def is_judged_again() -> bool:
            found = frazil("quarantine", "list", "--json").lines
            return any(one["quarantined_at_ms"] > first["quarantined_at_ms"] for one in found)

        wait_until(is_judged_again, "it is in quarantine once more")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_is_exit_code_0(
    frazil: Frazil, tmp_path: Path, number: signal.Signals
) -> None:
    with serving(tmp_path) as service:
        service.wait_until_ready()
        publish(frazil, range(20))
        assert service.end(number) == 0
        assert "service.stopped" in service.log
        assert "Traceback" not in service.log
    # Each request that was not committed is still where it was made durable.
    assert len(live_paths(tmp_path)) + len(frazil.outstanding()) >= 20


@pytest.mark.timeout(180)
def test_a_killed_committer_is_followed_by_one_that_loses_and_doubles_nothing(
    frazil: Frazil, tmp_path: Path
) -> None:
    eager = {"FRAZIL_COMMIT__MIN_INTERVAL_MS": "0", "FRAZIL_COMMIT__BATCH_REQUESTS_MAX": "3"}
    for start in (0, 30, 60):
        publish(frazil, range(start, start + 30), announce=False)
        before = landed(frazil)
        with serving(tmp_path, eager) as service:
            wait_until(lambda: landed(frazil) != before, "something has landed")  # noqa: B023
            service.process.kill()
    with serving(tmp_path) as service:
        wait_until(lambda: landed(frazil) == "0-89", "everything has landed")
        wait_until(lambda: not frazil.outstanding(), "the inbox is empty")
    paths = live_paths(tmp_path)
    assert (len(paths), len(set(paths))) == (90, 90)
    assert frazil.quarantined() == []


def test_a_port_in_use_is_named_in_one_line_with_exit_code_2(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with serving(tmp_path, {"FRAZIL_SERVICE__HTTP_PORT": str(port)}) as service:
            assert service.process.wait(30) == 2
    assert "FRAZIL_SERVICE__HTTP_PORT" in service.log
    assert f"cannot listen on 127.0.0.1:{port}" in service.log
    assert service.log.count("\n") == 1


def test_port_and_home_may_be_options(tmp_path: Path) -> None:
    home, port = tmp_path / "other", free_port()
    elsewhere = {"FRAZIL_HOME": "/does/not/exist", "FRAZIL_QUEUE__URL": "none"}
    home.mkdir()
    (home / "frazil.toml").write_text('[catalog]\nname = "of_the_option"\n')
    options = ("--port", str(port), "--home", str(home))
    with serving(tmp_path, elsewhere, options=options, port=port) as service:
        service.wait_until_ready()
        rebound = Request(f"http://127.0.0.1:{port}/livez", headers={"Host": "rebound.example"})
        with pytest.raises(HTTPError, match="403") as refused:
            urlopen(rebound, timeout=60)
        refused.value.close()
        assert service.end() == 0
    assert f"catalog `of_the_option` (sqlite:///{home}/catalog.db)" in service.log
    assert f"health http://127.0.0.1:{port}/readyz" in service.log


def test_a_second_committer_on_one_private_queue_is_refused(frazil: Frazil, tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        first.wait_until_ready()
        with serving(tmp_path) as second:
            assert second.process.wait(30) == 2
        last = second.log.splitlines()[-1]
        assert f"another `frazil serve` (process {first.process.pid}) runs" in last
        assert f"{tmp_path}/queue" in last
        assert first.is_ready()


def process_of(address: Path) -> int:
    """Return the process of the server that listens there."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(address))
        client.sendall(b"INFO server\r\n")
        found = re.search(rb"process_id:([0-9]+)", client.recv(65_536))
    assert found
    return int(found[1])


def test_a_private_queue_that_is_killed_comes_back_and_doorbells_go_on(
    frazil: Frazil, tmp_path: Path
) -> None:
    with serving(tmp_path) as service:
        service.wait_until_ready()
        os.kill(process_of(tmp_path / "queue" / "redis.sock"), signal.SIGKILL)
        wait_until(lambda: "queue.server_died" in service.log, "its death was seen")

        def announce() -> bool:
            try:
                publish(frazil, [0])
            except QueueUnavailableError:
                return False
            return True

        wait_until(announce, "the queue answers")
        wait_until(lambda: landed(frazil) == "0", "what was announced has landed")
        assert service.end() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that no user can write to")
@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("FRAZIL_INBOX", "/proc/requests", "`inbox` (FRAZIL_INBOX)"),
        ("FRAZIL_CATALOG__URI", "sqlite:////proc/c/c.db", "`catalog.uri` (FRAZIL_CATALOG__URI)"),
        ("FRAZIL_HOME", "/proc/home", "`home` (FRAZIL_HOME)"),
    ],
)
def test_a_back_end_that_cannot_be_used_is_refused_by_the_name_of_its_setting(
    tmp_path: Path, variable: str, value: str, named: str
) -> None:
    with serving(tmp_path, {variable: value}) as service:
        assert service.process.wait(30) == 2
    assert named in service.log.splitlines()[-1]
    assert "Traceback" not in service.log


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from committer.__main__ import main; main(['--help']);"
        "heavy = {'pydantic', 'sqlalchemy', 'redis', 'aiohttp', 'structlog', 'asyncio', 'rich'};"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Usage: frazil" in ended.stdout
