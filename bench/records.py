"""Measurements as they are kept: one line of JSON each, added up by scenario, system and case."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from bench.profiles import Profile
from bench.runs import Outcome
from bench.statistics import Spread

Value: TypeAlias = float | int | str | bool | None
Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement. `case` tells it from the others of its scenario: `16 writers`."""

    scenario: str
    system: str
    case: str
    round: int
    values: Mapping[str, Value]

    @property
    def key(self) -> Key:
        return self.scenario, self.system, self.case

    def print(self) -> str:
        """Return one line; a value that is not a number is null, which JSON can express."""
        line = asdict(self)
        line["values"] = {name: _plain(value) for name, value in self.values.items()}
        return json.dumps(line)


def _plain(value: Value) -> Value:
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 3)
    return value


class Recorder:
    """Keeps records in the order in which they come, in the folder too, and tells of each."""

    def __init__(self, folder: Path) -> None:
        self.records: list[Record] = []
        self._folder = folder

    def add(self, record: Record, profiles: Mapping[str, Profile] | None = None) -> None:
        """Keep a record, and where the time of that run went, if that is known."""
        self.records.append(record)
        with (self._folder / "records.jsonl").open("a") as file:
            file.write(record.print() + "\n")
        for process, profile in (profiles or {}).items():
            words = ["profile", record.scenario, *record.case.split(), record.system, process]
            name = re.sub(r"[^a-z0-9-]+", "", "-".join(words))
            (self._folder / f"{name}.txt").write_text(profile.print())
        shown = " ".join(f"{name}={_shown(value)}" for name, value in record.values.items())
        print(f"({record.scenario}) {record.system}, {record.case}: {shown}", flush=True)


def _shown(value: Value) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def contention_values(outcome: Outcome, window_s: float) -> dict[str, Value]:
    """Return the values to record of a run of contending writers."""
    values: dict[str, Value] = {
        "landed": outcome.landed,
        "failed": outcome.failures,
        "landed_per_s": outcome.rate(window_s),
        **outcome.latencies_ms(),
        "proven": outcome.is_proven,
        **outcome.more,
    }
    if outcome.attempts is not None:
        values["attempts_per_landed"] = outcome.attempts / max(1, outcome.landed)
    if outcome.failed:
        values["errors"] = ", ".join(f"{name} {n}" for name, n in sorted(outcome.failed.items()))
    if outcome.stopped:
        values["stopped"] = outcome.stopped
    return values


@dataclass(slots=True)
class Group:
    """All rounds of one case of one system."""

    spreads: dict[str, Spread]
    rounds: int
    texts: dict[str, str]
    is_proven: bool

    def median(self, name: str) -> float:
        """Return the median; NaN where it was not measured."""
        found = self.spreads.get(name)
        return math.nan if found is None else found.median


def grouped(records: Iterable[Record]) -> dict[Key, Group]:
    """Group the records by key, in the order in which the keys came."""
    by_key: dict[Key, list[Record]] = {}
    for record in records:
        by_key.setdefault(record.key, []).append(record)
    return {key: _group(each) for key, each in by_key.items()}


def _group(records: list[Record]) -> Group:
    names = dict.fromkeys(name for record in records for name in record.values)
    numbers: dict[str, list[float]] = {name: [] for name in names}
    texts: dict[str, str] = {}
    for record in records:
        for name, value in record.values.items():
            if isinstance(value, str):
                texts[name] = value
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                numbers[name].append(value)
    return Group(
        {name: Spread.of(each) for name, each in numbers.items() if each},
        len(records),
        texts,
        all(record.values.get("proven", True) for record in records),
    )
