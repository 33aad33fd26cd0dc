"""`make demo CATALOG=…` as a user runs it: the whole demo beside a real server, which ends too."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.demo.demo_processes import (
    END_S_MAX,
    Demo,
    command_of,
    descendants,
    is_running,
    running,
    until,
)

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]
SMALL = ("--rows", "4000", "--streams", "2", "--apps", "2")


def skip_without_server(demo: Demo) -> None:
    if missing := re.search(r"^frazil: CATALOG=\w+: (.*)$", demo.output, re.MULTILINE):
        pytest.skip(missing[1])


@pytest.mark.parametrize(
    ("catalog", "uri"),
    [("rest", r"http://\S+"), ("postgres", r"postgresql://\S+"), ("hive", r"thrift://\S+")],
)
def test_the_demo_runs_on_the_catalog_and_both_readers_find_it_whole(
    tmp_path: Path, catalog: str, uri: str
) -> None:
    with running(tmp_path, *SMALL, module=("tests.demo", catalog)) as demo:
        code = demo.wait()
        skip_without_server(demo)
        assert code == 0, demo.output
    out = demo.output
    assert re.search(rf"^  catalog     `{catalog}` \({uri}\)$", out, re.MULTILINE)
    assert re.search(r"^rows +4,000 +4,000 +4,000$", out, re.MULTILINE)
    assert "every flight is in the table exactly once, say both readers" in out
    assert f"warehouse   file://{demo.home}/warehouse/demo/flights" in out
    assert "table show" not in out  # the server has ended
    assert demo.left() == []


def test_ctrl_c_ends_the_demo_first_and_its_server_then(tmp_path: Path) -> None:
    with running(tmp_path, *SMALL, module=("tests.demo", "postgres")) as demo:
        until(lambda: "Spark is up" in demo.output or demo.process.poll() is not None, 300)
        skip_without_server(demo)
        demo.wait_for("Spark is up")
        started = descendants(demo.process.pid)
        (server,) = (pid for pid in started if "bin/postgres -D" in command_of(pid))
        (inner,) = (pid for pid in started if "-m committer demo" in command_of(pid))
        os.killpg(demo.process.pid, signal.SIGINT)
        has_server = True
        while is_running(inner):
            assert has_server, "the server ended before the demo"
            has_server = is_running(server)
            time.sleep(0.02)
        assert demo.process.wait(END_S_MAX) == 130, demo.output
        until(lambda: not any(map(is_running, started)), 5)
    assert "stopping …" in demo.output
    assert "Traceback" not in demo.output
