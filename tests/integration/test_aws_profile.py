"""The production profile on real servers: DynamoDB, S3 and Redis, a committer that is killed once,
Spark applications, and Iceberg Java committing to the same table with its default retries.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from committer.iceberg.metadata.snapshot import Snapshot
from tests.integration.aws_harness import AwsHarness, aws_harness
from tests.integration.streaming_application import Driver, Stream, spark_driver
from tests.support.integration.java_engine import JavaEngine, java_engine
from tests.support.integration.readers import Contents, expected
from tests.support.integration.real_harness import ROOT, until
from tests.support.servers.dynamodb_server import REGION, DynamoDbServer
from tests.support.servers.s3_server import S3Server
from workers.files.s3_files import s3_path

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

TABLE = "db.flights"
ROWS = 10
EPOCHS_MAX = 1_000
# With Iceberg's own 4 retries, Java's first append fails on a slow machine: no gap is left for an
# engine that has never committed.
JAVA_RETRIES = {"commit.retry.num-retries": "20"}
# Two streams at full speed would leave Java no processor.
PAUSE_S = 0.5
KILL_AFTER = 2
SWITCHES_MIN = 4


@dataclass(slots=True)
class Feed:
    """One Spark application and what its stream was given."""

    number: int
    stream: Stream
    driver: Driver
    epochs: int = 0
    ids: list[int] = field(default_factory=list)

    def add(self) -> None:
        """Add input for one more micro-batch."""
        start = (self.number * EPOCHS_MAX + self.epochs) * ROWS
        ids = range(start, start + ROWS)
        self.stream.add_input(self.epochs, ids)
        self.ids += ids
        self.epochs += 1

    def is_idle(self) -> bool:
        return self.stream.has_committed(self.epochs - 1)

    async def start(self) -> None:
        self.add()
        await asyncio.to_thread(self.driver.ask, "start", "durable")
        await until(self.is_idle, "the first micro-batch", timeout_s=120)

    async def feed_until(self, done: asyncio.Future[Any]) -> None:
        """Add micro-batches, each after the one before, and one when `done`."""
        while not done.done():
            self.add()
            await until(self.is_idle, "a micro-batch", timeout_s=120)
            await asyncio.sleep(PAUSE_S)
        self.add()
        await asyncio.to_thread(self.driver.ask, "drain")


@pytest.mark.parametrize(
    ("streams", "appends"), [(1, 4), pytest.param(2, 6, marks=pytest.mark.heavy)]
)
async def test_rows_of_spark_streams_and_of_java_are_all_there_once_on_dynamodb_and_s3(
    dynamodb_server: DynamoDbServer,
    s3_server: S3Server,
    tmp_path: Path,
    streams: int,
    appends: int,
) -> None:
    with aws_harness(dynamodb_server, s3_server) as harness, ExitStack() as stack:
        java = stack.enter_context(java_engine(harness, harness.java_catalog()))
        feeds = [_feed(harness, number, tmp_path, stack) for number in range(streams)]
        await harness.create_table(TABLE, properties=JAVA_RETRIES)
        await harness.start()
        async with asyncio.TaskGroup() as starting:
            starting.create_task(asyncio.to_thread(java.sql, "SHOW TABLES IN frazil.db"))
            for each in feeds:
                starting.create_task(each.start())

        appending = asyncio.create_task(_append_by_java(harness, java, appends))
        async with asyncio.TaskGroup() as feeding:
            for each in feeds:
                feeding.create_task(each.feed_until(appending))
        java_ids = await appending  # raises if one of Java's appends failed
        await until(harness.is_settled, "an empty inbox")
        await _check(harness, java, feeds, java_ids)


def _feed(harness: AwsHarness, number: int, folder: Path, stack: ExitStack) -> Feed:
    stream = Stream(folder / f"stream-{number}", TABLE)
    stream.folder.mkdir()
    driver = stack.enter_context(spark_driver(harness, stream, master="local[1]"))
    return Feed(number, stream, driver)


async def _append_by_java(harness: AwsHarness, java: JavaEngine, appends: int) -> list[int]:
    """Append row after row, and read each back; meanwhile the committer dies and comes back."""
    ids = [-number for number in range(1, appends + 1)]
    reborn = None
    for count, each in enumerate(ids):
        if count == KILL_AFTER:
            harness.signal(signal.SIGKILL)
            reborn = asyncio.create_task(harness.start())
        await asyncio.to_thread(java.sql, f"INSERT INTO frazil.{TABLE} VALUES ({each}, 'ZZ')")
        query = f"SELECT count(*) FROM frazil.{TABLE} WHERE id = {each}"
        assert await asyncio.to_thread(java.value, query) == 1
    assert reborn is not None
    await reborn
    return ids


# --- The state at the end ------------------------------------------------------------------------


async def _check(
    harness: AwsHarness,
    java: JavaEngine,
    feeds: Sequence[Feed],
    java_ids: list[int],
) -> None:
    ids = [each for feed in feeds for each in feed.ids] + java_ids
    seen = {
        "Frazil": _seen_by_frazil(harness),
        "PyIceberg": await _seen_by_pyiceberg(harness),
    }
    files = seen["Frazil"].files
    assert seen == dict.fromkeys(seen, expected(files, ids))
    query = f"SELECT count(*), count(DISTINCT id), sum(id) FROM frazil.{TABLE}"
    assert java.sql(query) == [[len(ids), len(set(ids)), sum(ids)]]
    assert await harness.quarantined() == []
    status = json.loads(_frazil(harness, "status", "--json"))
    assert status["inbox"]["requests"] == 0

    snapshots = (await harness.load(TABLE)).metadata.snapshots
    ours = [each for each in snapshots if _is_ours(each)]
    assert len(snapshots) == len(ours) + len(java_ids)
    switches = sum(_is_ours(before) != _is_ours(after) for before, after in pairwise(snapshots))
    assert switches >= SWITCHES_MIN, "the two sides did not commit at the same time"
    attempts = java.commit_attempts()
    assert len(attempts) == len(java_ids)
    print(
        f"{len(ours)} commits of ours ({sum(each.epochs for each in feeds)} micro-batches of"
        f" {len(feeds)} Spark applications, {len(harness.events('commit.conflicted'))} conflicts,"
        f" committer killed once), {len(java_ids)} appends by Iceberg Java in {sum(attempts)}"
        f" attempts (at most {max(attempts)}), 0 failed; the sides took turns {switches} times;"
        f" {len(ids)} rows in {files} files, each once, by Iceberg Java, {', '.join(seen)}"
    )


def _is_ours(snapshot: Snapshot) -> bool:
    return "frazil.requests-count" in (snapshot.summary or {})


def _seen_by_frazil(harness: AwsHarness) -> Contents:
    """Return the files that the `frazil` command lists, and the rows in them."""
    lines = _frazil(harness, "table", "files", TABLE, "--json").splitlines()
    found = [json.loads(line) for line in lines]
    ids: list[int] = []
    for each in found:
        source = pa.BufferReader(harness.read(each["file_path"]))
        rows = pq.read_table(source, columns=["id"])
        assert rows.num_rows == each["record_count"]
        ids += rows.column("id").to_pylist()
    paths = {s3_path(each["file_path"]) for each in found}
    return Contents(len(found), len(paths), len(ids), len(set(ids)), sum(ids))


async def _seen_by_pyiceberg(harness: AwsHarness) -> Contents:
    location = (await harness.load(TABLE)).metadata_location
    properties = {
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
        "s3.endpoint": harness.places.s3_url,
        "s3.region": REGION,
    }
    scan = StaticTable.from_metadata(location, properties).scan()
    paths = [task.file.file_path for task in scan.plan_files()]
    ids = scan.to_arrow().column("id").to_pylist()
    return Contents(len(paths), len(set(paths)), len(ids), len(set(ids)), sum(ids))


def _frazil(harness: AwsHarness, *arguments: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-m", "committer", *arguments],
        cwd=ROOT,
        env=harness.environment(),
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout
