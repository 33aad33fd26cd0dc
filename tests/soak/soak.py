"""Many producers on many tables, some committers, and faults by a schedule; then the truth."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from committer.errors import FrazilError
from tests.soak.chaos import FaultKind, strikes
from tests.soak.crew import Crew, assigned
from tests.soak.journal import Attempt, Ended, Published, read_journal
from tests.soak.samples import Depth, Sample, Standstills, Trend, sample, trends_of
from tests.soak.writers import Assignment
from tests.support.faults.fault_proxy import FaultProxy
from tests.support.integration.exactness import Exactness, check_exactly_once, check_files
from tests.support.integration.real_harness import CATALOG, RealHarness, real_harness, replicas
from workers.requests.connections import open_connections

_SAMPLE_S = 1.0
_SETTLE_S_MAX = 120.0
# Catalog, storage and inbox answer all the time: what stops a request is a lease, the time until a
# doorbell is taken over, or the next look of the reconciler; some of them after one another.
_STANDSTILL_S_MAX = 60.0
_READ_BY_ALL = 3
_SETTINGS = {
    "FRAZIL_QUEUE__RECLAIM_IDLE_S": "10",
    "FRAZIL_SERVICE__RECONCILE_INTERVAL_S": "5",
    "FRAZIL_SERVICE__RECONCILE_AGE_S": "5",
}
# Metadata stays small, or it would grow with the run.
_PROPERTIES = {
    "frazil.expire.enabled": "true",
    "history.expire.max-snapshot-age-ms": "10000",
    "history.expire.min-snapshots-to-keep": "20",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """`requests_per_s`: of all producers together. A tenth of the producers wait for commits.
    `strikes_min`: go on after `play_s` until there were so many.
    """

    play_s: float
    seed: int = 1
    producers: int = 200
    tables: int = 20
    replicas: int = 3
    writers: int = 2
    requests_per_s: float = 40.0
    pause_s: float = 5.0
    lease_s: float = 6.0
    strikes_min: int = 0

    @property
    def waiting(self) -> int:
        return self.producers // 10


@dataclass(slots=True)
class Story:
    """All that a run showed. `violations` is empty where every promise was kept."""

    plan: Plan
    violations: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    depths: list[Depth] = field(default_factory=list)
    standstills: Standstills = field(default_factory=Standstills)
    struck: list[tuple[float, FaultKind]] = field(default_factory=list)
    ends: list[Ended] = field(default_factory=list)
    started_at_s: float = 0.0
    exact: dict[str, Exactness] = field(default_factory=dict)
    read_by_all: list[str] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    commits: int = 0
    settled_after_s: float = 0.0

    @property
    def trends(self) -> list[Trend]:
        return trends_of("committer 0", self.samples)

    def since_start(self, at_s: float) -> float:
        return at_s - self.started_at_s


async def soak(plan: Plan) -> Story:
    story = Story(plan)
    socket_of = "queue/redis.sock"
    with real_harness(**_SETTINGS) as harness:
        tables = [f"db.table_{number}" for number in range(plan.tables)]
        for name in tables:
            await harness.create_table(name, properties=_PROPERTIES)
        async with FaultProxy(harness.folder / socket_of) as proxy:
            variables = {
                "FRAZIL_QUEUE__URL": f"redis://{proxy.host}:{proxy.port}",
                "FRAZIL_SERVICE__LEASE_S": f"{plan.lease_s:g}",
                "FRAZIL_SECURITY__UNSIGNED_OPERATIONS": "all",
            }
            writers = assigned(harness, _template(harness, plan, tables), plan.writers)
            with replicas(harness, plan.replicas, variables) as committers:
                crew = Crew(harness, committers, writers, proxy)
                try:
                    await _play(crew, story)
                    await _judge(crew, story, tables)
                finally:
                    crew.close()
    return story


def _template(harness: RealHarness, plan: Plan, tables: Sequence[str]) -> Assignment:
    settings = harness.settings
    return Assignment(
        catalog_name=CATALOG,
        catalog_uri=settings.catalog.uri,
        inbox=settings.inbox,
        queue_url=settings.queue_url,
        tables=tables,
        numbers=list(range(plan.producers)),
        waiting=plan.waiting,
        interval_s=plan.producers / plan.requests_per_s,
        seed=plan.seed,
        journal="",
    )


async def _play(crew: Crew, story: Story) -> None:
    """Work under faults for as long as planned, then stop in order."""
    plan = story.plan
    await asyncio.gather(*(committer.start() for committer in crew.committers))
    for each in crew.writers:
        each.start()
    crew.started_s, story.started_at_s = time.monotonic(), time.time()
    watching = asyncio.create_task(_watch(crew, story))
    try:
        for strike in strikes(plan.seed, pause_s=plan.pause_s, lease_s=plan.lease_s):
            is_over = crew.elapsed_s() + strike.pause_s + strike.lasts_s > plan.play_s
            if is_over and len(crew.struck) >= plan.strikes_min:
                break
            await asyncio.sleep(strike.pause_s)
            await crew.strike(strike)
        await asyncio.sleep(max(0.0, plan.play_s - crew.elapsed_s()))
        ended_s = time.monotonic()
        try:
            await crew.settle(_SETTLE_S_MAX)
        except (TimeoutError, AssertionError) as error:
            story.violations.append(f"not all ended well: {error}")
        story.settled_after_s = time.monotonic() - ended_s
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    crew.note_the_dead()
    story.struck = crew.struck
    standstills = story.standstills
    if standstills.oldest_s > _STANDSTILL_S_MAX:
        story.violations.append(
            f"{standstills.oldest} stood still for {standstills.oldest_s:.0f} s"
        )
    story.violations += crew.unasked


async def _watch(crew: Crew, story: Story) -> None:
    queue = crew.harness.queue("soak", answer_s_max=1.0)
    try:
        while True:
            at_s = crew.elapsed_s()
            found = (sample(name, pid, at_s) for name, pid in crew.pids().items())
            story.samples += [one for one in found if one is not None]
            try:
                story.depths.append(Depth(at_s, (await queue.depth()).waiting))
            except FrazilError:
                story.depths.append(Depth(at_s, None))
            story.standstills.look(at_s, await crew.harness.outstanding())
            await asyncio.sleep(_SAMPLE_S)
    finally:
        await queue.close()


# --- The truth -----------------------------------------------------------------------------------


async def _judge(crew: Crew, story: Story, tables: Sequence[str]) -> None:
    harness, plan = crew.harness, story.plan
    _read_log(harness, story)
    published = [Published(await harness.load(name)) for name in tables]
    for each in crew.writers:
        for event in read_journal(harness.folder / each.assignment.journal):
            table = published[event.number % len(tables)]
            if isinstance(event, Attempt):
                table.attempts.append(event)
            else:
                table.ends.append(event)
                story.ends.append(event)
    looked_at = set(random.Random(plan.seed).sample(list(tables), min(_READ_BY_ALL, len(tables))))
    story.read_by_all = sorted(looked_at)
    connections = await open_connections(harness.settings)
    try:
        for name, table in zip(tables, published, strict=True):
            producers = table.producers(plan.waiting, connections)
            try:
                if name in looked_at:
                    story.exact[name] = await check_exactly_once(harness, name, producers)
                else:
                    story.exact[name] = await check_files(harness, table.table, producers)
            except AssertionError as error:
                story.violations.append(f"{name}: {error}")
    finally:
        await connections.close()
    story.violations += [f"not flat: {one}" for one in story.trends if not one.is_flat]


def _read_log(harness: RealHarness, story: Story) -> None:
    """Read the committers' log. A crash is a violation; faults cause warnings."""
    story.commits = len(harness.events("commit.landed"))
    for level in ("warning", "error", "critical"):
        for line in harness.logged(level):
            story.events[str(line.get("event"))] += 1
            if str(line.get("event")).endswith(".crashed"):
                story.violations.append(f"logged: {line}"[:2_000])
