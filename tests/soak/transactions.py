"""Transactions of three tables beside plain appends of the same tables: how long each waits.

A committer of its own process, and transactions of every kind of `drawn_transactions`, some at the
same moment. Then what must hold: every transaction is on all of its tables or on none, as PyIceberg
reads them; those that can land have; the inbox is empty within seconds of the last request.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

from pyiceberg.table import StaticTable

from bench.statistics import median, percentile
from committer.backends.storage_schemes import open_storage
from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import FrazilError
from committer.iceberg.entry.data_file import DataFile
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject, Storage
from committer.queue.redis_stream import RedisQueue
from committer.real_world import RealWorld
from committer.reason import Reason
from committer.request.commit_request import Fingerprint, Producer
from tests.soak.drawn_transactions import LANDING, Draw, DrawnTransaction, Kind, rivals_count
from tests.support.builders.request_builders import build_file
from tests.support.integration.catalog_real_harness import CatalogRealHarness, catalog_real_harness
from tests.support.integration.real_harness import RealHarness, real_harness, until
from tests.support.servers.fake_rest import FakeRest
from tests.support.servers.postgres_server import USER, running_postgres
from workers.requests.connections import Connections, open_connections
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch

CATALOGS = ("sqlite", "postgres", "rest")
NAMES = ("db.flights", "db.ships", "db.trains")
# The promises, as docs/how-to/run-the-benchmark.md states them.
DRAINED_S_MAX = 30.0
PLAIN_P99_S_MAX = 2.0
# So long a request of a transaction waits for the others: the trial must see it end.
WAIT_S = 10
# After this the rest is counted, not waited for.
_GRACE_S = 90.0
_POLL_S = 0.25
_PLAIN_PAUSE_S = 0.25
_POLICY = PublishPolicy(wait="committed", wait_timeout_s=120.0)
_SETTINGS = {
    "FRAZIL_COMMIT__TRANSACTION_WAIT_S": str(WAIT_S),
    "FRAZIL_SERVICE__RECONCILE_INTERVAL_S": "5",
    "FRAZIL_SERVICE__RECONCILE_AGE_S": "5",
    # A committer that was killed has its tables again once the lease of its last life is over.
    "FRAZIL_SERVICE__LEASE_S": "6",
}
# Metadata would grow with every commit; the snapshots stay, as they name their transactions.
_PROPERTIES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}
_PARTITION = (0,)


@dataclass(frozen=True, slots=True)
class Trial:
    """`transactions_per_s`: how many begin. `kill_every_s`: kill -9 of the committer while requests
    come; 0: never. Then nothing fails, and waits have a bound, too. `second_attempts_share`: of the
    transactions.
    """

    transactions: int = 200
    transactions_per_s: float = 5.0
    catalog: str = "sqlite"
    kill_every_s: float = 0.0
    seed: int = 1
    second_attempts_share: float = 1 / 3


@dataclass(slots=True)
class Findings:
    """`plain_waits_s`: from the call of `publish` until the receipt. `landing_s`: from the last
    object of a transaction until its snapshots. `drained_s`: from the last request of all until the
    inbox was empty; None: it was not. `left_count`: what was in it at the bound. `violations`: what
    is wrong in the tables; `delays`: which bounds were missed.
    """

    trial: Trial
    kinds: Counter[Kind] = field(default_factory=Counter)
    requests: int = 0
    second_attempts: int = 0
    kills: int = 0
    plain_waits_s: list[float] = field(default_factory=list)
    plain_errors: Counter[str] = field(default_factory=Counter)
    landing_s: list[float] = field(default_factory=list)
    drained_s: float | None = None
    left_count: int = 0
    events: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    delays: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the numbers, a line each."""
        kinds = ", ".join(f"{count} × {kind}" for kind, count in sorted(self.kinds.items()))
        drained = "never" if self.drained_s is None else f"{self.drained_s:.1f} s"
        return [
            f"{self.trial.transactions} transactions on {self.trial.catalog}, {self.requests}"
            f" requests, {self.second_attempts} transactions with second attempts,"
            f" {self.kills} kills: {kinds}",
            f"empty {drained} after the last request, {self.left_count} left at"
            f" {DRAINED_S_MAX:.0f} s",
            f"plain appends: {_waits(self.plain_waits_s)}",
            f"transactions: {_waits(self.landing_s)}",
            f"log: {dict(sorted(self.events.items()))}",
        ]


