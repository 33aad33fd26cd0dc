"""A stream from a table, killed again and again while Frazil commits to it, reads each row once."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.integration.processes import kill_session
from tests.support.integration.real_harness import RealHarness, real_harness, until
from tests.support.integration.spark_program import spark_program
from tests.support.integration.traffic import all_ids, producers

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(420),
]

TABLE = "db.flights"
# Micro-batches that a run has noted when it is killed, from its start: also none.
KILLED_AFTER = (2, 0)
EPOCHS_MAX = 40


class Copy:
    """What survives every run: a checkpoint of the stream, and the files of its sink."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def batches(self) -> int:
        """Return how many micro-batches Spark has noted as done."""
        commits = self.folder / "checkpoint" / "commits"
        return len([*commits.glob("[0-9]*")]) if commits.exists() else 0

    def planned(self) -> int:
        """Return how many micro-batches Spark has planned."""
        offsets = self.folder / "checkpoint" / "offsets"
        return len([*offsets.glob("[0-9]*")]) if offsets.exists() else 0

    def files(self) -> set[Path]:
        """Return the files of noted micro-batches: a killed one leaves others."""
        log = self.folder / "copy" / "_spark_metadata"
        lines = [
            json.loads(line)
            for path in log.glob("[0-9]*")
            for line in path.read_text().splitlines()[1:]
        ]
        return {Path(line["path"].removeprefix("file://")) for line in lines}

    def ids(self) -> list[int]:
        return [each for path in self.files() for each in pq.read_table(path)["id"].to_pylist()]

    @contextmanager
    def running(self, harness: RealHarness, *until: str) -> Iterator[subprocess.Popen[str]]:
        arguments = TABLE, str(self.folder), *until
        log_file = self.folder / "spark.log"
        module = "tests.integration.stream_copy"
        with spark_program(harness, module, *arguments, log_file=log_file) as process:
            yield process


async def test_a_stream_that_is_killed_reads_each_row_once(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    with real_harness() as harness:
        table = await harness.create_table(TABLE)
        await harness.start()
        async with producers(harness, table, 1) as published:
            killing = asyncio.create_task(kill_again_and_again(harness, copy))
            while not killing.done():
                if published[0].epochs < EPOCHS_MAX:
                    await published[0].publish()
                await asyncio.sleep(0.2)
            await killing
        await until(harness.is_settled, "an empty inbox")
        ids = all_ids(published)
        with copy.running(harness, "finish") as process:
            assert await asyncio.to_thread(process.wait) == 0
    assert sorted(copy.ids()) == sorted(ids)
    print(f"{len(ids)} rows in {copy.batches()} micro-batches, each row once")


async def kill_again_and_again(harness: RealHarness, copy: Copy) -> None:
    for more in KILLED_AFTER:
        done, planned = copy.batches() + more, copy.planned() + 1
        with copy.running(harness) as process:
            await until(
                lambda done=done, planned=planned: (
                    copy.batches() >= done and copy.planned() >= planned
                ),
                "micro-batches",
                timeout_s=120,
                poll_s=0.01,
            )
            kill_session(process)
