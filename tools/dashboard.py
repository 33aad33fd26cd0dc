"""The Grafana dashboard from a list of panels: `make docs` writes `deploy/grafana/frazil.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass

_WIDTH = 24
_PER_ROW = 3
_HEIGHT = 8


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart. `lines`: PromQL with its legend; `unit`: Grafana's name of it."""

    title: str
    text: str
    unit: str
    lines: tuple[tuple[str, str], ...]


_JOB = '{job=~"$job"}'
_TABLE = '{job=~"$job",table=~"$table"}'


def _quantile(quantile: str, metric: str) -> str:
    rate = f"rate({metric}_bucket{_JOB}[$__rate_interval])"
    return f"histogram_quantile({quantile}, sum by (le) ({rate}))"


def _quantiles(metric: str) -> tuple[tuple[str, str], ...]:
    return (_quantile("0.5", metric), "p50"), (_quantile("0.99", metric), "p99")


def _rate(metric: str, labels: str, selector: str = _TABLE) -> str:
    return f"sum by ({labels}) (rate({metric}{selector}[$__rate_interval]))"


_ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "How long it takes",
        (
            Panel(
                "Lag",
                "Age of the oldest durable request that is not committed, by cause. waiting:"
                " nothing but work is in its way.",
                "s",
                ((f"max by (cause) (frazil_lag_seconds{_JOB})", "{{cause}}"),),
            ),
            Panel(
                "Lag by table",
                "The same by table and cause.",
                "s",
                (
                    (
                        f"max by (table, cause) (frazil_table_lag_seconds{_TABLE})",
                        "{{table}}: {{cause}}",
                    ),
                ),
            ),
            Panel(
                "Wait of a request",
                "From its publication to its landing.",
                "s",
                _quantiles("frazil_wait_seconds"),
            ),
        ),
    ),
    (
        "Landed",
        (
            Panel(
                "Commits",
                "Snapshots per second.",
                "ops",
                ((_rate("frazil_commits_total", "table"), "{{table}}"),),
            ),
            Panel(
                "Requests",
                "Requests that land, per second.",
                "ops",
                ((_rate("frazil_committed_requests_total", "table"), "{{table}}"),),
            ),
            Panel(
                "Rows",
                "Rows that land, per second.",
                "ops",
                ((_rate("frazil_committed_rows_total", "table"), "{{table}}"),),
            ),
            Panel(
                "Files",
                "Data files that land, per second.",
                "ops",
                ((_rate("frazil_committed_files_total", "table"), "{{table}}"),),
            ),
            Panel(
                "Bytes of data files",
                "That land, per second.",
                "Bps",
                ((_rate("frazil_committed_bytes_total", "table"), "{{table}}"),),
            ),
            Panel(
                "Since the last commit",
                "A table without requests has none.",
                "s",
                (
                    (
                        f"time() - max by (table) (frazil_last_commit_timestamp_seconds{_TABLE})",
                        "{{table}}",
                    ),
                ),
            ),
            Panel(
                "Batch",
                "Requests and files in one commit.",
                "short",
                (
                    (_quantile("0.5", "frazil_batch_requests"), "requests p50"),
                    (_quantile("0.99", "frazil_batch_requests"), "requests p99"),
                    (_quantile("0.99", "frazil_batch_files"), "files p99"),
                ),
            ),
            Panel(
                "Duration of a commit",
                "From the start of its first attempt to its landing.",
                "s",
                _quantiles("frazil_commit_duration_seconds"),
            ),
            Panel(
                "Answers of swaps",
                "Conflicts and lost answers cost another attempt.",
                "ops",
                ((_rate("frazil_swap_answers_total", "answer"), "{{answer}}"),),
            ),
        ),
    ),
    (
        "Waiting and refused",
        (
            Panel(
                "Backlog",
                "Requests in the inbox (last listing) and in memory, doorbells in the queue.",
                "short",
                (
                    (f"max(frazil_inbox_requests{_JOB})", "inbox"),
                    (f"sum(frazil_pending_requests{_JOB})", "in memory"),
                    (f"max(frazil_queue_waiting_doorbells{_JOB})", "doorbells"),
                    (f"max(frazil_queue_pending_doorbells{_JOB})", "doorbells handed out"),
                ),
            ),
            Panel(
                "Quarantine",
                "Requests by table and reason. Their rows are in no table.",
                "short",
                (
                    (
                        f"max by (table, reason) (frazil_quarantine_requests{_JOB})",
                        "{{table}}: {{reason}}",
                    ),
                ),
            ),
            Panel(
                "Size of the quarantine",
                "Bytes of its requests.",
                "bytes",
                ((f"max(frazil_quarantine_bytes{_JOB})", "bytes"),),
            ),
            Panel(
                "Age of the quarantine",
                "Of its oldest request. After days an orphan clean-up may remove its files.",
                "s",
                ((f"max(frazil_quarantine_age_seconds{_JOB})", "oldest"),),
            ),
            Panel(
                "Foreign entries",
                "Files of others among the requests. They delay nothing.",
                "short",
                (
                    (
                        f"max by (folder, kind) (frazil_foreign_entries{_JOB})",
                        "{{folder}}: {{kind}}",
                    ),
                ),
            ),
            Panel(
                "Blocked producers",
                "With an open circuit breaker, and frozen by the ledger.",
                "short",
                (
                    (f"max(frazil_open_breakers{_JOB})", "breaker open"),
                    (f"max by (table) (frazil_frozen_producers{_TABLE})", "frozen: {{table}}"),
                ),
            ),
            Panel(
                "Degraded components",
                "`/status` says why.",
                "short",
                (
                    (
                        f"max by (instance, component, table) (frazil_component_degraded{_JOB})",
                        "{{instance}}: {{component}} {{table}}",
                    ),
                ),
            ),
            Panel(
                "Second deliveries",
                "Requests that came twice, were found without a doorbell, or had landed unnoticed.",
                "ops",
                (
                    (_rate("frazil_duplicate_requests_total", "job"), "duplicates"),
                    (_rate("frazil_recovered_requests_total", "job"), "had landed"),
                    (_rate("frazil_redelivered_doorbells_total", "job", _JOB), "redelivered"),
                    (_rate("frazil_missed_doorbells_total", "job", _JOB), "missed doorbells"),
                ),
            ),
            Panel(
                "No requests",
                "Links, FIFOs, unreadable names and the like in the inbox, which others put there.",
                "short",
                ((f"max by (kind) (frazil_foreign_entries{_JOB})", "{{kind}}"),),
            ),
            Panel(
                "Put into quarantine",
                "Requests per second by reason.",
                "ops",
                ((_rate("frazil_quarantined_requests_total", "reason", _JOB), "{{reason}}"),),
            ),
            Panel(
                "Internal errors",
                "Unexpected exceptions that the committer survived.",
                "short",
                ((f"sum by (where) (frazil_internal_errors_total{_JOB})", "{{where}}"),),
            ),
            Panel(
                "Ended worker processes",
                "The checks of large requests that hung, died or took too much, by cause.",
                "short",
                ((f"sum by (cause) (frazil_worker_process_ends_total{_JOB})", "{{cause}}"),),
            ),
        ),
    ),
    (
        "Calls",
        (
            Panel(
                "Round trips",
                "Calls per second by port and kind.",
                "ops",
                (
                    (
                        _rate("frazil_call_duration_seconds_count", "port, call", _JOB),
                        "{{port}} {{call}}",
                    ),
                ),
            ),
            Panel(
                "Mean duration of calls",
                "By port and kind. A read of the queue waits for news.",
                "s",
                (
                    (
                        _rate("frazil_call_duration_seconds_sum", "port, call", _JOB)
                        + " / "
                        + _rate("frazil_call_duration_seconds_count", "port, call", _JOB),
                        "{{port}} {{call}}",
                    ),
                ),
            ),
            Panel(
                "Errors",
                "Failed calls per second.",
                "ops",
                ((_rate("frazil_call_errors_total", "port, error", _JOB), "{{port}} {{error}}"),),
            ),
            Panel(
                "Bytes",
                "Written and read, per second.",
                "Bps",
                (
                    (_rate("frazil_storage_written_bytes_total", "port", _JOB), "{{port}} written"),
                    (_rate("frazil_storage_read_bytes_total", "port", _JOB), "{{port}} read"),
                ),
            ),
            Panel(
                "Objects",
                "Created and deleted, per second.",
                "ops",
                ((_rate("frazil_storage_objects_total", "port, call", _JOB), "{{port}} {{call}}"),),
            ),
            Panel(
                "Calls per commit",
                "Of the catalog and of the tables' storage.",
                "short",
                (
                    (
                        'sum(rate(frazil_call_duration_seconds_count{job=~"$job",port=~"catalog|storage"}'
                        "[$__rate_interval]))"
                        f" / sum(rate(frazil_commits_total{_JOB}[$__rate_interval]))",
                        "calls",
                    ),
                ),
            ),
        ),
    ),
    (
        "Upkeep and process",
        (
            Panel(
                "Metadata file",
                "An alarm rises above 8 MiB.",
                "bytes",
                ((f"max by (table) (frazil_metadata_bytes{_TABLE})", "{{table}}"),),
            ),
            Panel(
                "Upkeep",
                "Per second.",
                "ops",
                (
                    (_rate("frazil_manifests_merged_total", "job"), "manifests merged"),
                    (_rate("frazil_snapshots_expired_total", "job"), "snapshots expired"),
                    (_rate("frazil_files_deleted_total", "job"), "files deleted"),
                    (_rate("frazil_dangling_deletes_removed_total", "job"), "deletes removed"),
                    (_rate("frazil_position_deletes_converted_total", "job"), "deletes converted"),
                    (_rate("frazil_upkeep_failures_total", "kind"), "failed: {{kind}}"),
                ),
            ),
            Panel(
                "Loop lag",
                "How late the event loop wakes up.",
                "s",
                _quantiles("frazil_loop_lag_seconds"),
            ),
            Panel(
                "Hung calls",
                "Calls without progress, and lines of the log that were dropped per second.",
                "short",
                (
                    (f"sum(frazil_hung_calls{_JOB})", "hung calls"),
                    (_rate("frazil_log_dropped_lines_total", "job", _JOB), "dropped lines"),
                ),
            ),
            Panel(
                "CPU",
                "Cores.",
                "short",
                ((_rate("process_cpu_seconds_total", "instance", _JOB), "{{instance}}"),),
            ),
            Panel(
                "Memory",
                "Resident, and of that the requests that wait.",
                "bytes",
                (
                    (f"process_resident_memory_bytes{_JOB}", "{{instance}}"),
                    (f"sum by (instance) (frazil_pending_bytes{_JOB})", "requests {{instance}}"),
                ),
            ),
            Panel(
                "Ready",
                "1: started, not draining, catalog and inbox reachable.",
                "short",
                ((f"min by (instance) (frazil_ready{_JOB})", "{{instance}}"),),
            ),
            Panel(
                "Shards",
                "Shards of each committer, of 64, and how many committers share them.",
                "short",
                (
                    (f"sum by (instance) (frazil_shards{_JOB})", "{{instance}}"),
                    (f"max(frazil_members{_JOB})", "committers"),
                ),
            ),
            Panel(
                "Shards that changed hands",
                "lost: a committer did not renew its lease in time.",
                "short",
                ((_rate("frazil_shard_moves_total", "move", _JOB), "{{move}}"),),
            ),
        ),
    ),
)


