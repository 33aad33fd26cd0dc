"""Defines every metric with its help text. The only module that knows Prometheus.

Labels are bounded: a table that the catalog has, a reason, a component, a kind of call; never a
producer. `metrics.py` decides when each is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from importlib.metadata import version
from math import isnan
from typing import Literal, NamedTuple, TypeVar

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.registry import Collector

_COUNT_BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_FILE_BUCKETS = (1, 10, 100, 1_000, 10_000, 100_000)
_WAIT_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800, 7_200)
_DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_CALL_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.25, 1, 5, 15)
_LOOP_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1, 5, 30)

# Values that are printed or read before the event loop has its turn: some 10 ms.
SLICE_SAMPLES = 500

_Labeled = TypeVar("_Labeled", Counter, Gauge)

CONTENT_TYPE = CONTENT_TYPE_LATEST
_VERSION = version("frazil")


class Described(NamedTuple):
    """A metric as its page shows it."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    text: str


class Sample(NamedTuple):
    """One value: a series' full name, its labels, and the number."""

    name: str
    labels: dict[str, str]
    value: float


class Instruments:
    """All metrics of one process, in a registry of its own."""

    def __init__(self) -> None:
        # The time at which each counter was made would double the page, and the work for it.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self.described: list[Described] = []
        self._labeled: list[tuple[Counter | Gauge, tuple[str, ...]]] = []
        self._make_lag()
        self._make_commits()
        self._make_verdicts()
        self._make_upkeep()
        self._make_shards()
        self._make_calls()
        self._make_process()
        ProcessCollector(registry=self._registry)

    def page(self) -> bytes:
        """Print the numbers in Prometheus' text format (`CONTENT_TYPE`)."""
        return b"".join(self.page_parts())

    def page_parts(self) -> Iterator[bytes]:
        """Yield the page in parts of at most `SLICE_SAMPLES` values, so that the event loop may
        continue between them.
        """
        part, room = bytearray(), SLICE_SAMPLES
        for text, samples in self._texts():
            if samples > room:
                yield bytes(part)
                part.clear()
                room = SLICE_SAMPLES
            part += text
            room -= samples
        yield bytes(part)

    def _texts(self) -> Iterator[tuple[bytes, int]]:
        """Yield each metric as text with its number of values, a large metric in several pieces:
        only the first has the two comment lines.
        """
        for metric in _Known(self._registry).collect():
            samples = metric.samples
            for start in range(0, max(1, len(samples)), SLICE_SAMPLES):
                metric.samples = samples[start : start + SLICE_SAMPLES]
                text = generate_latest(_Piece(metric))
                yield text.split(b"\n", 2)[2] if start else text, len(metric.samples)

    def show_info(self, catalog: str, inbox: str) -> None:
        """Show the release, and the catalog and inbox that it works with."""
        self._info.clear()
        self._info.labels(_VERSION, catalog, inbox).set(1)

    def samples(self) -> Iterator[Sample]:
        """Yield every value, buckets of histograms included."""
        for metric in _Known(self._registry).collect():
            for sample in metric.samples:
                yield Sample(sample.name, sample.labels, sample.value)

    def keep(self, label: str, values: Callable[[], Collection[str]]) -> Iterator[None]:
        """Remove the series whose label has another value than these, one metric a step; without a
        value they stay. `values` is called at each step: a series may be new since the step before.
        """
        for instrument, labels in self._labeled:
            # A table with requests in quarantine may be another committer's.
            if label not in labels or instrument is self.quarantine_requests:
                continue
            kept = values()
            gone = {
                tuple(one.labels[name] for name in labels)
                for metric in instrument.collect()
                for one in metric.samples
                if one.labels[label] and one.labels[label] not in kept
            }
            for series in gone:
                instrument.remove(*series)
            yield

    def _make_process(self) -> None:
        self._info = self._gauge(
            "frazil_info",
            "Always 1. The labels say which release runs, and for which installation: committers"
            " of one inbox are one. Join it by `job` and `instance`, as the alerts do.",
            "version",
            "catalog",
            "inbox",
        )
        self.ready = self._gauge(
            "frazil_ready",
            "1 while `/readyz` answers 200: started, not draining, catalog and inbox reachable.",
        )
        self.component_degraded = self._gauge(
            "frazil_component_degraded",
            "1 for each kind of component that is degraded now; `/status` names it and says why."
            " `table` is empty but for a component of one table (`table`, `deferred requests`).",
            "component",
            "table",
        )
        self.table_frozen = self._gauge(
            "frazil_table_frozen",
            "1 while a table lacks what was committed to it: it was restored, or lost entries of"
            " the ledger. Nothing lands until an operator decides. `/status` says what is missing.",
            "table",
        )
        self.internal_errors = self._counter(
            "frazil_internal_errors_total",
            "Unexpected exceptions that the committer survived. The log has the trace.",
            "where",
        )
        self.worker_ends = self._counter(
            "frazil_worker_process_ends_total",
            "Worker processes that ended in a job. The request that was in it is tried once more,"
            " alone, and then quarantined.",
            "cause",
        )
        self.loop_lag = self._histogram(
            "frazil_loop_lag_seconds",
            "How late the event loop woke up its heartbeat, each second. High: CPU starvation.",
            _LOOP_BUCKETS,
        )

        self.hung_calls = self._gauge(
            "frazil_hung_calls",
            "Calls of local files or a database that have made no progress for 5 s. Each holds a"
            " thread; `/status` names the places.",
        )
        self.log_dropped = self._counter(
            "frazil_log_dropped_lines_total",
            "Lines of the log that were dropped, because the reader of stderr took them too slowly"
            " or not at all. Commits never wait for the log.",
        )

    def _make_lag(self) -> None:
        self.lag = self._gauge(
            "frazil_lag_seconds",
            "Age of the oldest durable request that is not committed, by cause: waiting (nothing"
            " but work is in its way; the number to watch), held, unavailable. 0 if there is none;"
            " absent until the inbox was listed.",
            "cause",
        )
        self.table_lag = self._gauge(
            "frazil_table_lag_seconds",
            "The same for one table, those of its requests included that are not in memory.",
            "table",
            "cause",
        )
        self.pending_requests = self._gauge(
            "frazil_pending_requests", "Requests in memory that wait for their verdict.", "table"
        )
        self.pending_bytes = self._gauge(
            "frazil_pending_bytes", "Their size, without what was derived from them.", "table"
        )
        self.inbox_requests = self._gauge(
            "frazil_inbox_requests", "Requests in the inbox when it was listed last."
        )
        self.foreign_entries = self._gauge(
            "frazil_foreign_entries",
            "Entries of these folders that are no requests, or cannot be read, and stay where they"
            " are (links, FIFOs, folders without rights, files that are too large, …), when they"
            " were listed last.",
            "folder",
            "kind",
        )
        self.inbox_listed = self._gauge(
            "frazil_inbox_listed_timestamp_seconds",
            "When a listing of the inbox last succeeded. Only a listing finds"
            " requests without a doorbell.",
        )
        self.queue_waiting = self._gauge(
            "frazil_queue_waiting_doorbells",
            "Doorbells in the queue, those handed out included. Absent while it does not answer.",
        )
        self.queue_pending = self._gauge(
            "frazil_queue_pending_doorbells",
            "Doorbells that were handed to a committer and are not acknowledged yet.",
        )
        self.quarantine_requests = self._gauge(
            "frazil_quarantine_requests",
            "Requests in quarantine by reason and table, at most 10,000. Their rows are missing"
            " from the table until an operator decides. `unknown`: the catalog has no such table,"
            " or the request cannot be read; `other`: tables after the first hundred.",
            "reason",
            "table",
        )

        self.quarantine_bytes = self._gauge(
            "frazil_quarantine_bytes",
            "Size of the requests in quarantine, of the first 10,000.",
        )
        self.quarantine_age = self._gauge(
            "frazil_quarantine_age_seconds",
            "For how long the oldest of them has been there; 0 if it is empty. After some days an"
            " orphan clean-up of another engine may remove its data files.",
        )
        self.open_breakers = self._gauge(
            "frazil_open_breakers",
            "Producers with an open circuit breaker and requests that it holds in the inbox,"
            " because the last ones all went to quarantine. `/status` names them.",
        )
        self.frozen_producers = self._gauge(
            "frazil_frozen_producers",
            "Producers of which nothing lands, by the ledger: frozen by an operator or by a"
            " rollback, or unreadable.",
            "table",
        )

    def _make_commits(self) -> None:
        self.commits = self._counter("frazil_commits_total", "Snapshots committed.", "table")
        self.committed_requests = self._counter(
            "frazil_committed_requests_total", "Requests that landed.", "table"
        )
        self.committed_files = self._counter(
            "frazil_committed_files_total", "Data files that landed.", "table"
        )
        self.committed_rows = self._counter(
            "frazil_committed_rows_total", "Rows that landed.", "table"
        )
        self.committed_bytes = self._counter(
            "frazil_committed_bytes_total", "Size of the data files that landed.", "table"
        )
        self.last_commit = self._gauge(
            "frazil_last_commit_timestamp_seconds", "When the last commit landed.", "table"
        )
        self.batch_requests = self._histogram(
            "frazil_batch_requests", "Requests in one commit.", _COUNT_BUCKETS
        )
        self.batch_files = self._histogram(
            "frazil_batch_files", "Data files in one commit.", _FILE_BUCKETS
        )
        self.wait = self._histogram(
            "frazil_wait_seconds",
            "From the publication of a request to its landing, by the producer's clock at the"
            " beginning and ours at the end.",
            _WAIT_BUCKETS,
        )
        self.commit_duration = self._histogram(
            "frazil_commit_duration_seconds",
            "From the start of a commit's first attempt to its landing.",
            _DURATION_BUCKETS,
        )
        self.swap_answers = self._counter(
            "frazil_swap_answers_total",
            "Answers of swaps. conflict: another committer was faster; unknown: the answer was"
            " lost, and the table is asked; rejected: the catalog refused the change itself.",
            "table",
            "answer",
        )
        self.metadata_bytes = self._gauge(
            "frazil_metadata_bytes",
            "Size of the table's metadata file, as the last commit wrote it.",
            "table",
        )
        self.metadata_alarm = self._gauge(
            "frazil_metadata_alarm",
            "1 while that size is above 8 MiB: expire snapshots, or commit less often.",
            "table",
        )

    def _make_verdicts(self) -> None:
        self.duplicate_requests = self._counter(
            "frazil_duplicate_requests_total",
            "Requests whose epoch another attempt had landed: acknowledged, not added again.",
            "table",
        )
        self.recovered_requests = self._counter(
            "frazil_recovered_requests_total",
            "Requests found to have landed: by a swap whose answer was lost, or by a committer that"
            " ended before it reported them. They are in no other count of commits.",
            "table",
        )
        self.quarantined_requests = self._counter(
            "frazil_quarantined_requests_total", "Requests put into quarantine.", "reason"
        )
        self.redelivered_doorbells = self._counter(
            "frazil_redelivered_doorbells_total", "Doorbells that the queue handed out again."
        )
        self.missed_doorbells = self._counter(
            "frazil_missed_doorbells_total",
            "Requests that a listing of the inbox found although the queue was there. Near zero"
            " unless the queue has lost something.",
        )

    def _make_shards(self) -> None:
        self.shards = self._gauge(
            "frazil_shards",
            "Shards of 64 that this committer owns: their tables are its. Together 64, unless some"
            " are changing hands.",
        )
        self.members = self._gauge(
            "frazil_members",
            "Committers that share the shards, this one included. Absent without a queue.",
        )
        self.shard_moves = self._counter(
            "frazil_shard_moves_total",
            "Shards that changed hands. acquired: became this committer's; released: were handed"
            " over; lost: are another's, because this one did not renew in time.",
            "move",
        )

    def _make_calls(self) -> None:
        self.call_duration = self._histogram(
            "frazil_call_duration_seconds",
            "Calls by port (catalog, storage: table files, inbox: requests and the folders beside"
            " them, queue, leases) and kind; its count is the number of round trips. A `read` of"
            " the queue waits for news, and so does `wait_for_change`.",
            _CALL_BUCKETS,
            "port",
            "call",
        )
        self.call_errors = self._counter(
            "frazil_call_errors_total",
            "Calls that failed, by the class of the error. That something is not there, or there"
            " already, is an answer.",
            "port",
            "call",
            "error",
        )
        self.storage_objects = self._counter(
            "frazil_storage_objects_total",
            "Objects created and deleted: one call may have many.",
            "port",
            "call",
        )
        self.storage_written_bytes = self._counter(
            "frazil_storage_written_bytes_total", "Bytes in created objects.", "port"
        )
        self.storage_read_bytes = self._counter(
            "frazil_storage_read_bytes_total", "Bytes read.", "port"
        )

    def _make_upkeep(self) -> None:
        self.manifests_merged = self._counter(
            "frazil_manifests_merged_total", "Manifests that were merged into others.", "table"
        )
        self.snapshots_expired = self._counter(
            "frazil_snapshots_expired_total", "Snapshots that were expired.", "table"
        )
        self.files_deleted = self._counter(
            "frazil_files_deleted_total",
            "Files that no snapshot needs any more, deleted by upkeep.",
            "table",
        )
        self.dangling_deletes_removed = self._counter(
            "frazil_dangling_deletes_removed_total",
            "Delete files that applied to no data any more, removed by upkeep.",
            "table",
        )
        self.position_deletes_converted = self._counter(
            "frazil_position_deletes_converted_total",
            "Position delete files that deletion vectors have replaced, by upkeep.",
            "table",
        )
        self.upkeep_failures = self._counter(
            "frazil_upkeep_failures_total",
            "Upkeep that failed and will be tried again. Commits go on.",
            "table",
            "kind",
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        self.described.append(Described(name, "counter", labels, text))
        return self._known(Counter(name, text, labels, registry=self._registry), labels)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        self.described.append(Described(name, "gauge", labels, text))
        return self._known(Gauge(name, text, labels, registry=self._registry), labels)

    def _known(self, instrument: _Labeled, labels: tuple[str, ...]) -> _Labeled:
        self._labeled.append((instrument, labels))
        return instrument

    def _histogram(
        self, name: str, text: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        self.described.append(Described(name, "histogram", labels, text))
        return Histogram(name, text, labels, buckets=buckets, registry=self._registry)


class _Piece(Collector):
    """A metric with some of its values."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric


class _Known(Collector):
    """The registry without what is not known now (not a number)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [one for one in metric.samples if not isnan(one.value)]
            yield metric
