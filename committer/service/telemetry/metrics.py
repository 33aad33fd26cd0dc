"""Counts events, in plain methods that the part with the first knowledge calls.

Labels are bounded: a table that the catalog has shown, a reason, a component, a kind of call; never
a producer, and never a table that a request merely names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from committer.errors import AlreadyExistsError, NotFoundError
from committer.plan.batch.batch_policy import METADATA_BYTES_MAX
from committer.ports.pointer_swap import Committed, Conflict, Rejected, SwapAnswer, Unknown
from committer.ports.queue import QueueDepth
from committer.ports.world import World
from committer.reason import Reason
from committer.request.table_identifier import TableIdentifier
from committer.service.telemetry.health import labels_of
from committer.service.telemetry.instruments import Instruments
from committer.service.telemetry.lag import LagCause
from committer.service.telemetry.place_watch import PlaceCalls

# Requests for a table that the catalog has not shown.
NO_TABLE = "unknown"
# Of tables with requests in quarantine, after the first hundred.
OTHER_TABLES = "other"
QUARANTINE_TABLES_MAX = 100

_ANSWERS: Mapping[type[SwapAnswer], str] = {
    Committed: "committed",
    Conflict: "conflict",
    Rejected: "rejected",
    Unknown: "unknown",
}
# Where an internal error is survived. A rate needs the zero that a first one counts up from.
PLACES = ("check", "intake", "plan", "swap", "table", "transaction", "upkeep")
# The limits that a worker process's job may meet, and everything else that ends one.
WORKER_ENDS = ("memory", "processor_time", "wall_clock", "other")
_NOT_KNOWN = float("nan")


class UpkeepKind(StrEnum):
    """The kinds of upkeep of a table."""

    MERGE_MANIFESTS = "merge_manifests"
    EXPIRE_SNAPSHOTS = "expire_snapshots"
    DELETE_FILES = "delete_files"
    REMOVE_DANGLING_DELETES = "remove_dangling_deletes"
    CONVERT_POSITION_DELETES = "convert_position_deletes"


@dataclass(frozen=True, slots=True)
class Landing:
    """One commit. `waits_s`: of each request, from its publication. `metadata_bytes`: None where
    the catalog writes the metadata file itself.
    """

    files: int
    rows: int
    size_bytes: int
    duration_s: float
    waits_s: list[float]
    now_ms: int
    metadata_bytes: int | None


@dataclass(frozen=True, slots=True)
class TableBacklog:
    """The requests that one table's committer holds now."""

    table: str
    requests: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TableLag:
    """The age of the oldest request of one table that is not committed for this cause."""

    table: str
    cause: LagCause
    lag_s: float


@dataclass(frozen=True, slots=True)
class QuarantineSize:
    """The size of the quarantine, also by reason and by the table that the records name, and the
    age of its oldest request. 0 where it is empty.
    """

    by_reason_and_table: Mapping[tuple[str, str | None], int]
    size_bytes: int
    age_s: float