def dashboard() -> str:
    """Return the dashboard's JSON, as Grafana imports it."""
    panels: list[dict[str, object]] = []
    top = 0
    for title, charts in _ROWS:
        place = {"x": 0, "y": top, "w": _WIDTH, "h": 1}
        panels.append({"type": "row", "title": title, "gridPos": place, "collapsed": False})
        top += 1
        for number, panel in enumerate(charts):
            row, column = divmod(number, _PER_ROW)
            width = _WIDTH // _PER_ROW
            place = {"x": column * width, "y": top + row * _HEIGHT, "w": width, "h": _HEIGHT}
            panels.append(_chart(panel, place))
        top += -(-len(charts) // _PER_ROW) * _HEIGHT
    for number, one in enumerate(panels, start=1):
        one["id"] = number
    content = {
        "title": "Frazil",
        "uid": "frazil",
        "tags": ["frazil", "iceberg"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": panels,
    }
    return json.dumps(content, indent=1) + "\n"


def _chart(panel: Panel, place: dict[str, int]) -> dict[str, object]:
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + number), "expr": expression, "legendFormat": legend}
            for number, (expression, legend) in enumerate(panel.lines)
        ],
    }


def _variables() -> list[dict[str, object]]:
    chosen = {"datasource": {"type": "prometheus", "uid": "${datasource}"}, "includeAll": True}
    many = {"type": "query", "multi": True, "allValue": ".*", "refresh": 2, **chosen}
    return [
        {"name": "datasource", "type": "datasource", "query": "prometheus"},
        {"name": "job", "query": "label_values(frazil_info, job)", **many},
        {"name": "table", "query": "label_values(frazil_commits_total, table)", **many},
    ]
