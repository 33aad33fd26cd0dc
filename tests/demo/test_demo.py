"""`frazil demo` as a user runs it: real Spark applications, a real committer, a real queue server.

Each run is a process. Processes that it left running are looked for on the whole machine.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.demo.demo_processes import END_S_MAX, ROOT, Demo, running, until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

SMALL = ("--rows", "20000", "--streams", "4")
UP = "Spark is up"


def test_many_streams_make_one_table_that_other_readers_find_whole(tmp_path: Path) -> None:
    with running(tmp_path, *SMALL) as demo:
        assert demo.wait() == 0, demo.output
        assert demo.left() == []
    out = demo.output
    assert "4 Spark streams, 2 applications, one table" in out
    assert "20,000 flights in 12 Parquet files for 4 streams" in out
    assert re.search(
        r"published 20,000 rows in 12 micro-batches; committed 20,000 rows in \d+ commits of"
        r" [\d.]+ micro-batches; latency p50 [\d.]+ s, p99 [\d.]+ s; conflicts seen by writers: 0",
        out,
    )
    assert re.search(r"^rows +20,000 +20,000 +20,000$", out, re.MULTILINE)
    assert re.search(r"^carriers with equal sums +15 +15 +15$", out, re.MULTILINE)
    assert re.search(r"^paths named twice +0 +0$", out, re.MULTILINE)
    assert "every flight is in the table exactly once, say both readers" in out
    assert f"warehouse   file://{demo.home}/warehouse/demo/flights" in out
    # The inbox holds outstanding requests, and there are none. The high-water mark records the
    # landed ones, and the identity of the inbox is in the names of the queue's keys.
    root = demo.home / "requests"
    left = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
    assert sorted(path.parts[0] for path in left) == ["installation", "witness"]
    assert_every_hint_works(demo)
    assert_a_second_run_refuses_the_folder(demo)


def assert_every_hint_works(demo: Demo) -> None:
    commands = demo.output.partition("  look around\n")[2].splitlines()
    assert len(commands) == 5
    for command in commands:
        answer = subprocess.run(
            ["sh", "-c", command.strip()],
            cwd=demo.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert answer.returncode == 0, (command, answer.stderr)
        assert answer.stdout, command
        words = shlex.split(command)
        if "query.py" in command:
            assert "UA" in answer.stdout
        elif "show" in words:
            assert "month(time_hour), bucket[8](carrier)" in answer.stdout


def assert_a_second_run_refuses_the_folder(demo: Demo) -> None:
    with running(demo.folder, *SMALL) as second:
        assert second.wait() == 2
        assert "is not empty: name a new folder" in second.output


@pytest.mark.heavy
@pytest.mark.parametrize("whole_group", [True, False], ids=["terminal", "kill"])
def test_ctrl_c_leaves_nothing_running(tmp_path: Path, whole_group: bool) -> None:
    with running(tmp_path, *SMALL) as demo:
        demo.wait_for(UP if whole_group else "published")
        names = " ".join(demo.left())
        for name in ("java", "valkey-server", "committer serve", '"spark-2"'):
            assert name in names
        if whole_group:
            os.killpg(demo.process.pid, signal.SIGINT)
        else:
            os.kill(demo.process.pid, signal.SIGINT)
        assert demo.process.wait(END_S_MAX) == 130
        until(lambda: not demo.left(), 5)
    assert "stopping …" in demo.output
    assert "Traceback" not in demo.output


@pytest.mark.heavy
def test_a_demo_that_is_killed_leaves_nothing_running(tmp_path: Path) -> None:
    with running(tmp_path, *SMALL) as demo:
        demo.wait_for(UP)
        demo.process.kill()
        until(lambda: not demo.left(), END_S_MAX)


@pytest.mark.heavy
def test_an_application_that_dies_fails_the_demo_with_its_last_words(tmp_path: Path) -> None:
    with running(tmp_path, *SMALL) as demo:
        demo.wait_for(UP)
        (pids,) = re.findall(r"\(processes (\d+), \d+\)", demo.output)
        os.kill(int(pids), signal.SIGKILL)
        assert demo.process.wait(END_S_MAX) == 1
        until(lambda: not demo.left(), 5)
    _, what, end = demo.output.partition("frazil: spark-1 ended with SIGKILL; the end of ")
    log, _, words = end.partition(":\n")
    assert what
    # Lines that it logged before, or that its Java logged after losing it.
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    assert lines
    assert set(lines) <= {line.strip() for line in Path(log).read_text().splitlines()}
