"""With `service.log_format = "json"` every line on stderr is JSON: real processes, wrong things."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.serving import REPOSITORY, serving
from tests.support.servers.free_port import free_port

pytestmark = pytest.mark.server

JSON = {"FRAZIL_SERVICE__LOG_FORMAT": "json"}


def parsed(said: str) -> list[dict[str, Any]]:
    """Parse each line. Errors: one that is no JSON object."""
    lines = [json.loads(line) for line in said.splitlines()]
    for line in lines:
        assert {"event", "level", "timestamp"} <= set(line), line
    return lines


def serve_in_vain(
    home: Path, settings: Mapping[str, str], *words: str
) -> tuple[int, list[dict[str, Any]]]:
    """Run a `serve` that ends by itself; return its exit code and its lines."""
    ended = subprocess.run(
        [sys.executable, "-m", "committer", "serve", *words],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "FRAZIL_HOME": str(home),
            "FRAZIL_QUEUE__URL": "none",
            "FRAZIL_SERVICE__HTTP_PORT": str(free_port()),
            **settings,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stdout == ""
    return ended.returncode, parsed(ended.stderr)


def test_a_whole_life_of_a_committer_is_json(tmp_path: Path) -> None:
    with serving(tmp_path, JSON) as service:
        service.wait_until_ready()
        with socket.create_connection(("127.0.0.1", service.port)) as rude:
            rude.sendall(b"\x00\xffGET \x1b[31m\r\n\r\n")
            rude.recv(1024)
        assert service.end(signal.SIGTERM) == 0
    events = [line["event"] for line in parsed(service.log)]
    assert {"service.started", "service.stopped"} <= set(events)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"FRAZIL_COMMIT__MIN_INTERVAL_MS": "soon"}, "FRAZIL_COMMIT__MIN_INTERVAL_MS"),
        *(
            pytest.param(settings, said, marks=pytest.mark.heavy)
            for settings, said in (
                ({"FRAZIL_CONFIG": "/absent.toml"}, "is not a file"),
                ({"FRAZIL_INBOX": "/proc/requests"}, "FRAZIL_INBOX"),
                ({"FRAZIL_SERVICE__HTTP_HOST": "256.0.0.1"}, "FRAZIL_SERVICE__HTTP_HOST"),
            )
        ),
    ],
)
def test_a_setting_that_is_wrong_is_one_event(
    tmp_path: Path, settings: dict[str, str], said: str
) -> None:
    code, lines = serve_in_vain(tmp_path, {**JSON, **settings})
    assert code == 2
    assert lines[-1]["event"] == "process.failed"
    assert said in lines[-1]["error"]


def test_a_settings_file_may_ask_for_it_too(tmp_path: Path) -> None:
    (tmp_path / "frazil.toml").write_text('inbox = "/proc/requests"\n[service]\nlog_format="json"')
    code, lines = serve_in_vain(tmp_path, {})
    assert (code, lines[-1]["event"]) == (2, "process.failed")


def test_wrong_usage_is_json_too(tmp_path: Path) -> None:
    code, lines = serve_in_vain(tmp_path, JSON, "--no-such-option")
    assert code == 2
    assert any("--no-such-option" in line["message"] for line in lines)


_EVERYTHING = """
import asyncio, logging, sys, threading, warnings
from committer.service.telemetry import json_stderr
from committer.service.telemetry.log import configure_logs, log

configure_logs("json", "info")
configure_logs("json", "info")

class Spoiled:
    def __del__(self):
        raise RuntimeError("unraisable")

async def work():
    loop = asyncio.get_running_loop()
    loop.call_soon(lambda: 1 / 0)
    asyncio.ensure_future(never_awaited())
    await asyncio.sleep(0)
    await asyncio.sleep(0)

async def never_awaited():
    raise RuntimeError("of a task")

def crash():
    raise RuntimeError("of a thread")

log.info("an.event")
warnings.warn("a warning of\\nPython's")
logging.getLogger("botocore").warning("credentials %s", "found")
logging.getLogger("aiohttp.server").error("wrong %d", "format")
logging.getLogger("sqlalchemy").info("not shown")
print("printed", file=sys.stderr)
sys.stderr.write("half a line")
thread = threading.Thread(target=crash, name="the-thread")
thread.start()
thread.join()
del thread
Spoiled()
asyncio.run(work())
json_stderr.end_speaking()
raise RuntimeError("of the process")
"""


def test_whatever_writes_to_stderr_writes_json() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "default", "-c", _EVERYTHING],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = parsed(ended.stderr)
    said = [(line["event"], line.get("logger")) for line in lines]
    assert ended.returncode == 1
    assert said.count(("an.event", None)) == 1
    assert ("library.logged", "py.warnings") in said
    assert ("library.logged", "botocore") in said
    assert ("library.logged", "aiohttp.server") in said
    assert ("library.logged", "asyncio") in said
    assert ("library.logged", "sqlalchemy") not in said
    messages = [line["message"] for line in lines if line["event"] == "stderr.written"]
    assert messages == ["printed", "half a line"]
    traces = {line["event"]: line["exception"] for line in lines if "exception" in line}
    assert "RuntimeError: of a thread" in traces["thread.crashed"]
    assert "RuntimeError: unraisable" in traces["process.unraisable"]
    assert traces["process.crashed"].endswith("RuntimeError: of the process\n")
    assert any("RuntimeError: of a task" in line.get("exception", "") for line in lines)
    assert any("ZeroDivisionError" in line.get("exception", "") for line in lines)
