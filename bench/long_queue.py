"""Neighbors of a producer with 30,000 waiting requests: how long they wait for their commits.

    python -m bench.long_queue [--requests 30000] [--after-s 10]

A real `frazil serve` on local folders and a private queue is stopped (SIGSTOP) until one producer
has published its requests to the first of two tables. Then it continues, and four other producers
publish small appends to both tables, five a second, and wait for their commits.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.neighbors import TABLES, USUAL_LISTINGS, Neighbors, print_waits
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Doorbell
from committer.ports.storage import NewObject
from committer.request.request_format import line_digest
from committer.request.request_key import producer_prefix
from committer.storage.disk.durable_writes import create_groups
from committer.storage.disk.local_files import local_path
from tests.support.builders.request_builders import build_request
from tests.support.integration.real_harness import RealHarness, real_harness
from workers.requests.backlog import BacklogPolicy
from workers.requests.publisher import PublishPolicy

_PRODUCER = "long-queue"
_BATCH = 200
# By then all doorbells of the long queue have been read.
_READING_S = 10.0
# The neighbors' waits are the committer's only: they do not slow down by themselves.
_POLICY = PublishPolicy(wait="committed", wait_timeout_s=300.0, backlog=BacklogPolicy(wait_s=0.0))


async def run(requests: int, after_s: float) -> None:
    """Run it, and print the waits. Errors: `TimeoutError` where the requests have not landed within
    ten minutes.
    """
    with real_harness(**USUAL_LISTINGS) as harness:
        tables = [await harness.create_table(name) for name in TABLES]
        await harness.start()
        # Else it commits them as fast as they arrive.
        harness.signal(signal.SIGSTOP)
        await _publish_queue(harness, tables[0], requests)
        harness.signal(signal.SIGCONT)
        began_s = time.monotonic()
        neighbors, over = Neighbors(harness, tables, _POLICY), asyncio.Event()
        publishing = asyncio.create_task(neighbors.publish_all(over))
        await _wait_until_landed(harness, tables[0])
        landed_s = time.monotonic()
        await asyncio.sleep(after_s)
        over.set()
        await publishing
    print(f"{requests} requests of one producer landed within {landed_s - began_s:.1f} s")
    for table in TABLES:
        waits = [wait for wait in neighbors.waits if wait.table == table]
        during = [wait for wait in waits if wait.called_s < landed_s]
        print_waits(f"while they wait, {table}", during)
        late = [wait for wait in during if wait.called_s >= began_s + _READING_S]
        print_waits(f"from {_READING_S:g} s on, {table}", late)
        print_waits(f"after, {table}", [w for w in waits if w.called_s >= landed_s])
    if neighbors.failed:
        print("failed:", dict(neighbors.failed))


async def _publish_queue(harness: RealHarness, table: LoadedTable, requests: int) -> None:
    queue = harness.queue(_PRODUCER)
    for start in range(0, requests, _BATCH):
        epochs = range(start, min(start + _BATCH, requests))
        await queue.announce(await asyncio.to_thread(_write, harness, table, epochs))
    await queue.close()


def _write(harness: RealHarness, table: LoadedTable, epochs: Sequence[int]) -> list[Doorbell]:
    sealed = [
        build_request(table, producer=_PRODUCER, epoch=epoch, partition=(0,)) for epoch in epochs
    ]
    groups = [
        [NewObject(f"{harness.settings.inbox}/inbox/{one.key}", one.content)] for one in sealed
    ]
    for error in create_groups(groups):
        if error is not None:
            raise error
    uuid = table.metadata.require_uuid()
    return [Doorbell(uuid, one.key, line_digest(one.content), one.content, None) for one in sealed]


async def _wait_until_landed(harness: RealHarness, table: LoadedTable) -> None:
    # A listing of the inbox would take most of a core.
    prefix = producer_prefix(table.metadata.require_uuid(), _PRODUCER)
    folder = local_path(harness.settings.inbox) / "inbox" / prefix
    end_s = time.monotonic() + 600
    while _has_entries(folder):
        if time.monotonic() > end_s:
            raise TimeoutError("requests are left after ten minutes")
        await asyncio.sleep(0.5)


def _has_entries(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.long_queue", description=__doc__)
    parser.add_argument("--requests", type=int, default=30_000)
    parser.add_argument("--after-s", type=float, default=10.0)
    options = parser.parse_args(arguments)
    asyncio.run(run(options.requests, options.after_s))
    return 0


if __name__ == "__main__":
    sys.exit(main())
