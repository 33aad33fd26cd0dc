"""Watches the processes of a run: their events, and whether they still run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass

from committer.demo.programs.processes import ChildProcess, DemoError
from committer.demo.programs.progress import Progress
from committer.demo.programs.tail import Tail
from committer.demo.writers.events import Event, parse_committer_event, parse_spark_event

_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class _Teller:
    """A process and the file that it tells its events to."""

    child: ChildProcess
    tail: Tail
    parse: Callable[[str], Event | None]

    def events(self) -> Iterator[Event]:
        for line in self.tail.read():
            event = self.parse(line)
            if event is not None:
                yield event


class Watch:
    """Keeps a `Progress` up to date, and raises when something cannot go on."""

    def __init__(self, committer: ChildProcess, rows_expected: int) -> None:
        self.progress = Progress(rows_expected)
        self.committer = committer
        self._committer = _Teller(committer, Tail(committer.log), parse_committer_event)
        self.applications_ended = False
        """All have ended, and all that they told is in the progress."""
        self._applications: list[_Teller] = []

    def add_application(self, child: ChildProcess) -> None:
        """Watch an application, which tells its progress to a file beside its log."""
        events = Tail(child.log.with_suffix(".jsonl"))
        self._applications.append(_Teller(child, events, parse_spark_event))

    async def looks(self, *, quiet_s_max: float) -> AsyncIterator[Progress]:
        """Yield the progress, again and again, for as long as the caller wants.

        Errors: `DemoError` if a process has failed, a request is in quarantine, or nothing has
        happened for `quiet_s_max`.
        """
        loop = asyncio.get_running_loop()
        heard_s = loop.time()
        while True:
            if self._hear():
                heard_s = loop.time()
            self._check(loop.time() - heard_s, quiet_s_max)
            yield self.progress
            await asyncio.sleep(_LOOK_S)

    def _hear(self) -> bool:
        # Asked before listening: what has ended tells nothing more.
        ended = all(teller.child.exit_code is not None for teller in self._applications)
        events = [event for teller in self._tellers for event in teller.events()]
        self.progress.take(events)
        self.applications_ended = ended and bool(self._applications)
        return bool(events)

    @property
    def _tellers(self) -> Sequence[_Teller]:
        return (self._committer, *self._applications)

    def _check(self, quiet_s: float, quiet_s_max: float) -> None:
        for teller in self._tellers:
            teller.child.check()
        if self.committer.exit_code is not None:
            raise self.committer.failure("the committer has ended")
        if self.progress.quarantined:
            raise DemoError(f"a micro-batch went to quarantine: {self.progress.quarantined[0]}")
        if quiet_s > quiet_s_max:
            raise self.committer.failure(f"nothing has happened for {quiet_s:.0f} s")
