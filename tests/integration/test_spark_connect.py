"""Frazil on a server of Spark Connect, whose client and workers share no process."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from tests.support.integration.real_harness import real_harness

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.heavy,
    pytest.mark.timeout(400),
]


def test_writes_reads_streams_and_changes_work_on_spark_connect() -> None:
    with real_harness() as harness:
        asyncio.run(harness.start())
        plain = {k: v for k, v in harness.environment().items() if not k.startswith("FRAZIL_")}
        command = ("-m", "tests.integration.connect_application")
        done = subprocess.run(
            [sys.executable, *command, str(harness.folder), harness.settings.queue_url],
            env=plain,
            capture_output=True,
            text=True,
            timeout=380,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3_000:]
        outcomes = dict(map(json.loads, done.stdout.splitlines()))
        needs_name = outcomes.pop("sink without producer")
        assert "producer= is needed here (Spark Connect" in str(needs_name)
        assert outcomes == {
            "create": True,
            "append": 5,
            "distribute": 10,
            "metadata table": 2,
            "delete": 2,
            # 0, 2, 3 and 4 twice; of 3 to 7 the last three are new.
            "merge": 11,
            "compact": 1,
            "stream": 21,
            "upsert": 21,
            "sink": 31,
            "read stream": True,
        }
