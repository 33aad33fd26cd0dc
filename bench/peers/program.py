"""Asks the peers' programs. One table for each run, in a catalog file of Frazil's layout."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from bench.child import Child, Message, StoppedError
from bench.profiles import Profile
from bench.runs import Compacting, Contention, Operating, Outcome, compacted_of
from bench.tables import NAMESPACE, Live, Tables
from tests.support.builders.java_programs import java_program
from tests.support.integration.real_harness import ROOT

CATALOG = "bench"
_JAVA_HEAP = "-Xmx4g"
_WARM_COMMITS = 150


class Program:
    """A peer's process, started when it is first asked and again after it was stopped."""

    def __init__(self, name: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        self.folder = Path(self._folder.name)
        self.tables = Tables(self.folder, CATALOG)
        self._name = name
        self._child: Child | None = None
        self._numbers = iter(range(1_000_000))

    def command(self) -> Sequence[str]:
        raise NotImplementedError

    def warm(self) -> None:
        """Run before the first measurement of a process."""

    def fresh_table(self, *, format_version: int = 2) -> str:
        table = f"t{next(self._numbers)}"
        self.tables.create(table, format_version=format_version)
        return table

    def ask(self, do: str, table: str, *, timeout_s: float, **arguments: object) -> Message:
        """Run a command in the program. Errors: `StoppedError` after `timeout_s`."""
        if self._child is None or not self._child.is_alive:
            environment = os.environ | {"PYTHONPATH": str(ROOT)}
            log = self.folder / "program.log"
            self._child = Child(self._name, self.command(), log=log, environment=environment)
            self.warm()
        where = {
            "catalog": CATALOG,
            "catalog_file": str(self.tables.catalog_file),
            "table": f"{NAMESPACE}.{table}",
        }
        settings = {"delay_ms": 0, **where, **arguments}
        return self._child.ask(do, timeout_s=timeout_s, **settings)

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
        self._folder.cleanup()


class JavaProgram(Program):
    """One JVM, warm after some commits."""

    def command(self) -> Sequence[str]:
        source = Path(__file__).with_name("Bench.java")
        return java_program(source, "Bench", self.folder, _JAVA_HEAP)

    def warm(self) -> None:
        for fast in (True, False):
            self.ask(
                "commits",
                self.fresh_table(),
                timeout_s=120.0,
                fast=fast,
                count=_WARM_COMMITS // 2,
                files=20,
                start=0,
                files_a_day=100,
                limit_s=60.0,
            )


class PyIcebergProgram(Program):
    """One process that forks its writers."""

    def command(self) -> Sequence[str]:
        return [sys.executable, "-m", "bench.peers.pyiceberg_writers"]


@dataclass(slots=True)
class Peer:
    """A system on a program.

    `grace_s`: how long after the window its writers may finish what they have begun.
    """

    name: str
    program: Program
    options: dict[str, object]
    grace_s: float = 30.0
    profiles: dict[str, Profile] = field(default_factory=dict)

    def contend(self, load: Contention) -> Outcome:
        table = self.program.fresh_table()
        arguments = {
            **self.options,
            "writers": load.writers,
            "window_s": load.window_s,
            "prepared": _prepared(load),
            "delay_ms": load.delay_ms,
            "grace_s": self.grace_s,
        }
        # Preparing is not part of the window.
        limit_s = load.window_s + self.grace_s + 60.0
        try:
            answer = self.program.ask("contend", table, timeout_s=limit_s, **arguments)
        except StoppedError as error:
            outcome = Outcome(0.0, stopped=str(error), ended_s=limit_s)
        else:
            outcome = _outcome(answer)
        outcome.counted = self.program.tables.count(table)
        return outcome

    def operate(self, load: Operating) -> tuple[Outcome, Live]:
        """Change rows in each writer, until the window ends."""
        table = self.program.fresh_table(format_version=load.format_version)
        arguments = {"kind": load.kind, "writers": load.writers, "window_s": load.window_s}
        limit_s = load.window_s + self.grace_s + 60.0
        answer = self.program.ask("operate", table, timeout_s=limit_s, **arguments)
        return _outcome(answer), self.program.tables.live(table)

    def compact(self, load: Compacting) -> tuple[Outcome, Live]:
        """Commit row deltas in one thread, and compact in another, if it is to be done."""
        table = self.program.fresh_table(format_version=3)
        limit_s = load.window_s + self.grace_s + 60.0
        answer = self.program.ask("compact", table, timeout_s=limit_s, **asdict(load))
        outcome = _outcome(answer)
        outcome.compacted = replace(outcome.compacted, **compacted_of(answer))
        return outcome, self.program.tables.live(table)

    def commits(
        self,
        table: str,
        *,
        count: int,
        limit_s: float,
        files: int = 1,
        start: int = 0,
        files_a_day: int = 100,
    ) -> Message:
        """Commit as one writer, so many files each: `ms` and `metadata_bytes` of each commit."""
        return self.program.ask(
            "commits",
            table,
            timeout_s=limit_s + 120.0,
            count=count,
            files=files,
            start=start,
            files_a_day=files_a_day,
            limit_s=limit_s,
            **self.options,
        )

    def close(self) -> None:
        self.program.close()


def _prepared(load: Contention) -> int:
    """Return how many files each writer makes ahead: more than any peer commits in the window."""
    return max(10, int(load.window_s * 100 / max(1, load.writers // 4)))


def _outcome(answer: Message) -> Outcome:
    outcome = Outcome(answer["started_s"], failed=dict(answer["failed"]))
    outcome.requests = [(called, None, ended) for called, ended in answer["requests"]]
    outcome.ended_s = answer["ended_s"]
    outcome.attempts = answer.get("attempts")
    if unfinished := answer.get("unfinished", 0):
        outcome.stopped = f"{unfinished} writers were still at work at the limit, and were ended"
    landed = max(1, len(outcome.requests))
    outcome.more["writers_us"] = answer["cpu_s"] * 1e6 / landed
    return outcome
