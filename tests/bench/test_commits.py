"""A committer's log, read as it grows."""

from __future__ import annotations

import json
from pathlib import Path

from bench.commits import CommitLog, LandedCommit


def line(event: str, second: int, **fields: object) -> str:
    stamp = f"2026-01-01T00:00:{second:02d}Z"
    return json.dumps({"event": event, "timestamp": stamp, "level": "info", **fields}) + "\n"


def landed(second: int) -> str:
    return line("commit.landed", second, table="db.t", requests=second, files=2, duration_s=0.25)


def test_each_commit_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(line("service.started", 1) + landed(2))
    log = CommitLog(path)
    [first] = log.fresh()
    assert first == LandedCommit("db.t", log.started_at_s + 1.0, 2, 2, 0.25)
    assert log.fresh() == []
    with path.open("a") as file:
        file.write(landed(3))
    assert [one.requests for one in log.fresh()] == [3]


def test_a_line_that_is_not_complete_is_read_later(tmp_path: Path) -> None:
    path, text = tmp_path / "log", landed(2)
    path.write_text(text[:20])
    log = CommitLog(path)
    assert log.fresh() == []
    path.write_text(text)
    assert len(log.fresh()) == 1


def test_what_is_no_event_is_passed_over_and_warnings_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "log"
    warning = line("commit.conflicted", 1).replace("info", "warning")
    path.write_text("Traceback\n[1]\n" + warning + landed(2))
    log = CommitLog(path)
    assert len(log.fresh()) == 1
    assert log.warnings == ["commit.conflicted"]
