"""The journal of an application: lines of JSON on the disk, which survive its driver."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Event = Literal["begun", "done", "failed", "wrong", "worker killed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """`ms`: since 1970."""

    step: int
    event: Event
    ms: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a step. `ended` None: its driver died; `end_ms` is when the next one began."""

    step: int
    begin_ms: int
    end_ms: int
    ended: Event | None
    message: str


class Journal:
    """One application's. Its driver and, of kills, the test append to it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, step: int, event: Event, message: str = "") -> None:
        """Add an entry, and return once it is durable."""
        entry = Entry(step, event, time.time_ns() // 1_000_000, message)
        line = (json.dumps(asdict(entry)) + "\n").encode()
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def entries(self) -> list[Entry]:
        if not self._path.exists():
            return []
        return [Entry(**json.loads(line)) for line in self._path.read_text().splitlines()]

    def done(self) -> int:
        """Return how many steps are done: all before the one to go on with."""
        return sum(entry.event == "done" for entry in self.entries())

    def is_at_work(self) -> bool:
        """Return whether a step has begun and not ended."""
        steps = [entry for entry in self.entries() if entry.event != "worker killed"]
        return bool(steps) and steps[-1].event == "begun"

    def worker_kills(self) -> list[int]:
        return [entry.ms for entry in self.entries() if entry.event == "worker killed"]

    def attempts(self) -> list[Attempt]:
        """Return all tries, in their order."""
        steps = [entry for entry in self.entries() if entry.event != "worker killed"]
        found = []
        for entry, following in zip(steps, [*steps[1:], None], strict=True):
            if entry.event != "begun":
                continue
            end = following or entry
            ended = None if end.event == "begun" else end.event
            found.append(Attempt(entry.step, entry.ms, end.ms, ended, end.message))
        return found
