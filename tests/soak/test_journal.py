from __future__ import annotations

from pathlib import Path

from tests.soak.journal import Attempt, Ended, Journal, Past, pasts, read_journal


def attempt(number: int, epoch: int) -> Attempt:
    return Attempt(number, epoch, "a", f"offsets-{epoch}", ["file:///f"], [1, 2])


def written(path: Path, *events: Attempt | Ended) -> Path:
    journal = Journal(path)
    for event in events:
        journal.add(event)
    journal.close()
    return path


def test_events_are_read_as_they_were_written(tmp_path: Path) -> None:
    events = (attempt(1, 0), Ended(1, 0, 1.5, 0.5, "committed", 7, 8), Ended(1, 1, 2.0, 0.1))
    assert tuple(read_journal(written(tmp_path / "j", *events))) == events
    assert list(read_journal(tmp_path / "none")) == []


def test_a_line_that_a_kill_cut_off_was_not_written(tmp_path: Path) -> None:
    path = written(tmp_path / "j", attempt(1, 0), attempt(1, 1))
    path.write_bytes(path.read_bytes()[:-9])
    assert list(read_journal(path)) == [attempt(1, 0)]


def test_an_epoch_is_open_until_a_receipt_came_for_it() -> None:
    ended = Ended(1, 0, 1.0, 0.1, "durable")
    failed = Ended(1, 1, 2.0, 0.1, error="PublishError: no answer")
    assert pasts([attempt(1, 0)]) == {1: Past(1, is_open=True)}
    assert pasts([attempt(1, 0), ended]) == {1: Past(1, is_open=False)}
    assert pasts([attempt(1, 0), ended, attempt(1, 1), failed])[1] == Past(2, is_open=True)
    assert pasts([attempt(1, 0), attempt(2, 0), ended])[2] == Past(1, is_open=True)