def _waits(waits: Sequence[float]) -> str:
    if not waits:
        return "none"
    return (
        f"{len(waits)}, p50 {median(waits):.2f} s, p99 {percentile(waits, 0.99):.2f} s,"
        f" longest {max(waits):.2f} s"
    )


async def run(trial: Trial) -> Findings:
    """Run the trial on a catalog of its own, whose server starts and ends with it."""
    findings = Findings(trial)
    async with _harness(trial.catalog) as harness:
        for name in NAMES:
            await harness.create_table(name, properties=_PROPERTIES)
        await harness.start()
        await _Run(trial, harness, findings).run()
    return findings


@asynccontextmanager
async def _harness(catalog: str) -> AsyncIterator[RealHarness]:
    match catalog:
        case "sqlite":
            with real_harness(**_SETTINGS) as harness:
                yield harness
        case "postgres":
            with running_postgres() as server:
                uri = f"jdbc:postgresql://127.0.0.1:{server.port}/{server.new_database()}"
                properties = {"uri": uri, "jdbc.user": USER}
                with catalog_real_harness(properties, **_SETTINGS) as harness:
                    yield harness
        case "rest":
            async with _rest_harness() as harness:
                yield harness
        case other:
            raise ValueError(f"expected one of {CATALOGS}, found `{other}`")


@asynccontextmanager
async def _rest_harness() -> AsyncIterator[CatalogRealHarness]:
    """Take the server of the tests, which is atomic: Iceberg's own is not, if a request of a
    committer that was killed comes between the tables of the next one's.
    """
    storage = open_storage(CatalogProperties("frazil", {}), RealWorld())
    try:
        async with FakeRest(storage, warehouse="file:///nowhere") as server:
            keeping_time = asyncio.create_task(_keep_time(server))
            properties = {"uri": server.url, "rest.atomic-transactions": "true"}
            with catalog_real_harness(properties, **_SETTINGS) as harness:
                yield harness
            keeping_time.cancel()
    finally:
        await storage.close()


async def _keep_time(server: FakeRest) -> None:
    """Give the server's clock the time of day: it writes it into its snapshots."""
    while True:
        server.clock.now_ms = int(time.time() * 1000)
        await asyncio.sleep(_POLL_S)


@dataclass(slots=True)
class _Plain:
    """A plain append: its table and file. `wait_s`: None without a receipt."""

    table: int
    path: str
    wait_s: float | None = None