class Metrics:
    """The numbers of one process. Methods cost microseconds and raise nothing."""

    def __init__(self) -> None:
        self.instruments = Instruments()
        self._swapped: set[TableIdentifier] = set()
        self._foreign: dict[str, set[str]] = {}
        self._quarantine_tables: set[str] = set()
        self._dropped_lines = 0
        for where in PLACES:
            self.instruments.internal_errors.labels(where)
        for cause in WORKER_ENDS:
            self.instruments.worker_ends.labels(cause)

    def show_installation(self, catalog: str, inbox: str) -> None:
        """Show what this process commits to, and from where."""
        self.instruments.show_info(catalog, inbox)

    # --- Commits ---------------------------------------------------------------------------------

    def swap_answered(self, table: TableIdentifier, answer: SwapAnswer) -> None:
        """Count a swap's answer."""
        answers = self.instruments.swap_answers
        if table not in self._swapped:
            # As above.
            self._swapped.add(table)
            for name in _ANSWERS.values():
                answers.labels(table, name)
        answers.labels(table, _ANSWERS[type(answer)]).inc()

    def committed(self, table: TableIdentifier, landing: Landing) -> None:
        """Count a commit that has landed."""
        numbers = self.instruments
        requests = len(landing.waits_s)
        numbers.commits.labels(table).inc()
        numbers.committed_requests.labels(table).inc(requests)
        numbers.committed_files.labels(table).inc(landing.files)
        numbers.committed_rows.labels(table).inc(landing.rows)
        numbers.committed_bytes.labels(table).inc(landing.size_bytes)
        numbers.last_commit.labels(table).set(landing.now_ms / 1000)
        numbers.batch_requests.observe(requests)
        numbers.batch_files.observe(landing.files)
        numbers.commit_duration.observe(landing.duration_s)
        for wait_s in landing.waits_s:
            numbers.wait.observe(wait_s)
        if landing.metadata_bytes is not None:
            is_large = landing.metadata_bytes > METADATA_BYTES_MAX
            numbers.metadata_bytes.labels(table).set(landing.metadata_bytes)
            numbers.metadata_alarm.labels(table).set(is_large)

    # --- Verdicts and ways in --------------------------------------------------------------------

    def duplicated(self, table: TableIdentifier) -> None:
        """Count a request acknowledged because another attempt at its epoch had landed."""
        self.instruments.duplicate_requests.labels(table).inc()

    def recovered(self, table: TableIdentifier) -> None:
        """Count a request acknowledged because it was found to have landed itself."""
        self.instruments.recovered_requests.labels(table).inc()

    def quarantined(self, reason: str, table: str | None = None, *, is_kept: bool = True) -> None:
        """Count a request that went to quarantine. `table`: the name that its record has.
        `is_kept`: False for a conflict of which only the answer is kept.
        """
        self.instruments.quarantined_requests.labels(reason).inc()
        if is_kept:
            # Seen at once; the next listing counts what is really there.
            self._add_to_quarantine(reason, table, 1)

    def redelivered(self, doorbells: int) -> None:
        """Count doorbells that the queue has handed out a second time."""
        self.instruments.redelivered_doorbells.inc(doorbells)

    def doorbells_missed(self, requests: int) -> None:
        """Count requests that a listing found and the queue should have reported."""
        self.instruments.missed_doorbells.inc(requests)

    def frozen(self, table: TableIdentifier, *, is_frozen: bool) -> None:
        """Show whether a table lacks commits that are known to have landed."""
        self.instruments.table_frozen.labels(table).set(is_frozen)

    def crashed(self, where: str) -> None:
        """Count an internal error that was survived. `where`: a fixed word."""
        self.instruments.internal_errors.labels(where).inc()

    def worker_process_ended(self, cause: str) -> None:
        """Count a worker process that has ended in a job. `cause`: one of `WORKER_ENDS`."""
        self.instruments.worker_ends.labels(cause).inc()

    # --- Upkeep ----------------------------------------------------------------------------------

    def upkeep_done(self, table: TableIdentifier, kind: UpkeepKind, count: int) -> None:
        """Count manifests merged, snapshots expired, files deleted, or delete files removed or
        converted."""
        numbers = self.instruments
        counters = {
            UpkeepKind.MERGE_MANIFESTS: numbers.manifests_merged,
            UpkeepKind.EXPIRE_SNAPSHOTS: numbers.snapshots_expired,
            UpkeepKind.DELETE_FILES: numbers.files_deleted,
            UpkeepKind.REMOVE_DANGLING_DELETES: numbers.dangling_deletes_removed,
            UpkeepKind.CONVERT_POSITION_DELETES: numbers.position_deletes_converted,
        }
        counters[kind].labels(table).inc(count)

    def upkeep_failed(self, table: TableIdentifier, kind: UpkeepKind) -> None:
        """Count a piece of upkeep that failed; it will be tried again."""
        self.instruments.upkeep_failures.labels(table, kind.value).inc()

    def keep_tables(self, names: Callable[[], Collection[str]]) -> Iterator[None]:
        """Remove the series of all other tables, one metric a step: they moved, went, or have
        rested for long.
        """
        yield from self.instruments.keep("table", names)
        kept = names()
        self._swapped = {table for table in self._swapped if str(table) in kept}

    # --- What is so now --------------------------------------------------------------------------

    def show_lag(self, lags: Iterable[TableLag] | None) -> None:
        """Show the lag by cause, of each table and of everything; None: not known yet."""
        numbers = self.instruments
        numbers.table_lag.clear()
        oldest_s = dict.fromkeys(LagCause, 0.0)
        for one in lags or ():
            numbers.table_lag.labels(one.table, one.cause).set(one.lag_s)
            oldest_s[one.cause] = max(oldest_s[one.cause], one.lag_s)
        for cause, lag_s in oldest_s.items():
            numbers.lag.labels(cause).set(_known(None if lags is None else lag_s))

    def show_backlog(self, tables: Iterable[TableBacklog]) -> None:
        """Show the backlog of each table."""
        numbers = self.instruments
        for gauge in (numbers.pending_requests, numbers.pending_bytes):
            gauge.clear()
        for one in tables:
            numbers.pending_requests.labels(one.table).set(one.requests)
            numbers.pending_bytes.labels(one.table).set(one.size_bytes)

    def show_inbox(self, requests: int | None, listed_ms: int | None) -> None:
        """Show the result and the time of the last listing of the inbox."""
        self.instruments.inbox_requests.set(_known(requests))
        self.instruments.inbox_listed.set(_known(listed_ms and listed_ms / 1000))

    def show_foreign_entries(self, folder: str, by_kind: Mapping[str, int]) -> None:
        """Show the foreign entries that the last listing of a folder found,
        by a fixed set of kinds.
        """
        gauge = self.instruments.foreign_entries
        for kind in self._foreign.get(folder, set()) - by_kind.keys():
            gauge.labels(folder, kind).set(0)
        for kind, entries in by_kind.items():
            gauge.labels(folder, kind).set(entries)
        self._foreign.setdefault(folder, set()).update(by_kind)

    def show_queue(self, depth: QueueDepth | None) -> None:
        """Show the depth of the queue; None if it does not answer."""
        self.instruments.queue_waiting.set(_known(depth.waiting if depth else None))
        self.instruments.queue_pending.set(_known(depth.pending if depth else None))

    def show_shards(self, owned: int, members: int | None) -> None:
        """Show this committer's number of shards; `members` None where shards are not shared."""
        self.instruments.shards.set(owned)
        self.instruments.members.set(_known(members))

    def shards_moved(self, *, acquired: int, released: int, lost: int) -> None:
        """Count shards that became ours, were handed over, or are another's without that."""
        moves = {"acquired": acquired, "released": released, "lost": lost}
        for move, count in moves.items():
            self.instruments.shard_moves.labels(move).inc(count)

    def show_quarantine(self, found: QuarantineSize | None) -> None:
        """Show the size of the quarantine; None if it cannot be listed."""
        numbers = self.instruments
        numbers.quarantine_requests.clear()
        self._quarantine_tables.clear()
        counts = Counter(found.by_reason_and_table if found else {})
        for (reason, table), requests in counts.most_common():
            self._add_to_quarantine(reason, table, requests)
        numbers.quarantine_bytes.set(_known(found.size_bytes if found else None))
        numbers.quarantine_age.set(_known(found.age_s if found else None))

    def _add_to_quarantine(self, reason: str, table: str | None, requests: int) -> None:
        """Count requests in quarantine. A table that the catalog does not have may have any name,
        and one label is for all after the first hundred tables.
        """
        tables = self._quarantine_tables
        if table is None or reason == Reason.TABLE_UNKNOWN:
            label = NO_TABLE
        elif table in tables or len(tables) < QUARANTINE_TABLES_MAX:
            tables.add(table)
            label = table
        else:
            label = OTHER_TABLES
        self.instruments.quarantine_requests.labels(reason, label).inc(requests)

    def show_producers(self, breakers: int, frozen: Mapping[str, int]) -> None:
        """Show how many have an open breaker, and how many are frozen, by table."""
        self.instruments.open_breakers.set(breakers)
        self.instruments.frozen_producers.clear()
        for table, producers in frozen.items():
            self.instruments.frozen_producers.labels(table).set(producers)

    def show_health(self, is_ready: bool, conditions: Iterable[str]) -> None:
        """Show readiness, and the degraded components."""
        self.instruments.ready.set(is_ready)
        self.instruments.component_degraded.clear()
        for component in conditions:
            self.instruments.component_degraded.labels(*labels_of(component)).set(1)

    def show_hung(self, calls: int) -> None:
        """Show how many calls hold a thread and make no progress."""
        self.instruments.hung_calls.set(calls)

    def show_log(self, dropped_lines: int) -> None:
        """Count the lines of the log that were dropped since the process started."""
        self.instruments.log_dropped.inc(dropped_lines - self._dropped_lines)
        self._dropped_lines = dropped_lines

    def loop_was_late(self, late_s: float) -> None:
        """Observe how many seconds too late the heartbeat woke up."""
        self.instruments.loop_lag.observe(late_s)

    # --- Calls -----------------------------------------------------------------------------------

    def meter(self, port: str, world: World, calls: PlaceCalls | None = None) -> PortMeter:
        """Make a meter for the calls of one port. `calls`: where they are noted, too."""
        return PortMeter(self.instruments, port, world, calls)


