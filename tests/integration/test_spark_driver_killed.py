"""A Spark driver killed, or its query stopped, between publish and Spark's own commit log.

The next start runs that micro-batch again, with the same rows in other files. It never doubles.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.integration.streaming_application import Driver, Stream, spark_driver
from tests.support.integration.processes import signal_session
from tests.support.integration.readers import Contents, live_files, seen_by_all
from tests.support.integration.real_harness import RealHarness, real_harness, until
from tests.support.integration.sink_writes import rows_by_duckdb

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(420),
]

TABLE = "db.flights"
ROWS = 10
EXPERIMENTS_MAX = 6
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Experiment:
    """One table, one stream, and a committer that stands still whenever we need time to look."""

    def __init__(self, harness: RealHarness, stream: Stream, table_uuid: str) -> None:
        self.harness = harness
        self.stream = stream
        self.inbox = harness.folder / "requests" / "inbox" / table_uuid
        self.epochs = 0

    def next_epoch(self) -> int:
        """Give the query input for one more micro-batch; a query of upserts all rows again."""
        epoch, self.epochs = self.epochs, self.epochs + 1
        first = 0 if self.stream.upserts else epoch * ROWS
        self.stream.add_input(epoch, range(first, (epoch + 1) * ROWS))
        return epoch

    def attempts(self, epoch: int) -> list[str]:
        """Return the attempts at an epoch that are in the inbox, whose folders may vanish."""
        return [
            name
            for folder, _, names in os.walk(self.inbox)
            if folder.endswith(f"/{epoch:020d}")
            for name in names
            if not name.startswith(".")
        ]

    def is_in_between(self, epoch: int) -> bool:
        """Return whether the epoch is published, and Spark has planned but not committed it."""
        stream = self.stream
        published = bool(self.attempts(epoch))
        return published and stream.has_offsets(epoch) and not stream.has_committed(epoch)

    def duplicates(self, epoch: int) -> int:
        events = self.harness.events("request.duplicate")
        assert all(event.get("warning") is None for event in events)
        return sum(1 for event in events if event["epoch"] == epoch)

    async def is_landed(self, epoch: int) -> bool:
        """Return whether no attempt at the epoch is in the inbox any more."""
        return not self.attempts(epoch)

    def pause(self) -> None:
        """Stop the committer until `resume`."""
        self.harness.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.harness.signal(signal.SIGCONT)


async def test_a_micro_batch_of_a_killed_driver_is_in_the_table_once(tmp_path: Path) -> None:
    with real_harness() as harness:
        table = await harness.create_table(TABLE)
        await harness.start()
        stream = Stream(tmp_path, TABLE)
        experiment = Experiment(harness, stream, str(table.metadata.table_uuid))
        experiment.next_epoch()
        waiting = await _kill_while_it_waits(experiment)
        with spark_driver(harness, stream) as driver:
            await _replay(experiment, driver, waiting)
        await until(harness.is_settled, "an empty inbox")
        await _check(experiment, [waiting])


@pytest.mark.heavy
async def test_a_micro_batch_that_spark_runs_again_is_in_the_table_once(tmp_path: Path) -> None:
    with real_harness() as harness:
        table = await harness.create_table(TABLE)
        await harness.start()
        stream = Stream(tmp_path, TABLE)
        experiment = Experiment(harness, stream, str(table.metadata.table_uuid))
        landed = await _kill_after_publish(experiment)
        waiting = await _kill_while_it_waits(experiment)
        stopped = await _stop_while_it_waits(experiment, waiting)
        await until(harness.is_settled, "an empty inbox")
        await _check(experiment, [landed, waiting, stopped])


@pytest.mark.heavy
async def test_a_micro_batch_of_upserts_of_a_killed_driver_lands_once(tmp_path: Path) -> None:
    with real_harness() as harness:
        table = await harness.create_table(TABLE)
        await harness.start()
        stream = Stream(tmp_path, TABLE, upserts="equality")
        experiment = Experiment(harness, stream, str(table.metadata.table_uuid))
        experiment.next_epoch()
        landed = await _kill_after_publish(experiment)
        waiting = await _kill_while_it_waits(experiment)
        with spark_driver(harness, stream) as driver:
            await _replay(experiment, driver, waiting)
        await until(harness.is_settled, "an empty inbox")
        await _check_upserts(experiment, [landed, waiting])
        assert await _operations(harness) == {"overwrite"}


@pytest.mark.heavy
async def test_a_micro_batch_that_a_killed_driver_had_looked_up_lands_once(tmp_path: Path) -> None:
    with real_harness() as harness:
        table = await harness.create_table(TABLE)
        await harness.start()
        stream = Stream(tmp_path, TABLE, upserts="positions")
        experiment = Experiment(harness, stream, str(table.metadata.table_uuid))
        experiment.next_epoch()
        landed = await _kill_while_it_waits(experiment)
        experiment.resume()
        await until(lambda: experiment.is_landed(landed), "the epoch in the table")
        waiting = await _kill_while_it_waits(experiment)
        with spark_driver(harness, stream) as driver:
            await _replay(experiment, driver, waiting)
        await until(harness.is_settled, "an empty inbox")
        await _check_upserts(experiment, [waiting])
        # Spark runs it again, and it finds that it has landed.
        assert experiment.duplicates(landed) == 0
        assert await _operations(harness) == {"append", "overwrite"}


async def _kill_after_publish(experiment: Experiment) -> int:
    """Kill a driver whose epoch has landed, but is not in Spark's commit log."""
    with spark_driver(experiment.harness, experiment.stream) as driver:
        experiment.next_epoch()
        driver.ask("start", "durable")
        await _drain(driver)
        for _ in range(EXPERIMENTS_MAX):
            experiment.pause()
            epoch = experiment.next_epoch()
            await until(lambda e=epoch: bool(experiment.attempts(e)), "a request", poll_s=0)
            signal_session(driver.process.pid, signal.SIGSTOP)
            if reached := experiment.is_in_between(epoch):
                driver.kill()
            else:
                signal_session(driver.process.pid, signal.SIGCONT)
            experiment.resume()
            if reached:
                break
    assert reached, "never saw a request before Spark's commit log had it"
    await until(lambda: experiment.is_landed(epoch), "the epoch in the table")
    print(f"epoch {epoch}: kill -9 after publish; it landed before the restart")
    return epoch


