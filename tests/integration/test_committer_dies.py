"""The committer dies at every call that it makes, before, within and after it; after each death
the next one finds everything, and each request is in its table once.

The calls are not written down here: a run without a death tells which there are, at the start and
while requests are committed, refused, merged and expired. So a step that is added is tried, too.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.integration.dying_harness import PROPERTIES, SETTINGS, DyingHarness, dying_harness
from tests.support.integration.exactness import check_exactly_once
from tests.support.integration.real_harness import until
from tests.support.integration.traffic import RealProducer, producers

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.heavy, pytest.mark.timeout(1_800)]

# A table takes so many deaths: readers that are not ours read all of it after each.
DEATHS_A_TABLE = 8
COMMITS_BEFORE = 2
ROUNDS_MAX = 12
# Calls of every start, before or soon after the committer is ready.
CALLS_AT_START = {
    "catalog.probe",
    "queue.probe",
    "queue.read",
    "queue.reclaim",
    "storage.list inbox",
    "storage.list quarantine",
}
# Calls of every commit, refusal, merge and expiry.
CALLS_SURELY = {
    "catalog.load",
    "catalog.swap",
    "queue.acknowledge",
    "queue.read",
    "queue.reply",
    "storage.create journal",
    "storage.create manifest",
    "storage.create quarantine",
    "storage.delete inbox",
    "storage.delete journal",
    "storage.delete manifest list",
    "storage.delete metadata file",
    "storage.get manifest",
}
_READS = (
    *(".get", ".head", ".list", ".load", ".read", ".depth", ".probe", ".current_location"),
    *(".look", ".wait_for_change"),
)


@dataclass(frozen=True, slots=True)
class Death:
    """Where to die: `within` is after half of the objects. `early`: while a committer starts."""

    name: str
    moment: str
    number: int = 1
    early: bool = False

    def __str__(self) -> str:
        when = "at the start, " if self.early else ""
        return f"{when}{self.moment} `{self.name}`" + f" ({self.number})" * (self.number > 1)

    @property
    def variables(self) -> dict[str, str]:
        return {"DIES_AT": f"{self.name}/{self.moment}/{self.number}"}


async def test_each_request_lands_once_wherever_the_committer_dies() -> None:
    with dying_harness(**SETTINGS) as harness:
        deaths = await _find_deaths(harness)
        print(f"{len(deaths)} deaths:", *deaths, sep="\n  ")
        total = [await _die(harness, number, some) for number, some in enumerate(_portions(deaths))]
    print(f"{sum(total)} requests in {len(total)} tables, each once; {len(deaths)} deaths")


def _portions(deaths: Sequence[Death]) -> Iterator[Sequence[Death]]:
    """Yield the deaths table by table; early ones follow others, which leave work to take up."""
    early = [death for death in deaths if death.early]
    late = [death for death in deaths if not death.early]
    mixed = [one for pair in zip_longest(late, early) for one in pair if one is not None]
    for start in range(0, len(mixed), DEATHS_A_TABLE):
        yield mixed[start : start + DEATHS_A_TABLE]


# --- Points to die at ----------------------------------------------------------------------------


async def _find_deaths(harness: DyingHarness) -> list[Death]:
    """Find the points to die at, by a run in which no committer dies."""
    async with _table(harness, "reference") as work:
        await harness.start()
        await work.warm_up()
        await _end(harness)
        harness.calls_seen.unlink()
        await harness.start()
        await until(lambda: harness.calls()[0].keys() >= CALLS_AT_START, f"{CALLS_AT_START}")
        early, _ = harness.calls()
        harness.tell_when(due=True)
        await work.check(await work.publish(lambda: harness.calls()[1].keys() >= CALLS_SURELY))
        await until(lambda: harness.calls()[1].keys() >= CALLS_SURELY, f"{CALLS_SURELY}")
        await _end(harness)
    numbers = range(1, int(os.environ.get("FRAZIL_TEST_CHAOS", "1")) + 1)
    calls = harness.calls()[1]
    # Reads that a start makes, too, come again by timers: they are died at in the start.
    names = [name for name in calls if not (_is_read(name) and name in early)]
    late = [Death(name, moment, n) for n in numbers for name in names for moment in _moments(name)]
    halves = [Death(name, "within", n) for n in numbers for name in names if calls[name]]
    return late + halves + [Death(name, "before", early=True) for name in early]


def _moments(name: str) -> Sequence[str]:
    """Return the moments of a call; one that only reads leaves the same state before and after."""
    return ("before",) if _is_read(name) else ("before", "after")


def _is_read(name: str) -> bool:
    return name.partition(" ")[0].endswith(_READS)


# --- One death after another ---------------------------------------------------------------------


async def _die(harness: DyingHarness, number: int, deaths: Sequence[Death]) -> int:
    """Die all these deaths at one table; return how many requests it has got."""
    async with _table(harness, f"number_{number}") as work:
        await _start(harness)
        await work.warm_up()
        await _end(harness)
        waits: list[asyncio.Task[None]] = []
        for death in deaths:
            print(f"dies {death}")
            if death.early:
                waits += await work.publish(lambda: True)
                harness.tell_when(due=True)
                harness.dies = death.variables
                harness.launch()
            else:
                await _start(harness, death)
                await work.check(waits)
                harness.tell_when(due=True)
                waits = await work.publish(harness.has_died)
                if not harness.has_died():  # a process does it once, and had done it before
                    await _end(harness)
                    harness.tell_when(due=True)
                    harness.launch()
                    waits += await work.publish(harness.has_died)
            await _await_death(harness, death)
        left = work.journal()
        await _start(harness)
        await work.check(waits)
        await work.check(await work.publish(lambda: left.isdisjoint(work.journal())))
        await until(lambda: left.isdisjoint(work.journal()), "an expiry that was taken up")
        await _end(harness)
        return work.requests


async def _await_death(harness: DyingHarness, death: Death) -> None:
    """Wait for a death. A process may call less often than `number` says; then print that."""
    is_sure = death.number == 1
    try:
        await until(harness.has_died, f"a death {death}", timeout_s=60.0 if is_sure else 5.0)
    except TimeoutError:
        if is_sure:
            raise
        print(f"  does not: the call comes less often than {death.number} times")
        await _end(harness)


async def _start(harness: DyingHarness, death: Death | None = None) -> None:
    """Start a committer that takes up the work that is left before it may die."""
    harness.tell_when(due=False)
    harness.dies = death.variables if death else {}
    await harness.start()


async def _end(harness: DyingHarness) -> None:
    harness.tell_when(due=False)
    await asyncio.to_thread(harness.signal, signal.SIGTERM)


@dataclass(slots=True)
class Work:
    """The producers of one table: one waits for its commits, one does not, and some clash."""

    harness: DyingHarness
    name: str
    published: list[RealProducer]

    @property
    def requests(self) -> int:
        return sum(len(producer.written) for producer in self.published)

    def journal(self) -> set[Path]:
        """Return the records of expiries under way; a committer resumes an interrupted one."""
        table_uuid = self.published[0].table.metadata.table_uuid
        folder = self.harness.folder / f"requests/upkeep/{table_uuid}"
        return set(folder.glob("[!.]*"))  # without what was cut off before it had its name

    async def warm_up(self) -> None:
        """Make some commits, so that there is something to merge and to expire."""
        for _ in range(COMMITS_BEFORE):
            await self.published[1].publish()
            await until(self.harness.is_settled, "an empty inbox")

    async def publish(self, is_enough: Callable[[], bool]) -> list[asyncio.Task[None]]:
        """Publish new epochs, a replay and a clash; then more until it is enough, within bounds.
        Return the tasks that still wait.
        """
        waiting, durable = self.published[:2]
        waits = asyncio.create_task(waiting.publish())
        clashing = RealProducer(len(self.published), durable.table, durable.connections)
        self.published.append(clashing)
        await asyncio.gather(durable.publish(2), clashing.publish())
        await until(lambda: self._is_over(is_enough), "an empty inbox, or a death")
        await clashing.publish_again(0)
        await clashing.publish_again(0, fingerprint="another")
        for _ in range(ROUNDS_MAX):
            await until(lambda: self._is_over(is_enough), "an empty inbox, or a death")
            if is_enough():
                break
            await durable.publish()
        return [waits]

    async def _is_over(self, is_enough: Callable[[], bool]) -> bool:
        return is_enough() or await self.harness.is_settled()

    async def check(self, waits: list[asyncio.Task[None]]) -> None:
        """Check that every request has its verdict, and that all verdicts are true."""
        await until(self.harness.is_settled, "an empty inbox")
        async with asyncio.timeout(60):
            await asyncio.gather(*waits)
        waits.clear()
        await check_exactly_once(self.harness, self.name, self.published)


@asynccontextmanager
async def _table(harness: DyingHarness, name: str) -> AsyncIterator[Work]:
    table = await harness.create_table(f"db.{name}", properties=PROPERTIES)
    async with producers(harness, table, 2, waiting=1) as published:
        yield Work(harness, f"db.{name}", published)