@dataclass(slots=True)
class _Run:
    trial: Trial
    harness: RealHarness
    findings: Findings
    tables: list[LoadedTable] = field(default_factory=list)
    drawn: list[DrawnTransaction] = field(default_factory=list)
    plain: list[_Plain] = field(default_factory=list)
    complete_ms: dict[UUID, float] = field(default_factory=dict)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        connections = await open_connections(self.harness.settings)
        try:
            await self._prepare(connections)
            async with asyncio.TaskGroup() as tasks:
                for number in range(len(NAMES)):
                    tasks.create_task(self._append_all(number, connections, tasks))
                await until(self._has_appended, "a plain append of each table")
                await self._drain(await self._publish_all())
        finally:
            await connections.close()
        await self._judge()

    # --- Before ----------------------------------------------------------------------------------

    async def _prepare(self, connections: Connections) -> None:
        """Have the files appended that rivals remove, and draw the transactions."""
        tables = [await self.harness.load(name) for name in NAMES]
        pairs = rivals_count(self.trial.transactions)
        targets = []
        for number, table in enumerate(tables):
            count = len(range(number, pairs, len(tables))) + 1
            written = _written(table, "targets", 0, count)
            await connections.publisher.publish(written, _POLICY)
            targets += [(number, file.file_path) for file in written.files[:-1]]
            self.plain += [_Plain(number, file.file_path) for file in written.files[-1:]]
        self.tables = [await self.harness.load(name) for name in NAMES]
        share = self.trial.second_attempts_share
        drawing = Draw(self.trial.seed, self.tables, targets, share)
        self.drawn = list(drawing.transactions(self.trial.transactions))

    # --- Plain appends ---------------------------------------------------------------------------

    async def _append_all(
        self, number: int, connections: Connections, tasks: asyncio.TaskGroup
    ) -> None:
        epoch = 0
        while not self.over.is_set():
            written = _written(self.tables[number], f"plain-{number}", epoch, 1)
            plain = _Plain(number, written.files[0].file_path)
            self.plain.append(plain)
            tasks.create_task(self._append(plain, connections, written))
            epoch += 1
            await asyncio.sleep(_PLAIN_PAUSE_S)

    async def _append(self, plain: _Plain, connections: Connections, written: WrittenEpoch) -> None:
        called_s = time.monotonic()
        try:
            await connections.publisher.publish(written, _POLICY)
        except FrazilError as error:
            self.findings.plain_errors[f"{type(error).__name__}: {error}"[:300]] += 1
        else:
            plain.wait_s = time.monotonic() - called_s

    def _has_appended(self) -> bool:
        done = {plain.table for plain in self.plain if plain.wait_s is not None}
        return len(done) == len(NAMES)

    # --- Transactions ----------------------------------------------------------------------------

    async def _publish_all(self) -> float:
        """Publish every transaction, then end the appends; return when the last request came."""
        queue = self.harness.queue("trial")
        killing = asyncio.create_task(self._kill_now_and_then())
        try:
            async with self.harness.storage() as storage, asyncio.TaskGroup() as tasks:
                for drawn in self.drawn:
                    tasks.create_task(self._publish(drawn, storage, queue))
                    await asyncio.sleep(1 / self.trial.transactions_per_s)
        finally:
            published_s = time.monotonic()
            self.over.set()
            await killing
            await queue.close()
        return published_s

    async def _publish(self, drawn: DrawnTransaction, storage: Storage, queue: RedisQueue) -> None:
        began_s = time.monotonic()
        for sending in sorted(drawn.sendings, key=lambda sending: sending.delay_s):
            await asyncio.sleep(max(0.0, began_s + sending.delay_s - time.monotonic()))
            location = f"{self.harness.settings.inbox}/inbox/{sending.bell.inbox_key}"
            await storage.create((NewObject(location, sending.content),))
            await queue.announce([sending.bell])
        self.complete_ms[drawn.id] = time.time() * 1000

    async def _kill_now_and_then(self) -> None:
        while self.trial.kill_every_s:
            try:
                async with asyncio.timeout(self.trial.kill_every_s):
                    await self.over.wait()
                return
            except TimeoutError:
                await asyncio.to_thread(self.harness.signal, signal.SIGKILL)
                self.findings.kills += 1
                await self.harness.start()

    async def _drain(self, published_s: float) -> None:
        findings, left, at_s = self.findings, 1, 0.0
        while left and at_s < _GRACE_S:
            left = len(await self.harness.outstanding())
            at_s = time.monotonic() - published_s
            if at_s <= DRAINED_S_MAX:
                findings.left_count = left
            if not left:
                findings.drained_s = at_s
                return
            await asyncio.sleep(_POLL_S)

    # --- The truth -------------------------------------------------------------------------------

    async def _judge(self) -> None:
        findings = self.findings
        findings.kinds.update(drawn.kind for drawn in self.drawn)
        findings.second_attempts = sum(drawn.has_second_attempts for drawn in self.drawn)
        findings.requests = sum(len(drawn.sendings) for drawn in self.drawn)
        findings.plain_waits_s = [each.wait_s for each in self.plain if each.wait_s is not None]
        self._read_log()
        states = [_State.of(await self.harness.load(name)) for name in NAMES]
        violations = findings.violations
        violations += _judged(self.drawn, states)
        violations += await self._incomplete(states)
        for plain in self.plain:
            if states[plain.table].live[plain.path] != 1:
                violations.append(f"a plain append is in {NAMES[plain.table]} not exactly once")
        violations += [f"plain append: {error}" for error in findings.plain_errors]
        self._measure_landing(states)
        dissolved = findings.events["transaction.dissolved"]
        if dissolved and not self.trial.kill_every_s:
            violations.append(f"{dissolved} transactions were called off, and nothing has failed")
        self._judge_delays()

    def _judge_delays(self) -> None:
        findings = self.findings
        if findings.drained_s is None or findings.drained_s > DRAINED_S_MAX:
            findings.delays.append(f"not drained within {DRAINED_S_MAX:.0f} s of the last request")
        is_slow = percentile(findings.plain_waits_s, 0.99) > PLAIN_P99_S_MAX
        if is_slow and not self.trial.kill_every_s:
            findings.delays.append(f"the p99 of plain appends is above {PLAIN_P99_S_MAX:.0f} s")

    def _read_log(self) -> None:
        for name in ("transaction.dissolved", "transaction.landed", "transaction.waiting"):
            self.findings.events[name] = len(self.harness.events(name))
        for level in ("error", "critical"):
            for line in self.harness.logged(level):
                name = str(line.get("event"))
                self.findings.events[name] += 1
                if name.endswith(".crashed"):
                    self.findings.violations.append(f"logged: {line}"[:2_000])

    async def _incomplete(self, states: Sequence[_State]) -> list[str]:
        """Return which transactions are called incomplete though every member came in time."""
        keys = {
            sending.bell.inbox_key: drawn
            for drawn in self.drawn
            for sending in drawn.sendings
            if drawn.kind in LANDING or _landed_on(drawn, states)
        }
        wrong = Counter(
            drawn.id
            for record in await self.harness.quarantined()
            if record.reason == Reason.TRANSACTION_INCOMPLETE.value
            and (drawn := keys.get(record.key)) is not None
        )
        return [
            f"transaction {id}: {count} requests called incomplete" for id, count in wrong.items()
        ]

    def _measure_landing(self, states: Sequence[_State]) -> None:
        for drawn in self.drawn:
            landed = [state.landed_ms[drawn.id] for state in states if drawn.id in state.landed_ms]
            if landed:
                self.findings.landing_s.append((max(landed) - self.complete_ms[drawn.id]) / 1000)


