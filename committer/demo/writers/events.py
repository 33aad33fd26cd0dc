"""Parses the events that processes of the demo print: lines of JSON, read as values.

Two sources: a Spark application (its micro-batches) and the committer (its log). Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class SparkStarted:
    """A Spark application has a session."""

    application: str


@dataclass(frozen=True, slots=True)
class RowsWritten:
    """A micro-batch of a query has ended: what it wrote is published, if there was anything."""

    stream: str
    batch: int
    rows: int


@dataclass(frozen=True, slots=True)
class QueryEnded:
    """A query has ended; `error` says why if it failed."""

    query: str
    error: str | None


@dataclass(frozen=True, slots=True)
class ChangeLanded:
    """A batch beside the streams is in the table, by so many requests; `words` say what it did."""

    change: str
    requests: int
    words: str


@dataclass(frozen=True, slots=True)
class CommitterReady:
    """The committer takes requests."""


@dataclass(frozen=True, slots=True)
class RequestLanded:
    """A micro-batch is in the table, so long after it was published."""

    latency_s: float


@dataclass(frozen=True, slots=True)
class CommitLanded:
    """One swap of the table's pointer."""

    requests: int
    rows: int


@dataclass(frozen=True, slots=True)
class RequestQuarantined:
    """A micro-batch that cannot land."""

    reason: str
    message: str


Event = (
    SparkStarted
    | RowsWritten
    | QueryEnded
    | ChangeLanded
    | CommitterReady
    | RequestLanded
    | CommitLanded
    | RequestQuarantined
)


_SPARK_EVENTS: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (SparkStarted, RowsWritten, QueryEnded, ChangeLanded)
}
_COMMITTER_EVENTS: dict[str, type[Event]] = {
    "service.started": CommitterReady,
    "request.landed": RequestLanded,
    "commit.landed": CommitLanded,
    "request.quarantined": RequestQuarantined,
}


def parse_spark_event(line: str) -> Event | None:
    """Parse an application's line; None if it is of no interest."""
    return _parsed(line, _SPARK_EVENTS)


def parse_committer_event(line: str) -> Event | None:
    """Parse a line of the committer's log; None if it is of no interest."""
    return _parsed(line, _COMMITTER_EVENTS)


def _parsed(line: str, kinds: Mapping[str, type[Event]]) -> Event | None:
    """Make the event that the line names, of those fields of the line that it has."""
    said = _said(line)
    kind = kinds.get(said.get("event", ""))
    return None if kind is None else kind(**{one.name: said[one.name] for one in fields(kind)})


def _said(line: str) -> dict[str, Any]:
    """Parse a line's fields; none if it is no JSON: a program that fails may write such lines."""
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
