"""What is printed where nobody looks at a screen: whole lines, and not too many."""

from __future__ import annotations

import io

from rich.console import Console

from committer.demo.progress import Progress
from committer.demo.verdict import Reading, Sums
from committer.demo.view import ProgressView, show_sums, show_verdict


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