@dataclass(frozen=True, slots=True)
class _State:
    """A table as PyIceberg reads it: how often each file is live, and when each transaction landed
    on it.
    """

    live: Counter[str]
    landed_ms: Mapping[UUID, int]

    @classmethod
    def of(cls, table: LoadedTable) -> _State:
        read = StaticTable.from_metadata(table.metadata_location)
        landed = {
            UUID(name): snapshot.timestamp_ms
            for snapshot in read.metadata.snapshots
            if snapshot.summary and (name := snapshot.summary.get("frazil.transaction"))
        }
        return cls(Counter(task.file.file_path for task in read.scan().plan_files()), landed)


def _landed_on(drawn: DrawnTransaction, states: Sequence[_State]) -> list[int]:
    return [number for number, state in enumerate(states) if drawn.id in state.landed_ms]


def _judged(drawn: Sequence[DrawnTransaction], states: Sequence[_State]) -> list[str]:
    """Return what is wrong about each transaction."""
    landed = {each.id for each in drawn if _landed_on(each, states)}
    violations = []
    for each in drawn:
        name = f"transaction {each.id} ({each.kind})"
        is_landed = each.id in landed
        if is_landed and len(_landed_on(each, states)) < len(states):
            violations.append(f"{name}: landed on {_landed_on(each, states)} of its tables only")
        for number, paths in each.paths.items():
            live = sum(states[number].live[path] for path in paths)
            if live != is_landed:
                violations.append(f"{name}: {live} of its files are live in {NAMES[number]}")
        if each.removed is not None and is_landed and states[each.removed[0]].live[each.removed[1]]:
            violations.append(f"{name}: the file that it removed is live")
        is_either = each.kind is Kind.RIVALS
        if is_either and (each.id in landed) == (each.rival in landed):
            violations.append(f"{name}: expected it or its rival to land, and not both")
        elif not is_either and is_landed != (each.kind in LANDING):
            violations.append(f"{name}: {'landed' if is_landed else 'did not land'}")
    return violations


def _written(table: LoadedTable, producer: str, epoch: int, files_count: int) -> WrittenEpoch:
    unwritten = WrittenEpoch(
        identifier=table.identifier,
        table_uuid=table.metadata.require_uuid(),
        schema_id=table.metadata.current_schema_id,
        producer=Producer(id=producer),
        epoch=epoch,
        nonce=uuid4(),
        fingerprint=Fingerprint(kind="trial", value=str(epoch)),
        files=(),
    )
    return replace(unwritten, files=_files(table, unwritten.attempt, files_count))


def _files(table: LoadedTable, attempt: UUID, count: int) -> list[DataFile]:
    return [
        build_file(table.metadata, attempt, number=number, partition=_PARTITION)
        for number in range(count)
    ]
