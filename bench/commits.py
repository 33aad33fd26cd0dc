"""Reads the commits from a committer's log as it grows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class LandedCommit:
    """One `commit.landed` event. `at_s`: seconds of the wall clock."""

    table: str
    at_s: float
    requests: int
    files: int
    duration_s: float


class CommitLog:
    """Reads a log from where it was left.

    `started_at_s`: when the last committer had started. `warnings`: warnings and errors by name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.started_at_s = 0.0
        self.warnings: list[str] = []

    def fresh(self) -> list[LandedCommit]:
        """Return the commits that were logged since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            content = file.read()
        complete = content[: content.rfind(b"\n") + 1]
        self._offset += len(complete)
        return list(self._parse(complete.splitlines()))

    def _parse(self, lines: Iterable[bytes]) -> Iterable[LandedCommit]:
        for line in lines:
            event = _json(line)
            if event.get("event") == "commit.landed":
                yield LandedCommit(
                    table=event["table"],
                    at_s=_time_s(event),
                    requests=event["requests"],
                    files=event["files"],
                    duration_s=event["duration_s"],
                )
            elif event.get("event") == "service.started":
                self.started_at_s = _time_s(event)
            elif event.get("level") in ("warning", "error", "critical"):
                self.warnings.append(str(event.get("event")))


def _time_s(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["timestamp"]).timestamp()


def _json(line: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
