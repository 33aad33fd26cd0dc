"""Times when micro-batches are in a table: its pointer in the SQLite catalog, watched from outside.

The same for all writers: neither their clocks nor what they say of themselves counts.
"""

from __future__ import annotations

import json
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from committer.iceberg.metadata.snapshot import MAIN
from committer.ledger_entry import EpochRanges, parse_property_key

# A streaming query's id, and the number of one of its micro-batches.
Epoch = tuple[str, int]
_POLL_S = 0.005
_LATE_S_MAX = 60.0


class LandingWatch:
    """Notes when the pointer of a table moves, until the `with` block ends.

    `read` returns the content of a metadata file, which happens after the measured time.
    """

    def __init__(self, catalog_file: Path, table: str, read: Callable[[str], bytes]) -> None:
        self._catalog_file = catalog_file
        self._table = table
        self._read = read
        self._moves: list[tuple[float, str]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def landed_ms(self, wanted: Collection[Epoch]) -> Mapping[Epoch, float]:
        """Return when each micro-batch was first seen in the table, once all `wanted` are, or a
        minute has passed.
        """
        ends_s = time.monotonic() + _LATE_S_MAX
        while not self._holds(wanted) and time.monotonic() < ends_s:
            time.sleep(0.1)
        return first_seen(
            (at_ms, epochs_of(self._metadata(location))) for at_ms, location in [*self._moves]
        )

    def _holds(self, wanted: Collection[Epoch]) -> bool:
        return bool(self._moves) and epochs_of(self._metadata(self._moves[-1][1])) >= {*wanted}

    def _metadata(self, location: str) -> Mapping[str, Any]:
        metadata: Mapping[str, Any] = json.loads(self._read(location))
        return metadata

    def _watch(self) -> None:
        query = (
            "SELECT metadata_location FROM iceberg_tables"
            " WHERE table_namespace = ? AND table_name = ?"
        )
        catalog = sqlite3.connect(self._catalog_file, timeout=30.0)
        try:
            while not self._ended.wait(_POLL_S):
                for (location,) in catalog.execute(query, self._table.split(".")).fetchall():
                    if not self._moves or location != self._moves[-1][1]:
                        self._moves.append((time.time() * 1000, location))
        finally:
            catalog.close()


def epochs_of(metadata: Mapping[str, Any]) -> set[Epoch]:
    """Return the micro-batches in a table: by Frazil's ledger, and by Iceberg's summaries."""
    return {*_in_ledger(metadata), *_in_summaries(metadata)}


def _in_ledger(metadata: Mapping[str, Any]) -> Iterator[Epoch]:
    for key, text in metadata.get("properties", {}).items():
        producer, branch = parse_property_key(key) or ("", "")
        if branch == MAIN:
            for low, high in EpochRanges.parse(json.loads(text)["epochs"]):
                yield from ((producer, epoch) for epoch in range(low, high + 1))


def _in_summaries(metadata: Mapping[str, Any]) -> Iterator[Epoch]:
    for snapshot in metadata.get("snapshots", ()):
        summary = snapshot.get("summary", {})
        if query := summary.get("spark.sql.streaming.queryId"):
            yield query, int(summary["spark.sql.streaming.epochId"])


def first_seen(sightings: Iterable[tuple[float, Iterable[Epoch]]]) -> Mapping[Epoch, float]:
    """Return when each micro-batch was seen first; `sightings` are in the order of their time."""
    found: dict[Epoch, float] = {}
    for at_ms, epochs in sightings:
        for epoch in epochs:
            found.setdefault(epoch, at_ms)
    return found


def freshness_ms(
    triggers_ms: Mapping[Epoch, float], landed_ms: Mapping[Epoch, float]
) -> list[float]:
    """Return the time from each trigger to its landing; infinite for what has not landed."""
    return [landed_ms.get(epoch, math.inf) - at_ms for epoch, at_ms in triggers_ms.items()]
