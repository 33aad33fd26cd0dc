"""The output without a terminal: whole lines, and not too many."""

from __future__ import annotations

import io
import re

from rich.console import Console

from committer.demo.demo_readers import SnapshotRow
from committer.demo.demo_verdict import Reading, Sums
from committer.demo.demo_view import (
    ChangesView,
    ProgressView,
    show_snapshots,
    show_sums,
    show_verdict,
)
from committer.demo.programs.progress import Progress
from committer.demo.writers.events import ChangeLanded


def pipe() -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=120, color_system=None, highlight=False), out


def test_a_start_is_shown_as_a_start_and_then_the_numbers() -> None:
    console, out = pipe()
    progress = Progress(100)
    with ProgressView(console, applications=2) as view:
        view.update(progress, 0.0)
        view.update(progress, 1.0)
        progress.applications_started = 2
        view.update(progress, 6.0)
        progress.batches_reported, progress.rows_reported = 4, 40
        progress.commits, progress.batches_committed, progress.rows_committed = 2, 3, 30
        progress.latencies_s = [0.5, 0.25, 1.0]
        view.update(progress, 7.0, last=True)
    assert out.getvalue().splitlines() == [
        "      0 s  Spark is starting: 0 of 2 applications are up",
        "      6 s  Spark is up; the first micro-batches are on their way",
        "      7 s  published 40 rows in 4 micro-batches; committed 30 rows in 2 commits of 1.5"
        " micro-batches; latency p50 0.50 s, p99 1.00 s; conflicts seen by writers: 0",
    ]


def test_changes_beside_the_streams_are_told_once_and_as_they_land() -> None:
    console, out = pipe()
    progress = Progress(100, applications_started=2)
    with ChangesView(console, applications=2, micro_batches=24) as view:
        view.update(progress, 0.0)
        progress.changes.append(ChangeLanded("merge", 1, "3 flights updated"))
        view.update(progress, 2.0)
        progress.batches_reported, progress.rows_reported = 4, 40
        progress.commits, progress.batches_committed = 2, 3
        progress.latencies_s = [0.5, 0.25, 1.0]
        view.update(progress, 7.0, last=True)
    assert out.getvalue().splitlines() == [
        "      0 s  Spark is up; the first micro-batches are on their way",
        "  merge       3 flights updated, after 2 s",
        "      7 s  published 40 changes in 4 of 24 micro-batches; committed 3 requests in 2"
        " commits; latency p50 0.50 s, p99 1.00 s; conflicts seen by writers: 0",
    ]


def test_the_verdict_names_what_differs() -> None:
    console, out = pipe()
    show_verdict(console, ["DuckDB: 9 rows, expected 10"])
    assert "the table is not the input\n    DuckDB: 9 rows, expected 10\n" in out.getvalue()
    assert "✔" not in out.getvalue()


def test_the_sums_of_input_and_readers_stand_side_by_side() -> None:
    console, out = pipe()
    sums = {"AA": Sums(2, 1, 300, -3), "UA": Sums(1, 1, 5, 7)}
    show_sums(console, sums, [Reading("Reader", {"AA": sums["AA"]}, ("a", "a"))])
    rows = [line.split() for line in out.getvalue().splitlines() if line]
    assert rows == [
        ["read", "by", "others", "input", "Reader"],
        ["rows", "3", "2"],
        ["sum", "of", "distance", "305", "300"],
        ["sum", "of", "arr_delay", "4", "-3"],
        ["carriers", "with", "equal", "sums", "2", "1"],
        ["data", "files", "2"],
        ["paths", "named", "twice", "1"],
    ]


def shown_on_a_terminal(progress: Progress, *, term: str, width: int) -> str:
    """Return all output to a terminal of this kind, control characters included."""
    out = io.StringIO()
    console = Console(
        file=out, width=width, height=24, force_terminal=True, _environ={"TERM": term}
    )
    with ProgressView(console, applications=1) as view:
        for second in range(3):
            view.update(progress, float(second))
        view.update(progress, 6.0, last=True)
    return out.getvalue()


def test_progress_is_rewritten_in_place_on_a_terminal_of_80_columns() -> None:
    progress = Progress(400_000, applications_started=1)
    progress.batches_reported, progress.rows_reported = 120, 336_776
    progress.commits, progress.batches_committed, progress.rows_committed = 60, 114, 300_000
    written = shown_on_a_terminal(progress, term="xterm", width=80)
    frames = written.split("\x1b[1A")  # each frame but the first starts by going up
    assert len(frames) > 3
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frames[0])
    assert [line.split()[0] for line in plain.splitlines() if line.strip()][:2] == [
        "published",
        "committed",
    ]
    assert "60 commits of 1.9 micro-batches" in plain
    assert all(len(line.rstrip()) <= 80 for line in plain.splitlines())


def test_a_terminal_that_cannot_rewrite_gets_lines() -> None:
    progress = Progress(100, applications_started=1)
    lines = shown_on_a_terminal(progress, term="dumb", width=80).splitlines()
    assert lines == [
        "      0 s  Spark is up; the first micro-batches are on their way",
        "      6 s  Spark is up; the first micro-batches are on their way",
    ]


def test_snapshot_ids_are_whole_on_a_terminal_of_80_columns() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, color_system=None, highlight=False)
    rows = [SnapshotRow(1_790_000_000_123, 9_223_372_036_854_775_807, 123, 4_567, 89_012, 336_776)]
    show_snapshots(console, rows)
    assert "9223372036854775807" in out.getvalue()
    assert "…" not in out.getvalue()
