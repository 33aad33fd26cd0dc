"""The processes of a soak: committers, a queue's server behind a proxy, writers; and the faults."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from redis.asyncio import Redis
from redis.exceptions import RedisError

from tests.soak.chaos import SPOILED, FaultKind, Strike
from tests.soak.writers import Assignment
from tests.support.faults.fault_proxy import FaultProxy
from tests.support.integration.real_harness import ROOT, RealHarness, until

# How soon a committer has to end on SIGTERM, and writers once their requests can land.
_END_S_MAX = 60.0
_WRITERS_END_S_MAX = 240.0


@dataclass(slots=True)
class Writers:
    """One process of writers."""

    name: str
    assignment: Assignment
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.assignment.listens.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.writers", self.assignment.printed()],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    async def end(self) -> None:
        """Stop after each query's epoch. Errors: `AssertionError` if it ends otherwise."""
        assert self.process is not None
        await until(self.assignment.listens.exists, f"{self.name} to listen")
        self.process.terminate()
        code = await asyncio.to_thread(self.process.wait, _WRITERS_END_S_MAX)
        assert code == 0, f"{self.name} ended with {code}: {self.log.read_text()[-1000:]}"


@dataclass(slots=True)
class Crew:
    """All processes. Faults hit all committers but the first, which is the elder: it is only
    stopped now and then, so what grows in it can be seen.

    `struck`: (seconds since the start, fault). `unasked`: processes that ended by themselves.
    """

    harness: RealHarness
    committers: Sequence[RealHarness]
    writers: Sequence[Writers]
    proxy: FaultProxy
    started_s: float = field(default_factory=time.monotonic)
    struck: list[tuple[float, FaultKind]] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)

    def elapsed_s(self) -> float:
        return time.monotonic() - self.started_s

    def pids(self) -> dict[str, int]:
        """Return the pids of all running processes, by name."""
        found = {}
        for number, committer in enumerate(self.committers):
            if committer.committer is not None and committer.committer.poll() is None:
                found[f"committer {number}"] = committer.committer.pid
        for each in self.writers:
            if each.process is not None and each.process.poll() is None:
                found[each.name] = each.process.pid
        if self.harness.server is not None and self.harness.server.process is not None:
            found["valkey"] = self.harness.server.process.pid
        return found

    async def strike(self, strike: Strike) -> None:
        """Apply a fault; return when all is as before again."""
        self.struck.append((self.elapsed_s(), strike.kind))
        match strike.kind:
            case FaultKind.KILL:
                await self._restarted(self._victim(strike), signal.SIGKILL, strike.lasts_s)
            case FaultKind.END:
                await self._restarted(self._victim(strike), signal.SIGTERM, strike.lasts_s)
            case FaultKind.STOP:
                await self._stopped(self.committers[strike.pick(len(self.committers))], strike)
            case FaultKind.FLUSH:
                await self._flush()
            case FaultKind.KILL_QUEUE:
                self.harness.kill_queue()
                await asyncio.sleep(strike.lasts_s)
                self.harness.start_queue()
            case FaultKind.SPOIL:
                self.proxy.spoil(strike.command, strike.answer_fault, times=SPOILED)
                await asyncio.sleep(strike.lasts_s)
            case FaultKind.KILL_WRITERS:
                writers = self.writers[strike.pick(len(self.writers))]
                writers.kill()
                await asyncio.sleep(strike.lasts_s)
                writers.start()

    def _victim(self, strike: Strike) -> RealHarness:
        young = self.committers[1:]
        return young[strike.pick(len(young))]

    async def _restarted(self, victim: RealHarness, number: signal.Signals, away_s: float) -> None:
        process = victim.committer
        assert process is not None
        if process.poll() is not None:
            self.unasked.append(f"a committer ended by itself with {process.poll()}")
        else:
            process.send_signal(number)
            code = await asyncio.to_thread(process.wait, _END_S_MAX)
            if code not in (0, -number):
                self.unasked.append(f"a committer ended with {code} on {number.name}")
        await asyncio.sleep(away_s)
        await victim.start()

    async def _stopped(self, victim: RealHarness, strike: Strike) -> None:
        victim.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(strike.lasts_s)
        finally:
            victim.signal(signal.SIGCONT)

    async def _flush(self) -> None:
        client = Redis.from_url(self.harness.settings.queue_url)
        with suppress(RedisError):
            await client.flushall()
        await client.aclose()

    async def settle(self, timeout_s: float) -> None:
        """Stop the writers, and wait for the rest to land. Errors: `TimeoutError`,
        `AssertionError`.
        """
        await asyncio.gather(*(each.end() for each in self.writers))
        await until(self.harness.is_settled, "an empty inbox", timeout_s=timeout_s, poll_s=0.2)

    def note_the_dead(self) -> None:
        """Record the committers that have died: at the end every one must run."""
        for number, committer in enumerate(self.committers):
            code = committer.committer.poll() if committer.committer else "no process"
            if code is not None:
                last = committer.log_file.read_text(errors="replace")[-1_000:]
                self.unasked.append(f"committer {number} is gone at the end ({code}): {last}")

    def close(self) -> None:
        for each in self.writers:
            each.kill()


def assigned(harness: RealHarness, template: Assignment, processes: int) -> list[Writers]:
    """Return the writers, with the template's producers dealt to so many processes."""
    return [
        Writers(
            f"writers {process}",
            replace(
                template,
                numbers=template.numbers[process::processes],
                journal=str(harness.folder / f"journal-{process}.jsonl"),
            ),
            harness.folder / f"writers-{process}.log",
        )
        for process in range(processes)
    ]