def _known(value: float | None) -> float:
    return _NOT_KNOWN if value is None else value


# Errors that are answers to what was asked.
_EXPECTED = (NotFoundError, AlreadyExistsError)


class PortMeter:
    """Counts and times the calls of one port."""

    def __init__(
        self, instruments: Instruments, port: str, world: World, calls: PlaceCalls | None = None
    ) -> None:
        self._instruments = instruments
        self._port = port
        self._world = world
        self._calls = calls or PlaceCalls()
        # Looking a label up takes longer than counting under it.
        self._observers: dict[str, Callable[[float], None]] = {}

    @contextmanager
    def timed(self, call: str, location: str = "") -> Iterator[None]:
        """Count and time the call inside. An absent or existing object is an answer, no error; a
        canceled call is no error either.
        """
        started_s = self._world.monotonic_s()
        number = self._calls.begin(started_s, location)
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            if isinstance(raised, Exception) and not isinstance(raised, _EXPECTED):
                name = type(raised).__name__
                self._instruments.call_errors.labels(self._port, call, name).inc()
            raise
        finally:
            ended_s = self._world.monotonic_s()
            self._calls.end(number, error, ended_s)
            self._observer(call)(ended_s - started_s)

    def _observer(self, call: str) -> Callable[[float], None]:
        observer = self._observers.get(call)
        if observer is None:
            observer = self._instruments.call_duration.labels(self._port, call).observe
            self._observers[call] = observer
        return observer

    def moved(self, call: str, objects: int, size_bytes: int) -> None:
        numbers = self._instruments
        if call == "get":
            numbers.storage_read_bytes.labels(self._port).inc(size_bytes)
            return
        numbers.storage_objects.labels(self._port, call).inc(objects)
        numbers.storage_written_bytes.labels(self._port).inc(size_bytes)
