"""Polls tables, and compacts those that have too many small files.

Runs on the driver until it is stopped.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.errors import PySparkException

from committer.errors import FrazilError
from committer.stop_signals import STOP_SIGNALS
from workers.compaction.partition_turns import Turns
from workers.compaction.rewrite_groups import FileGroup
from workers.compaction.rewrite_options import RewriteOptions
from workers.compaction.rewrite_result import RewriteResult
from workers.spark.task_input import handled_signals

_log = logging.getLogger("frazil.workers")

Choose = Callable[[Sequence[FileGroup]], Sequence[FileGroup]]
Look = Callable[[RewriteOptions, Choose], RewriteResult]


@dataclass(slots=True)
class Keeper:
    """Compacts some tables in turn: `look` compacts one, a budget of bytes at most.

    An error of one table costs its turn alone. It is logged once, until the table has another one
    or none.
    """

    tables: Sequence[RewriteOptions]
    budget_bytes: int
    look: Look
    _turns: dict[str, Turns] = field(default_factory=dict)
    _troubles: dict[str, str] = field(default_factory=dict)

    def run(self, stop: threading.Event, every_s: float, rounds: int | None = None) -> None:
        """Look at all tables, then wait, until `stop` or for some rounds. What is under way when
        `stop` comes ends first: it is bounded by the budget."""
        while not stop.is_set():
            for options in self.tables:
                if not stop.is_set():
                    self._look_at(options)
            rounds = None if rounds is None else rounds - 1
            if rounds == 0:
                return
            stop.wait(every_s)

    def _look_at(self, options: RewriteOptions) -> None:
        turns = self._turns.setdefault(options.table, Turns(self.budget_bytes))
        try:
            result = self.look(options, turns.choose)
        except (FrazilError, PySparkException, OSError) as error:
            self._log_failure(options.table, f"{type(error).__name__}: {error}")
            return
        if self._troubles.pop(options.table, None) is not None:
            _log.warning("table `%s` is looked at again", options.table)
        if result.rewritten_files:
            _log.info(
                "table `%s`: %d files became %d, %d bytes became %d",
                options.table,
                result.rewritten_files,
                result.added_files,
                result.rewritten_bytes,
                result.added_bytes,
            )

    def _log_failure(self, table: str, trouble: str) -> None:
        if self._troubles.get(table) != trouble:
            _log.warning("table `%s` is not compacted, trying again later: %s", table, trouble)
        self._troubles[table] = trouble


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Give an event that SIGTERM and SIGINT set inside, where this is the main thread."""
    stop = threading.Event()
    with handled_signals(STOP_SIGNALS, lambda *_: stop.set()):
        yield stop