async def _kill_while_it_waits(experiment: Experiment) -> int:
    """Run what there is, then kill a driver that waits for the paused committer."""
    with spark_driver(experiment.harness, experiment.stream) as driver:
        driver.ask("start", "committed")
        await _drain(driver)
        experiment.pause()
        epoch = experiment.next_epoch()
        await until(lambda: experiment.is_in_between(epoch), "a driver that waits")
        driver.kill()
    assert experiment.is_in_between(epoch)
    print(f"epoch {epoch}: kill -9 after publish; it had not landed at the restart")
    return epoch


async def _stop_while_it_waits(experiment: Experiment, replayed: int) -> int:
    """Replay the second fault; then call `stop()` during a commit, and start again."""
    with spark_driver(experiment.harness, experiment.stream) as driver:
        await _replay(experiment, driver, replayed)
        for _ in range(EXPERIMENTS_MAX):
            experiment.pause()
            epoch = experiment.next_epoch()
            await until(lambda e=epoch: experiment.is_in_between(e), "a driver that waits")
            await asyncio.to_thread(driver.ask, "stop")
            experiment.resume()
            await asyncio.to_thread(driver.ask, "stopped")
            reached = not experiment.stream.has_committed(epoch)
            await until(lambda e=epoch: experiment.is_landed(e), "the epoch in the table")
            driver.ask("start", "committed")
            await _drain(driver)
            if reached:
                break
        assert reached, "Spark has noted each micro-batch that was stopped during its commit"
        experiment.next_epoch()
        await _drain(driver)
    print(f"epoch {epoch}: stop() during the commit, which Spark did not note; it landed")
    return epoch


async def _replay(experiment: Experiment, driver: Driver, epoch: int) -> None:
    """Start the query again while the committer still stands still, and let both go on."""
    driver.ask("start", "committed")
    await until(lambda: len(experiment.attempts(epoch)) == 2, "a second attempt")
    experiment.resume()
    await _drain(driver)


async def _drain(driver: Driver) -> None:
    """Return when Spark has no input left."""
    await asyncio.to_thread(driver.ask, "drain")


async def _check(experiment: Experiment, replayed: list[int]) -> None:
    harness, epochs = experiment.harness, experiment.epochs
    ids = range(epochs * ROWS)
    seen = await seen_by_all(harness, TABLE)
    files = seen["Frazil"].files
    assert seen == dict.fromkeys(seen, Contents(files, files, len(ids), len(ids), sum(ids)))
    assert set(await _rows_by_attempt(harness)) == {ROWS}, "an epoch mixes files of two attempts"
    assert await harness.quarantined() == []
    assert all(experiment.duplicates(epoch) >= 1 for epoch in replayed)
    on_disk = len([*harness.warehouse.rglob("*.parquet")])
    assert on_disk > files, "no micro-batch was written twice"
    print(
        f"{epochs} micro-batches, epochs {replayed} run twice or more: {len(ids)} rows in {files}"
        f" files, each once, by {', '.join(seen)} ({on_disk} files were written); every replay"
        " acknowledged as a duplicate; inbox and quarantine empty"
    )


async def _check_upserts(experiment: Experiment, replayed: list[int]) -> None:
    harness = experiment.harness
    snapshots = (await harness.load(TABLE)).metadata.snapshots
    assert len(snapshots) == experiment.epochs
    rows = await asyncio.to_thread(rows_by_duckdb, harness, TABLE, "id")
    assert rows == [(each,) for each in range(experiment.epochs * ROWS)]
    assert await harness.quarantined() == []
    assert all(experiment.duplicates(epoch) >= 1 for epoch in replayed)


async def _operations(harness: RealHarness) -> set[str]:
    snapshots = (await harness.load(TABLE)).metadata.snapshots
    return {(one.summary or {})["operation"] for one in snapshots}


async def _rows_by_attempt(harness: RealHarness) -> list[int]:
    """Return how many rows each attempt has in the table; its uuid is in the names of its files."""
    rows: Counter[str] = Counter()
    for file in live_files(await harness.load(TABLE)):
        [attempt] = _UUID.findall(Path(file.path).name)
        rows[attempt] += file.record_count
    return list(rows.values())
