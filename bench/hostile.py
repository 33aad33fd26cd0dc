"""Good neighbors beside 800 hostile requests of a few MB each: how long they wait, what is used.

    python -m bench.hostile [--requests 800] [--before-s 10] [--sampled]

A real `frazil serve` on local folders and a private queue. Four producers publish small appends to
two tables, five a second, and wait for their commits; then hostile requests of every kind of
`bench.hostile_kinds` arrive from 24 producers, as fast as the disk takes them, for those tables and
for others. Printed: the neighbors' waits, memory of all processes of the committer above idle, the
longest delays of its loop and, with `--sampled`, where its loop and threads were meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from bench.hostile_kinds import KINDS, Hostile, hostile_request
from bench.neighbors import TABLES, USUAL_LISTINGS, Neighbors, print_waits
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Doorbell
from committer.ports.storage import NewObject
from committer.request.request_format import line_digest
from committer.storage.disk.durable_writes import create_groups
from tests.support.integration.processes import session_members
from tests.support.integration.real_harness import RealHarness, real_harness
from workers.requests.publisher import PublishPolicy

_MIB = 1024 * 1024
_PRODUCERS = 24
_WRITERS = 4
_POLICY = PublishPolicy(wait="committed", wait_timeout_s=300.0)


@dataclass(slots=True)
class Measurements:
    """The observed memory, and when the hostile requests began to arrive, had arrived, and were
    judged.
    """

    resident: list[tuple[float, int]] = field(default_factory=list)
    idle_bytes: int = 0
    started_s: float = 0.0
    arrived_s: float = 0.0
    ended_s: float = 0.0


async def run(requests: int, before_s: float, after_s: float, *, sampled: bool) -> Measurements:
    """Run the attack. Errors: `TimeoutError` where the committer is not done within ten minutes."""
    measurements = Measurements()
    looks = {"BENCH_LOOKS": "1"} if sampled else {}
    with real_harness(**USUAL_LISTINGS, **looks) as harness:
        harness.program = ("-m", "bench.sampled", "serve")
        tables = [await harness.create_table(name) for name in TABLES]
        await harness.start()
        over = asyncio.Event()
        watching = asyncio.create_task(_watch(harness, measurements, over))
        neighbors = Neighbors(harness, tables, _POLICY)
        good = asyncio.create_task(neighbors.publish_all(over))
        await asyncio.sleep(before_s)
        measurements.idle_bytes = max(size for _, size in measurements.resident)
        measurements.started_s = time.monotonic()
        await _send(harness, tables, requests)
        measurements.arrived_s = time.monotonic()
        await _wait_until_done(harness, requests)
        measurements.ended_s = time.monotonic()
        await asyncio.sleep(after_s)
        over.set()
        await good
        await watching
        _print(measurements, neighbors)
    return measurements


# --- Hostile requests ----------------------------------------------------------------------------


async def _send(harness: RealHarness, tables: Sequence[LoadedTable], requests: int) -> None:
    """Write them into the inbox as any client may, and ring for each."""
    queue = harness.queue("hostile")
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(_WRITERS) as writers:
        numbers = iter(range(requests))

        async def write() -> None:
            for number in numbers:
                sent = await loop.run_in_executor(writers, _write, harness, tables, number)
                digest = line_digest(sent.content)
                bell = Doorbell(sent.table_uuid, sent.key, digest, None, None)
                await queue.announce([bell])

        await asyncio.gather(*(write() for _ in range(_WRITERS)))
    await queue.close()


def _write(harness: RealHarness, tables: Sequence[LoadedTable], number: int) -> Hostile:
    kind = list(KINDS)[number % len(KINDS)]
    producer = f"hostile-{number % _PRODUCERS}" if number % 2 else f"hostile-once-{number}"
    table = tables[number // len(KINDS) % len(tables)]
    sent = hostile_request(kind, table, producer, number)
    created = NewObject(f"{harness.settings.inbox}/inbox/{sent.key}", sent.content)
    [error] = create_groups([[created]])
    if error is not None:
        raise error
    return sent


async def _wait_until_done(harness: RealHarness, requests: int) -> None:
    """Wait until only the requests that a breaker holds are left, and none is judged any more."""
    end_s, left, since_s = time.monotonic() + 600, requests, time.monotonic()
    while left and time.monotonic() - since_s < 20:
        if time.monotonic() > end_s:
            raise TimeoutError(f"{left} hostile requests are left after ten minutes")
        await asyncio.sleep(0.5)
        now = sum("hostile" in key for key in await harness.outstanding())
        if now < left:
            left, since_s = now, time.monotonic()


# --- Measured ------------------------------------------------------------------------------------


async def _watch(harness: RealHarness, measurements: Measurements, over: asyncio.Event) -> None:
    assert harness.committer is not None
    session = harness.committer.pid
    while not over.is_set():
        measurements.resident.append((time.monotonic(), _resident_bytes(session_members(session))))
        await asyncio.sleep(0.1)


def _resident_bytes(pids: Sequence[int]) -> int:
    """Return the bytes of all the committer's processes; shared ones count once for each."""
    return sum(filter(None, map(_resident_of, pids)))


def _resident_of(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _print(measurements: Measurements, neighbors: Neighbors) -> None:
    begun, ended, harness = measurements.started_s, measurements.ended_s, neighbors.harness
    arrived, judged = measurements.arrived_s - begun, ended - begun
    print(f"hostile requests arrived within {arrived:.1f} s; all was still after {judged:.1f} s")
    phases = {
        "before": (0.0, begun),
        "while they arrive": (begun, measurements.arrived_s),
        "until all are judged": (begun, ended),
        "after": (ended, float("inf")),
    }
    for phase, (start_s, end_s) in phases.items():
        waits = [wait for wait in neighbors.waits if start_s <= wait.called_s < end_s]
        print_waits(f"neighbors {phase}", waits)
    peak = max(size for _, size in measurements.resident)
    print(
        f"resident: idle {measurements.idle_bytes / _MIB:.0f} MiB, peak {peak / _MIB:.0f} MiB,"
        f" above idle {(peak - measurements.idle_bytes) / _MIB:.0f} MiB"
    )
    reasons = Counter(str(one.get("reason")) for one in harness.events("request.quarantined"))
    print(
        "quarantined:", dict(reasons), "breakers:", len(harness.events("producer.breaker_opened"))
    )
    if neighbors.failed:
        print("failed:", dict(neighbors.failed))
    others = Counter(
        str(one["event"]) for one in harness.logged("error") + harness.logged("warning")
    )
    print("warnings:", dict(others))
    print((harness.folder / "samples.txt").read_text())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.hostile", description=__doc__)
    parser.add_argument("--requests", type=int, default=800)
    parser.add_argument("--before-s", type=float, default=10.0)
    parser.add_argument("--after-s", type=float, default=5.0)
    parser.add_argument("--sampled", action="store_true")
    options = parser.parse_args(arguments)
    asyncio.run(run(options.requests, options.before_s, options.after_s, sampled=options.sampled))
    return 0


if __name__ == "__main__":
    sys.exit(main())
