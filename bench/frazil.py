"""Frazil as it is run: `frazil serve`, a Valkey of its own, and two processes of publishers."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from bench.child import Child, Message
from bench.commits import CommitLog, LandedCommit
from bench.cpu import Watch
from bench.runs import Contention, Outcome
from bench.statistics import median, percentile
from bench.tables import NAMESPACE, Tables
from tests.integration.real_house import CATALOG, ROOT, RealHouse

PUBLISHERS = 2
_HEAD_START_S = 0.2
_GRACE_S = 90.0
# More than any committer takes, fewer than memory minds.
_REQUESTS_A_SECOND_MAX = 2_500
_VARIABLES = {
    # As a user runs it: the defaults, which the tests' house shortens.
    "FRAZIL_SERVICE__RECONCILE_INTERVAL_S": "30",
    "FRAZIL_SERVICE__RECONCILE_AGE_S": "30",
    "FRAZIL_QUEUE__RECLAIM_IDLE_S": "300",
}


class Frazil:
    """One committer with the given interval; a table for each run."""

    def __init__(self, name: str, *, interval_ms: int | None, delay_ms: int = 0) -> None:
        self.name = name
        self._numbers = iter(range(1_000_000))
        self._folder = tempfile.TemporaryDirectory(prefix="frazil-", ignore_cleanup_errors=True)
        variables = dict(_VARIABLES)
        if interval_ms is not None:
            variables["FRAZIL_COMMIT__MIN_INTERVAL_MS"] = str(interval_ms)
        program = ("-m", "bench.serve", str(delay_ms)) if delay_ms else ("-m", "committer", "serve")
        self.house = RealHouse(Path(self._folder.name), variables, program=program)
        self.tables = Tables(self.house.folder, CATALOG)
        self._publishers: list[Child] = []
        try:
            self._open(delay_ms)
        except BaseException:
            self.close()
            raise

    def _open(self, delay_ms: int) -> None:
        self.house.start_queue()
        asyncio.run(self.house.start())
        self.log = CommitLog(self.house.log_file)
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        for number in range(PUBLISHERS):
            name = f"publisher-{number}"
            command = [sys.executable, "-m", "bench.publishing"]
            log = self.house.folder / f"{name}.log"
            self._publishers.append(Child(name, command, log=log, environment=environment))
        settings = self.house.settings
        for child in self._publishers:
            child.tell(
                "open",
                catalog_file=str(self.house.catalog_file),
                catalog=CATALOG,
                inbox=settings.inbox,
                queue=settings.queue_url,
                name=child.name,
                delay_ms=delay_ms,
            )
        self._hear(60.0)

    # --- Runs ------------------------------------------------------------------------------------

    def contend(self, load: Contention) -> Outcome:
        table = f"contend_{next(self._numbers)}"
        self.tables.create(table)
        requests = max(200, int(load.window_s * _REQUESTS_A_SECOND_MAX / PUBLISHERS))
        self.prepare(table, requests=requests)
        shares = [list(range(load.writers))[number::PUBLISHERS] for number in range(PUBLISHERS)]
        outcome = self.run(
            table, "contend", shares, timeout_s=load.window_s + _GRACE_S, window_s=load.window_s
        )
        outcome.counted = self.tables.count(table)
        return outcome

    def prepare(
        self, table: str, *, requests: int, files: int = 1, files_a_day: int = 100, start: int = 0
    ) -> None:
        """Let each publisher make so many requests of so many files."""
        for number, child in enumerate(self._publishers):
            child.tell(
                "prepare",
                table=f"{NAMESPACE}.{table}",
                start=start + number * requests * files,
                requests=requests,
                files=files,
                files_a_day=files_a_day,
            )
        self._hear(120.0)

    def run(
        self,
        table: str,
        do: str,
        writers: Sequence[Sequence[int]],
        *,
        timeout_s: float,
        **arguments: object,
    ) -> Outcome:
        """Let the publishers with writers work at once, and see what the committer says of it."""
        self.log.fresh()
        assert self.house.committer and self.house.server and self.house.server.process
        watch = Watch(
            {"committer": self.house.committer.pid, "valkey": self.house.server.process.pid}
        )
        started_s = time.monotonic() + _HEAD_START_S
        working = [
            (child, share) for child, share in zip(self._publishers, writers, strict=True) if share
        ]
        for child, share in working:
            child.tell(do, writers=list(share), start_s=started_s, **arguments)
        answers = [child.hear(timeout_s) for child, _ in working]
        used_s = watch.used_s()
        outcome = Outcome(started_s)
        for answer in answers:
            _add(outcome, answer)
        used_s["publishers"] = sum(answer["cpu_s"] for answer in answers)
        commits = [one for one in self.log.fresh() if one.table == f"{NAMESPACE}.{table}"]
        outcome.more |= _about(used_s, commits, max(1, outcome.landed))
        return outcome

    def _hear(self, timeout_s: float) -> None:
        for child in self._publishers:
            child.hear(timeout_s)

    def close(self) -> None:
        for child in self._publishers:
            child.close()
        self.house.close()
        self._folder.cleanup()


def _add(outcome: Outcome, answer: Message) -> None:
    outcome.requests.extend(
        (called, durable, ended) for called, durable, ended in answer["requests"]
    )
    for name, count in answer["failed"].items():
        outcome.failed[name] = outcome.failed.get(name, 0) + count


def _about(
    used_s: dict[str, float], commits: Sequence[LandedCommit], landed: int
) -> dict[str, float]:
    """CPU of each party per request, and the committer's batches."""
    durations_ms = [one.duration_s * 1_000 for one in commits]
    sizes = [float(one.requests) for one in commits]
    times_s = [one.at_s for one in commits]
    cycles_ms = [(later - earlier) * 1_000 for earlier, later in pairwise(times_s)]
    return {
        **{f"{party}_us": seconds * 1e6 / landed for party, seconds in used_s.items()},
        "commits": len(commits),
        "commit_ms": median(durations_ms),
        "commit_p99_ms": percentile(durations_ms, 0.99),
        "cycle_ms": median(cycles_ms),
        "batch_median": median(sizes),
        "batch_max": max(sizes, default=0.0),
    }
