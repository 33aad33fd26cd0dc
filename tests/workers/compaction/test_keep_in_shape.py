"""The long-running job: rounds, errors of one table, and the end."""

from __future__ import annotations

import logging
import os
import signal
import threading

import pytest

from committer.errors import NoSuchTableError, SettingsError
from workers.compaction.keep_in_shape import Choose, Keeper, stopped_by_signals
from workers.compaction.rewrite_options import RewriteOptions, parse_rewrite_options
from workers.compaction.rewrite_result import RewriteResult
from workers.compaction.spark_compaction import keep_in_shape


def options(name: str) -> RewriteOptions:
    return parse_rewrite_options(name, "binpack", None, None, (), {})


def test_an_error_of_one_table_is_logged_once_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[str] = []

    def look(asked: RewriteOptions, _: Choose) -> RewriteResult:
        seen.append(asked.table)
        if asked.table == "db.bad" and len(seen) < 6:
            raise NoSuchTableError("no table `db.bad`")
        return RewriteResult()

    keeper = Keeper([options("db.bad"), options("db.good")], 1, look)
    with caplog.at_level(logging.WARNING, "frazil.workers"):
        keeper.run(threading.Event(), 0.0, rounds=4)
    assert seen == ["db.bad", "db.good"] * 4
    told = [record.getMessage() for record in caplog.records]
    assert [one for one in told if "trying again later" in one] == told[:1]
    assert told[1:] == ["table `db.bad` is looked at again"]


def test_a_bug_is_no_error_of_a_table() -> None:
    def look(_: RewriteOptions, __: Choose) -> RewriteResult:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Keeper([options("db.t")], 1, look).run(threading.Event(), 0.0, rounds=1)


def test_sigterm_ends_it_after_the_table_that_is_being_looked_at() -> None:
    seen: list[str] = []

    def look(asked: RewriteOptions, _: Choose) -> RewriteResult:
        seen.append(asked.table)
        os.kill(os.getpid(), signal.SIGTERM)
        return RewriteResult()

    before = signal.getsignal(signal.SIGTERM)
    with stopped_by_signals() as stop:
        Keeper([options("db.a"), options("db.b")], 1, look).run(stop, 3_600.0)
    assert seen == ["db.a"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_table_that_has_no_such_name_is_told_at_once() -> None:
    with pytest.raises(SettingsError, match=r"db\.flights"):
        keep_in_shape(None, ["t"], rounds=1)
