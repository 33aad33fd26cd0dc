"""Collects the current state of the process, shown as metrics and as `/status`.

`/status` is made from the metrics, so that the two cannot disagree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from heapq import nsmallest
from importlib.metadata import version
from typing import Protocol

from committer.place_threads import unanswered
from committer.service.process.process_wiring import WorkWiring
from committer.service.process.status_model import (
    InboxStatus,
    OpenBreakerStatus,
    QueueStatus,
    ShardsStatus,
    Status,
    TableStatus,
    member_statuses,
)
from committer.service.sharding.shard_leases import ShardLeases
from committer.service.table.table_committer import TableCommitter
from committer.service.telemetry.health import Health
from committer.service.telemetry.instruments import SLICE_SAMPLES, Sample
from committer.service.telemetry.lag import Delay, LagCause, OldestRequests
from committer.service.telemetry.log_stream import dropped_lines
from committer.service.telemetry.metrics import NO_TABLE, Metrics, TableBacklog, TableLag

# Fields of a status, by the cause of the lag that they are.
_LAGS = {
    "lag_s": LagCause.WAITING,
    "held_s": LagCause.HELD,
    "unavailable_s": LagCause.UNAVAILABLE,
}
# Fields of a table's status, and the metrics that they are.
_OF_A_TABLE = {
    "pending_requests": "frazil_pending_requests",
    "pending_bytes": "frazil_pending_bytes",
    "commits": "frazil_commits_total",
    "requests": "frazil_committed_requests_total",
    "files": "frazil_committed_files_total",
    "rows": "frazil_committed_rows_total",
    "bytes": "frazil_committed_bytes_total",
    "recovered": "frazil_recovered_requests_total",
    "duplicates": "frazil_duplicate_requests_total",
    "last_commit_s": "frazil_last_commit_timestamp_seconds",
    "metadata_bytes": "frazil_metadata_bytes",
    "frozen_producers": "frazil_frozen_producers",
}
BREAKERS_SHOWN_MAX = 100
# Tables of `/status` that are printed before the event loop has its turn.
_SLICE_TABLES = 200


class Observed(Protocol):
    """The process whose status is collected. `work`: None before it has started."""

    health: Health
    metrics: Metrics
    work: WorkWiring | None


class StatusCollector:
    """Collects the status of a process. `catalog`, `inbox`: what it commits to, and from where."""

    def __init__(self, process: Observed, *, catalog: str, inbox: str) -> None:
        self.health = process.health
        self.metrics = process.metrics
        self._catalog, self._inbox = catalog, inbox
        self._process = process
        self.metrics.show_installation(catalog, inbox)

    def page(self) -> bytes:
        """Print all metrics, as Prometheus reads them."""
        return b"".join(self.page_parts())

    def page_parts(self) -> Iterator[bytes]:
        """Yield the page of all metrics in parts, which may be empty: some 10 ms of work each."""
        for _ in self._look():
            yield b""
        yield from self.metrics.instruments.page_parts()

    def status(self) -> Status:
        """Return the model of `/status`."""
        return Status.model_validate_json(b"".join(self.status_parts()))

    def status_parts(self) -> Iterator[bytes]:
        """Yield `/status` as JSON in parts, which may be empty: some 10 ms of work each."""
        for _ in self._look():
            yield b""
        numbers = _Numbers()
        for count, sample in enumerate(self.metrics.instruments.samples(), start=1):
            numbers.add(sample)
            if count % SLICE_SAMPLES == 0:
                yield b""
        whole = self._status(numbers).model_dump_json(exclude={"tables"})
        yield whole.removesuffix("}").encode() + b',"tables":['
        tables = numbers.tables
        for start in range(0, len(tables), _SLICE_TABLES):
            rows = [_table(numbers, name) for name in tables[start : start + _SLICE_TABLES]]
            text = ",".join(row.model_dump_json() for row in rows)
            yield (b"," if start else b"") + text.encode()
        yield b"]}"

    def _status(self, numbers: _Numbers) -> Status:
        """Return the model of `/status` without its tables."""
        health, work = self.health, self._process.work
        return Status(
            version=version("frazil"),
            catalog=self._catalog,
            now_s=health.world.now_ms() / 1000,
            phase=health.phase,
            ready=health.is_ready,
            conditions=health.shown,
            **numbers.lags("frazil_lag_seconds"),
            inbox=InboxStatus(
                location=self._inbox,
                requests=numbers.count("frazil_inbox_requests"),
                listed_s=numbers.one("frazil_inbox_listed_timestamp_seconds"),
                foreign=numbers.foreign("inbox"),
            ),
            queue=QueueStatus(
                waiting=numbers.count("frazil_queue_waiting_doorbells"),
                pending=numbers.count("frazil_queue_pending_doorbells"),
            ),
            shards=work and _shards(work.shards),
            quarantine=numbers.by("frazil_quarantine_requests", "reason"),
            quarantine_bytes=numbers.count("frazil_quarantine_bytes"),
            quarantine_age_s=numbers.one("frazil_quarantine_age_seconds"),
            quarantined=numbers.by("frazil_quarantined_requests_total", "reason"),
            open_breakers=self._open_breakers(),
            missed_doorbells=numbers.count("frazil_missed_doorbells_total") or 0,
            redelivered=numbers.count("frazil_redelivered_doorbells_total") or 0,
            internal_errors=numbers.by("frazil_internal_errors_total", "where"),
            tables=[],
        )

    def _look(self) -> Iterator[None]:
        """Bring the metrics of what is so now up to date, a piece a step."""
        places = unanswered()
        self.health.show_unanswered(places)
        self.metrics.show_hung(sum(place.hung for place in places))
        self.metrics.show_log(dropped_lines())
        self.metrics.show_health(self.health.is_ready, self.health.shown)
        work = self._process.work
        if work is None:
            self.metrics.show_lag(None)
            self.metrics.show_backlog(())
            self.metrics.show_inbox(None, None)
            return
        yield from self.metrics.keep_tables(lambda: {*work.tables.shown, NO_TABLE})
        listing, now_ms = work.reconciler.listing, self.health.world.now_ms()
        lags = _lags(work, now_ms)
        yield
        self.metrics.show_lag(lags if lags or listing is not None else None)
        yield
        self.metrics.show_backlog(_backlog(work.tables.all))
        yield
        self.metrics.show_inbox(
            listing.requests if listing else None, listing.began_ms if listing else None
        )
        breakers = sum(1 for _ in work.breakers.open_breakers())
        self.metrics.show_producers(breakers, _frozen(work.tables.all))

    def _open_breakers(self) -> list[OpenBreakerStatus]:
        """Return the first open breakers by name."""
        work = self._process.work
        breakers = work.breakers.open_breakers() if work else ()
        first = nsmallest(BREAKERS_SHOWN_MAX, breakers, key=lambda one: (one.table, one.producer))
        return [OpenBreakerStatus(**asdict(one)) for one in first]


def _lags(work: WorkWiring, now_ms: int) -> list[TableLag]:
    """Return the lag of each table and cause; `waiting` of each table that has a committer."""
    oldest, names = OldestRequests(), work.tables.names()
    for table in work.tables.all:
        name = str(table.identifier) if table.is_in_catalog else NO_TABLE
        oldest.add(name, Delay(now_ms, LagCause.WAITING))
        for cause, durable_ms in table.oldest_ms().items():
            oldest.add(name, Delay(durable_ms, cause))
    for folder, durable_ms in work.large.oldest_ms().items():
        oldest.add(names.get(folder, NO_TABLE), Delay(durable_ms, LagCause.WAITING))
    for folder, delay in (*work.intake.deferred.oldest(), *work.reconciler.unread()):
        oldest.add(names.get(folder, NO_TABLE), delay)
    return [
        TableLag(table, delay.cause, _age_s(delay.durable_ms, now_ms)) for table, delay in oldest
    ]


def _backlog(tables: Iterable[TableCommitter]) -> list[TableBacklog]:
    """Return the backlog by name; namesakes (dropped and made again), or unknown, share one."""
    found: dict[str, TableBacklog] = {}
    for table in tables:
        name = str(table.identifier) if table.is_in_catalog else NO_TABLE
        known = found.get(name, TableBacklog(name, 0, 0))
        found[name] = TableBacklog(
            name,
            known.requests + len(table.waiting),
            known.size_bytes + table.waiting.size_bytes,
        )
    return list(found.values())


def _frozen(tables: Iterable[TableCommitter]) -> Counter[str]:
    """Count the frozen producers of each table."""
    found: Counter[str] = Counter()
    for table in tables:
        if table.state is not None:
            found[str(table.identifier)] += len(table.state.ledger.frozen)
    return found


def _shards(shards: ShardLeases) -> ShardsStatus:
    return ShardsStatus(
        member=shards.member,
        owned=len(shards.owned),
        members=member_statuses(shards.seen) if shards.seen else [],
    )


def _age_s(since_ms: int, now_ms: int) -> float:
    return max(0, now_ms - since_ms) / 1000


def _table(numbers: _Numbers, table: str) -> TableStatus:
    found = {name: numbers.of(metric, table) for name, metric in _OF_A_TABLE.items()}
    return TableStatus(
        table=table,
        **numbers.lags("frazil_table_lag_seconds", table),
        swaps=numbers.by("frazil_swap_answers_total", "answer", table),
        **{name: value for name, value in found.items() if value is not None},
    )


class _Numbers:
    """The samples by name, and by name and table: each table's are found without the others'."""

    def __init__(self) -> None:
        self._samples: defaultdict[str, list[Sample]] = defaultdict(list)
        self._of_tables: defaultdict[tuple[str, str], list[Sample]] = defaultdict(list)

    def add(self, sample: Sample) -> None:
        """Add a sample."""
        self._samples[sample.name].append(sample)
        if table := sample.labels.get("table"):
            self._of_tables[sample.name, table].append(sample)

    def _of(self, name: str, table: str | None) -> Sequence[Sample]:
        return self._samples[name] if table is None else self._of_tables[name, table]

    @property
    def tables(self) -> list[str]:
        """All that any number of a table names."""
        metrics = (
            *_OF_A_TABLE.values(),
            "frazil_table_lag_seconds",
            "frazil_swap_answers_total",
        )
        return sorted({one.labels["table"] for name in metrics for one in self._samples[name]})

    def one(self, name: str) -> float | None:
        return next((one.value for one in self._samples[name]), None)

    def count(self, name: str) -> int | None:
        return next((int(one.value) for one in self._samples[name]), None)

    def of(self, name: str, table: str) -> float | None:
        return next((one.value for one in self._of(name, table)), None)

    def lags(self, name: str, table: str | None = None) -> dict[str, float | None]:
        """Return the lag by field; of everything None while it is not known, of a table 0 then."""
        seen = {one.labels["cause"]: one.value for one in self._of(name, table)}
        absent = None if table is None else 0.0
        return {field: seen.get(cause, absent) for field, cause in _LAGS.items()}

    def foreign(self, folder: str) -> dict[str, int]:
        """Return a folder's foreign entries by kind, without those that have gone."""
        return {
            one.labels["kind"]: int(one.value)
            for one in self._samples["frazil_foreign_entries"]
            if one.labels["folder"] == folder and one.value
        }

    def by(self, name: str, label: str, table: str | None = None) -> dict[str, int]:
        """Return a metric's sums by one of its labels."""
        sums: dict[str, int] = {}
        for one in self._of(name, table):
            sums[one.labels[label]] = sums.get(one.labels[label], 0) + int(one.value)
        return sums
