"""From the lines that processes write to the numbers on the screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from committer.demo.programs.progress import Progress, percentile
from committer.demo.programs.tail import Tail, last_lines
from committer.demo.writers.events import (
    ChangeLanded,
    CommitLanded,
    Event,
    parse_committer_event,
    parse_spark_event,
)


def committer(event: str, **fields: object) -> Event | None:
    line = {"event": event, "level": "info", "timestamp": "2026-01-01T00:00:00Z", **fields}
    return parse_committer_event(json.dumps(line))


def spark(event: str, **fields: object) -> Event | None:
    return parse_spark_event(json.dumps({"event": event, **fields}))


def progress_of(*events: Event | None) -> Progress:
    progress = Progress(100)
    progress.take(event for event in events if event)
    return progress


def landed(requests: int, rows: int, conflicts: int = 0) -> Event | None:
    return committer(
        "commit.landed", requests=requests, rows=rows, files=2 * requests, conflicts=conflicts
    )


def test_what_is_published_and_what_is_committed_add_up() -> None:
    progress = progress_of(
        committer("service.started"),
        spark("SparkStarted", application="spark-1"),
        *(spark("RowsWritten", stream="s", batch=batch, rows=10) for batch in range(4)),
        landed(3, 30),
        *(committer("request.landed", latency_s=latency) for latency in (0.5, 0.25, 1.0)),
    )
    assert progress.committer_ready
    assert progress.applications_started == 1
    assert (progress.batches_published, progress.rows_published) == (4, 40)
    assert (progress.batches_committed, progress.rows_committed, progress.commits) == (3, 30, 1)
    assert progress.is_settled is False
    assert percentile(progress.latencies_s, 50) == 0.5


def test_a_run_is_settled_when_all_that_was_published_is_committed() -> None:
    published = [spark("RowsWritten", stream="s", batch=batch, rows=10) for batch in range(4)]
    progress = progress_of(*published, landed(3, 30), landed(1, 10))
    assert progress.is_settled
    assert progress.batches_per_commit == 2.0


def test_what_lands_beside_the_streams_does_not_count_for_them() -> None:
    """Else a run of three requests would end while one of its two micro-batches waits."""
    published = [spark("RowsWritten", stream="s", batch=batch, rows=10) for batch in range(2)]
    merge = spark("ChangeLanded", change="merge", requests=1, words="3 flights updated")
    progress = progress_of(*published, merge, landed(1, 10), landed(1, 3))
    assert progress.changes == [ChangeLanded("merge", 1, "3 flights updated")]
    assert not progress.is_settled
    progress.take([CommitLanded(requests=1, rows=10)])
    assert progress.is_settled


def test_a_micro_batch_without_rows_publishes_nothing() -> None:
    progress = progress_of(spark("RowsWritten", stream="s", batch=0, rows=0))
    assert progress.batches_published == 0
    assert progress.is_settled


def test_what_is_in_the_table_counts_as_published_before_spark_says_so() -> None:
    progress = progress_of(landed(2, 20))
    assert (progress.batches_published, progress.rows_published) == (2, 20)


def test_an_error_of_a_writer_and_a_quarantined_request_are_kept() -> None:
    progress = progress_of(
        spark("QueryEnded", query="q", error=None),
        spark("QueryEnded", query="q", error="CommitFailedException"),
        committer("request.quarantined", reason="spec_mismatch", message="other fields"),
    )
    assert progress.writer_errors == ["CommitFailedException"]
    assert progress.quarantined == ["spec_mismatch: other fields"]


@pytest.mark.parametrize("line", ["", "Traceback (most recent call last):", "[1]", '{"a": 1}'])
def test_lines_that_are_no_events_are_passed_over(line: str) -> None:
    assert parse_committer_event(line) is None
    assert parse_spark_event(line) is None


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert [percentile(values, percent) for percent in (0, 1, 50, 99, 100)] == [1, 1, 50, 99, 100]
    assert percentile([3.0], 99) == 3.0
    assert percentile([], 50) is None


def test_a_line_is_read_once_and_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = Tail(path)
    assert tail.read() == []
    with path.open("a") as file:
        print("one", "two", sep="\n", file=file)
        file.write("thr")
        file.flush()
        assert tail.read() == ["one", "two"]
        assert tail.read() == []
        print("ee", file=file)
    assert tail.read() == ["three"]


def test_the_end_of_a_file_is_its_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert last_lines(path, 2) == []
    path.write_text("1\n2\n3")
    assert last_lines(path, 2) == ["2", "3"]
