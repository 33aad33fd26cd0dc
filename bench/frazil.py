"""Frazil as it is run: `frazil serve`, a Valkey of its own, and two processes of publishers."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

from bench.child import Child, Message
from bench.commits import CommitLog, LandedCommit
from bench.cpu import Watch
from bench.profiles import Profile, recording
from bench.runs import Compacting, Contention, Operating, Outcome, compacted_of
from bench.statistics import median, percentile
from bench.tables import NAMESPACE, Live, Tables
from tests.support.integration.real_harness import CATALOG, ROOT, RealHarness, until

PUBLISHERS = 2
_HEAD_START_S = 0.2
_GRACE_S = 90.0
_POLL_S = 0.02
# More than any committer takes, fewer than memory minds.
_REQUESTS_A_SECOND_MAX = 2_500
# As a user runs it: the defaults, which the tests' harness shortens.
USUAL_VARIABLES = {
    "FRAZIL_SERVICE__RECONCILE_INTERVAL_S": "30",
    "FRAZIL_SERVICE__RECONCILE_AGE_S": "30",
    "FRAZIL_QUEUE__RECLAIM_IDLE_S": "300",
}

Writers = Sequence[Sequence[int]]


class Frazil:
    """One committer with the given interval (None: its default), and as many tables as are asked.

    `profiles`: where the time of the last run went, by process, if that was asked for.
    """

    def __init__(
        self, name: str, *, interval_ms: int | None, delay_ms: int = 0, with_profiles: bool = False
    ) -> None:
        self.name = name
        self.profiles: dict[str, Profile] = {}
        self._with_profiles = with_profiles
        self._numbers = iter(range(1_000_000))
        self._folder = tempfile.TemporaryDirectory(prefix="frazil-", ignore_cleanup_errors=True)
        variables = dict(USUAL_VARIABLES)
        if interval_ms is not None:
            variables["FRAZIL_COMMIT__MIN_INTERVAL_MS"] = str(interval_ms)
        program = ("-m", "bench.serve", str(delay_ms)) if delay_ms else ("-m", "committer", "serve")
        self.harness = RealHarness(Path(self._folder.name), variables, program=program)
        self.tables = Tables(self.harness.folder, CATALOG)
        self._publishers: list[Child] = []
        try:
            self.harness.start_queue()
            asyncio.run(self.harness.start())
            self.log = CommitLog(self.harness.log_file)
            self._open_publishers(delay_ms)
        except BaseException:
            self.close()
            raise

    # --- Processes -------------------------------------------------------------------------------

    def _open_publishers(self, delay_ms: int) -> None:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        settings = self.harness.settings
        for number in range(PUBLISHERS):
            name = f"publisher-{number}"
            command = [sys.executable, "-m", "bench.publishing"]
            log = self.harness.folder / f"{name}.log"
            child = Child(name, command, log=log, environment=environment)
            self._publishers.append(child)
            child.tell(
                "open",
                catalog_file=str(self.harness.catalog_file),
                catalog=CATALOG,
                inbox=settings.inbox,
                queue=settings.queue_url,
                name=name,
                delay_ms=delay_ms,
            )
        self._hear(60.0)

    def close(self) -> None:
        for child in self._publishers:
            child.close()
        self.harness.close()
        self._folder.cleanup()

    # --- Runs ------------------------------------------------------------------------------------

    def fresh_table(
        self, properties: dict[str, str] | None = None, *, format_version: int = 2
    ) -> str:
        table = f"t{next(self._numbers)}"
        self.tables.create(table, properties, format_version=format_version)
        return table

    def contend(self, load: Contention) -> Outcome:
        table = self.fresh_table()
        requests = max(200, int(load.window_s * _REQUESTS_A_SECOND_MAX / PUBLISHERS))
        self.prepare(table, [requests] * PUBLISHERS)
        outcome = self.run(table, "contend", shares(load.writers), window_s=load.window_s)
        outcome.counted = self.tables.count(table)
        return outcome

    def operate(self, load: Operating) -> tuple[Outcome, Live]:
        """Change rows in each writer, until the window ends."""
        table = self.fresh_table(format_version=load.format_version)
        for child, first in zip(self._publishers, (True, False), strict=True):
            # One after the other: the second finds what the first has appended.
            child.tell("begin", table=f"{NAMESPACE}.{table}", writers=load.writers, appends=first)
            child.hear(_GRACE_S)
        writers = shares(load.writers)
        outcome = self.run(
            table, "operate", writers, kind=load.kind, of=load.writers, window_s=load.window_s
        )
        return outcome, self.tables.live(table)

    def compact(self, load: Compacting) -> tuple[Outcome, Live]:
        """Publish row deltas from one process, and compact from the other, if it is to be done."""
        table = self.fresh_table(format_version=3)
        arguments = asdict(load)
        for child, first in zip(self._publishers, (True, False), strict=True):
            child.tell("begin_compacting", table=f"{NAMESPACE}.{table}", appends=first, **arguments)
            child.hear(_GRACE_S)
        writers: Writers = ((0,), (1,) if load.compacts else ())
        return self.run(table, "compact", writers), self.tables.live(table)

    def prepare(
        self,
        table: str,
        requests: Sequence[int],
        *,
        files: int = 1,
        files_a_day: int = 100,
        start: int = 0,
        writers: Writers = PUBLISHERS * ((),),
    ) -> None:
        """Prepare so many requests of so many files in each publisher, from file `start` on.

        `writers`: those of a `commit`, whose files are named here.
        """
        for child, count, share in zip(self._publishers, requests, writers, strict=True):
            child.tell(
                "prepare",
                table=f"{NAMESPACE}.{table}",
                start=start,
                requests=count,
                files=files,
                files_a_day=files_a_day,
                writers=list(share),
            )
            start += count * files
        self._hear(300.0)

    def run(
        self, table: str, do: str, writers: Writers, *, until_landed: int = 0, **arguments: object
    ) -> Outcome:
        """Run the publishers that have writers, and return what the committer logged.

        `until_landed`: wait afterwards until the committer has landed so many requests.
        """
        self.log.fresh()
        pids = self._pids()
        with ExitStack() as stack:
            if self._with_profiles:
                self.profiles = stack.enter_context(recording(pids, self.harness.folder))
            watch = Watch(pids)
            started_s = time.monotonic() + _HEAD_START_S
            working = [
                (child, share)
                for child, share in zip(self._publishers, writers, strict=True)
                if share
            ]
            for child, share in working:
                child.tell(do, writers=list(share), start_s=started_s, **arguments)
            answers = [child.hear(_GRACE_S + 600.0) for child, _ in working]
            commits = self._commits([table], until_landed)
            used_s = watch.used_s()
        outcome = Outcome(started_s)
        for answer in answers:
            _add(outcome, answer)
        if commits:
            last_s = max(commit.at_s for commit in commits)
            outcome.ended_s = last_s - time.time() + time.monotonic()
        outcome.more |= _cpu_of(used_s, max(1, outcome.landed)) | _batches(commits)
        return outcome

    def work_off(
        self, table: str, writers: Writers, total: int
    ) -> tuple[list[LandedCommit], float]:
        """Publish all while no committer runs, then start one: its commits, and the seconds from
        its start to the last.
        """
        self.stop_committer()
        self.fill(writers)
        return self.catch_up([table], total)

    def stop_committer(self) -> None:
        self.harness.signal(signal.SIGTERM)

    def fill(self, writers: Writers, *, grace_s: float = _GRACE_S) -> None:
        """Publish all that is prepared, while no committer runs."""
        start_s = time.monotonic()
        for child, share in zip(self._publishers, writers, strict=True):
            child.tell("flood", writers=list(share), start_s=start_s)
        self._hear(grace_s)

    def catch_up(
        self,
        tables: Sequence[str],
        total: int,
        *,
        grace_s: float = _GRACE_S,
        watch: Callable[[], None] = lambda: None,
    ) -> tuple[list[LandedCommit], float]:
        """Start a committer, and wait until it has landed so many requests in these tables: its
        commits, and the seconds from its start to the last. `watch` is called all the time.
        """
        self.log.fresh()
        self.harness.launch()
        commits = self._commits(tables, total, grace_s, watch)
        asyncio.run(until(self.harness.is_ready, "a committer that is ready"))
        return commits, max(one.at_s for one in commits) - self.log.started_at_s

    def _commits(
        self,
        tables: Sequence[str],
        requests: int,
        grace_s: float = _GRACE_S,
        watch: Callable[[], None] = lambda: None,
    ) -> list[LandedCommit]:
        """Return the commits logged since the last call. Errors: `TimeoutError`."""
        end_s = time.monotonic() + grace_s
        names = {f"{NAMESPACE}.{table}" for table in tables}
        commits: list[LandedCommit] = []
        while True:
            watch()
            commits += [one for one in self.log.fresh() if one.table in names]
            if sum(one.requests for one in commits) >= requests:
                return commits
            if time.monotonic() > end_s:
                raise TimeoutError(f"not all of {requests} requests landed in {grace_s:g} s")
            time.sleep(_POLL_S)

    def _pids(self) -> dict[str, int]:
        assert self.harness.committer and self.harness.server and self.harness.server.process
        publishers = {child.name: child.pid for child in self._publishers}
        committer = self.harness.committer.pid
        return {"committer": committer, "valkey": self.harness.server.process.pid, **publishers}

    def _hear(self, timeout_s: float) -> None:
        for child in self._publishers:
            child.hear(timeout_s)


def shares(writers: int) -> Writers:
    """Return the writers' numbers, dealt to the publishers in turn."""
    return [list(range(writers))[number::PUBLISHERS] for number in range(PUBLISHERS)]


