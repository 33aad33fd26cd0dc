"""Parses the events that processes of the demo print: lines of JSON, read as values.

Two sources: a Spark application (its micro-batches) and the committer (its log). Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass


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
    files: int
    rows: int
    conflicts: int


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


def parse_spark_event(line: str) -> Event | None:
    """Parse an application's line; None if it is of no interest."""
    fields = _fields(line)
    match fields.pop("event", None):
        case "SparkStarted":
            return SparkStarted(str(fields["application"]))
        case "RowsWritten":
            return RowsWritten(str(fields["stream"]), _int(fields, "batch"), _int(fields, "rows"))
        case "QueryEnded":
            error = fields["error"]
            return QueryEnded(str(fields["query"]), None if error is None else str(error))
        case "ChangeLanded":
            return ChangeLanded(
                str(fields["change"]), _int(fields, "requests"), str(fields["words"])
            )
        case _:
            return None


def parse_committer_event(line: str) -> Event | None:
    """Parse a line of the committer's log; None if it is of no interest."""
    fields = _fields(line)
    match fields.get("event"):
        case "service.started":
            return CommitterReady()
        case "request.landed":
            return RequestLanded(float(str(fields["latency_s"])))
        case "commit.landed":
            return CommitLanded(
                requests=_int(fields, "requests"),
                files=_int(fields, "files"),
                rows=_int(fields, "rows"),
                conflicts=_int(fields, "conflicts"),
            )
        case "request.quarantined":
            return RequestQuarantined(str(fields["reason"]), str(fields["message"]))
        case _:
            return None


def _fields(line: str) -> dict[str, object]:
    """Parse a line's fields; none if it is no JSON: a program that fails may write such lines."""
    try:
        fields = json.loads(line)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _int(fields: Mapping[str, object], name: str) -> int:
    return int(str(fields[name]))
