"""The journals of a soak's writers: each attempt before it is published, and how it ended.

A writer may be killed at any moment, as a Spark driver may. Its journal is its checkpoint: its next
process continues from it. At the end all journals together say what every table has to hold. One
line of JSON is one event; a line that a kill cut off counts as not written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from committer.iceberg.entry.data_file import DataFile
from committer.ports.pointer_swap import LoadedTable
from committer.request.commit_request import Fingerprint, Producer
from committer.request.receipt_model import Receipt, ReceiptState
from tests.support.integration.traffic import RealProducer, Written
from workers.requests.connections import Connections
from workers.requests.written_epoch import WrittenEpoch


@dataclass(frozen=True, slots=True)
class Attempt:
    """Files of a producer for an epoch, about to be published."""

    number: int
    epoch: int
    nonce: str
    fingerprint: str
    paths: list[str]
    ids: list[int]


@dataclass(frozen=True, slots=True)
class Ended:
    """The answer of `publish`. `at_s`: of the wall clock, when it came, `took_s` after the call.

    `error`: what was raised instead of a receipt.
    """

    number: int
    epoch: int
    at_s: float
    took_s: float
    state: str = ""
    snapshot_id: int | None = None
    sequence_number: int | None = None
    backlog: int | None = None
    error: str = ""


Event = Attempt | Ended


class Journal:
    """A file that events are added to, each whole."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, event: Event) -> None:
        line = json.dumps({"kind": type(event).__name__, **asdict(event)}) + "\n"
        os.write(self._file, line.encode())

    def close(self) -> None:
        os.close(self._file)


def read_journal(path: Path) -> Iterator[Event]:
    """Yield the events so far; none where there is no file."""
    if not path.exists():
        return
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield _event(json.loads(line))


def _event(parsed: dict[str, Any]) -> Event:
    kind = {"Attempt": Attempt, "Ended": Ended}[parsed.pop("kind")]
    event: Event = kind(**parsed)
    return event


@dataclass(slots=True)
class Past:
    """A producer's own past, read from its journal when it starts again."""

    epochs: int = 0
    is_open: bool = False  # nothing tells whether the last epoch was published

    def note(self, event: Event) -> None:
        if isinstance(event, Attempt):
            self.epochs, self.is_open = max(self.epochs, event.epoch + 1), True
        elif not event.error:
            self.is_open = False


def pasts(events: Iterable[Event]) -> dict[int, Past]:
    """Return the past of each producer."""
    found: dict[int, Past] = {}
    for event in events:
        found.setdefault(event.number, Past()).note(event)
    return found


@dataclass(slots=True)
class Published:
    """All that the producers of one table have tried, and what they were told."""

    table: LoadedTable
    attempts: list[Attempt] = field(default_factory=list)
    ends: list[Ended] = field(default_factory=list)

    def producers(self, waiting: int, connections: Connections) -> list[RealProducer]:
        """Return the producers for the test of exactness; the first `waiting` wait for commits."""
        numbers = sorted({attempt.number for attempt in self.attempts})
        return [self._producer(number, number < waiting, connections) for number in numbers]

    def _producer(self, number: int, waits: bool, connections: Connections) -> RealProducer:
        producer = RealProducer(
            number, self.table, connections, wait="committed" if waits else "durable"
        )
        mine = [attempt for attempt in self.attempts if attempt.number == number]
        producer.written = [self._written(attempt, producer.name) for attempt in mine]
        for end in self.ends:
            if end.number == number and not end.error:
                producer.receipts[end.epoch] = Receipt(
                    producer.name,
                    end.epoch,
                    "",
                    ReceiptState(end.state),
                    end.snapshot_id,
                    end.sequence_number,
                )
        return producer

    def _written(self, attempt: Attempt, name: str) -> Written:
        files = [
            DataFile(file_path=path, record_count=0, file_size_in_bytes=0) for path in attempt.paths
        ]
        epoch = WrittenEpoch(
            identifier=self.table.identifier,
            table_uuid=self.table.metadata.require_uuid(),
            schema_id=self.table.metadata.current_schema_id,
            producer=Producer(id=name, sequential=True),
            epoch=attempt.epoch,
            nonce=UUID(attempt.nonce),
            fingerprint=Fingerprint(kind="spark-offsets", value=attempt.fingerprint),
            files=files,
        )
        return Written(epoch, tuple(attempt.ids))