def _add(outcome: Outcome, answer: Message) -> None:
    outcome.compacted = replace(outcome.compacted, **compacted_of(answer))
    requests = answer["requests"]
    outcome.requests.extend((called, durable, ended) for called, durable, ended in requests)
    for name, count in answer["failed"].items():
        outcome.failed[name] = outcome.failed.get(name, 0) + count


def _cpu_of(used_s: dict[str, float], landed: int) -> dict[str, float]:
    """Return the CPU of each party per request, in microseconds."""
    publishers_s = sum(used for name, used in used_s.items() if name.startswith("publisher"))
    parties = {
        "committer": used_s["committer"],
        "valkey": used_s["valkey"],
        "publishers": publishers_s,
    }
    return {f"{party}_us": seconds * 1e6 / landed for party, seconds in parties.items()}


def _batches(commits: Sequence[LandedCommit]) -> dict[str, float]:
    """Return figures of the commits. `commit_ms`: from planning to the swap's answer; `cycle_ms`:
    from one landed commit to the next.
    """
    durations_ms = [one.duration_s * 1_000 for one in commits]
    sizes = [float(one.requests) for one in commits]
    cycles_ms = [(later.at_s - earlier.at_s) * 1_000 for earlier, later in pairwise(commits)]
    return {
        "commits": len(commits),
        "commit_ms": median(durations_ms),
        "commit_p99_ms": percentile(durations_ms, 0.99),
        "cycle_ms": median(cycles_ms),
        "batch_median": median(sizes),
        "batch_max": max(sizes, default=0.0),
    }
