"""`frazil demo --upsert` as a user runs it: upserts, a merge and a compaction on one table."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.demo.demo_processes import END_S_MAX, running, until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]
SMALL = ("--upsert", "--rows", "4000", "--batches", "1", "--apps", "1")


@pytest.mark.heavy
def test_upserts_a_merge_and_a_compaction_make_one_table_that_both_readers_find_whole(
    tmp_path: Path,
) -> None:
    with running(tmp_path, *SMALL) as demo:
        assert demo.wait() == 0, demo.output
        assert demo.left() == []
    first, _, second = demo.output.partition("second act")
    assert "every flight is in the table exactly once, say both readers" in first
    assert re.search(r"changes     [\d,]+ of 400 flights in 24 Parquet files for 4 streams", second)
    assert re.search(r"^  load        66 flights, after \d+ s$", second, re.MULTILINE)
    assert re.search(
        r"^  merge       \d+ flights updated, \d+ deleted, \d+ ins", second, re.MULTILINE
    )
    rewritten = re.search(
        r"^  compaction  (\d+) data files and their deletes", second, re.MULTILINE
    )
    assert rewritten
    assert int(rewritten[1]) > 1
    # 24 upserts and the merge.
    assert re.search(r"snapshots   1 `append`, 25 `overwrite`, 1 `replace`; \d+ after", second)
    rows = re.search(r"^rows +(\d+) +(\d+) +(\d+)$", second, re.MULTILINE)
    assert rows
    assert len(set(rows.groups())) == 1
    assert "every flight is as its last change left it, say both readers" in second
    hints = second.partition("  look around\n")[2]
    assert "table snapshots demo.latest" in hints


@pytest.mark.heavy
def test_ctrl_c_in_the_second_act_leaves_nothing_running(tmp_path: Path) -> None:
    with running(tmp_path, *SMALL) as demo:
        demo.wait_for("  load  ")
        os.killpg(demo.process.pid, signal.SIGINT)
        assert demo.process.wait(END_S_MAX) == 130
        until(lambda: not demo.left(), 5)
    assert "stopping …" in demo.output
    assert "Traceback" not in demo.output
