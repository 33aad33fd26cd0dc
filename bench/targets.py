"""The targets of Frazil against its peers, and its position. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from bench.records import Group, Key
from bench.statistics import ratio
from bench.systems import FRAZIL, FRAZIL_DEFAULT, JAVA

Groups = Mapping[Key, Group]
STORAGE_DELAY_MS = 25


@dataclass(frozen=True, slots=True)
class Target:
    """`found` is NaN where what it needs was not measured."""

    scenario: str
    text: str
    relation: Literal["≥", "≤"]
    wanted: float
    found: float

    @property
    def is_measured(self) -> bool:
        return not math.isnan(self.found)

    @property
    def is_reached(self) -> bool:
        return self.found >= self.wanted if self.relation == "≥" else self.found <= self.wanted

    @property
    def verdict(self) -> str:
        if not self.is_measured:
            return "not measured"
        return "reached" if self.is_reached else "missed"


def targets(groups: Groups) -> list[Target]:
    parts = (_contention, _open_loop, _sizes, _growth, _operations)
    return [target for part in parts for target in part(groups)]


def _contention(groups: Groups) -> Iterator[Target]:
    for scenario, at_16, at_200 in (("a", 25, 60), ("b", 30, 150)):
        failed = [
            group.spreads["failed"].greatest
            for (where, system, _), group in groups.items()
            if where == scenario and system in (FRAZIL, FRAZIL_DEFAULT)
        ]
        yield Target(
            scenario,
            "failed requests, at any number of writers",
            "≤",
            0,
            max(failed, default=math.nan),
        )
        for writers, wanted in ((16, at_16), (200, at_200)):
            yield Target(
                scenario,
                f"landed/s at {writers} writers ÷ Java's better mode at {writers}",
                "≥",
                wanted,
                _against_java(groups, scenario, writers),
            )
    for writers in (16, 200):
        of = _of(groups, "a", f"{writers} writers")
        for text, name in (("the call", "p99_ms"), ("durable", "p99_durable_ms")):
            cycles = ratio(of(name), of("cycle_ms"))
            yield Target("a", f"p99 from {text} ÷ commit time, {writers} writers", "≤", 3, cycles)
    yield Target(
        "a",
        "committer's CPU per request at 200 writers, µs",
        "≤",
        250,
        _of(groups, "a", "200 writers")("committer_us"),
    )
    for writers in (16, 200):
        trips = ratio(_of(groups, "b", f"{writers} writers")("p50_durable_ms"), STORAGE_DELAY_MS)
        text = f"p50 from durable ÷ storage round trip, {writers} writers"
        yield Target("b", text, "≤", 3, trips)


def _of(groups: Groups, scenario: str, case: str) -> _Median:
    return _Median(groups.get((scenario, FRAZIL, case)))


@dataclass(frozen=True, slots=True)
class _Median:
    group: Group | None

    def __call__(self, name: str) -> float:
        return math.nan if self.group is None else self.group.median(name)


def _against_java(groups: Groups, scenario: str, writers: int) -> float:
    case = f"{writers} writers"
    ours = _of(groups, scenario, case)("landed_per_s")
    return ratio(ours, _best_java(groups, scenario, case, "landed_per_s"))


def _best_java(groups: Groups, scenario: str, case: str, name: str) -> float:
    found = [groups[scenario, each, case] for each in JAVA if (scenario, each, case) in groups]
    return max((group.median(name) for group in found), default=math.nan)


def _operations(groups: Groups) -> Iterator[Target]:
    cases = [case for scenario, system, case in groups if (scenario, system) == ("f", FRAZIL)]
    for case in cases:
        group = groups["f", FRAZIL, case]
        failed = group.spreads["failed"].greatest
        yield Target("f", f"failed requests, {case}", "≤", 0, failed)
        java = _best_java(groups, "f", case, "landed_per_s")
        rate = ratio(group.median("landed_per_s"), java)
        yield Target("f", f"landed/s ÷ Java's, {case}", "≥", 10, rate)


def _open_loop(groups: Groups) -> Iterator[Target]:
    cases = [
        (case, group)
        for (scenario, system, case), group in groups.items()
        if scenario == "c" and system == FRAZIL and "producers" in case
    ]
    for case, group in cases:
        yield Target("c", f"landed/s, {case}", "≥", 1_500, group.median("landed_per_s"))
        text = f"committer's CPU per request, µs, {case}"
        yield Target("c", text, "≤", 250, group.median("committer_us"))


def _sizes(groups: Groups) -> Iterator[Target]:
    java = _best_java(groups, "d", "100,000 files", "files_per_s")
    prefix = "100,000 files"
    ours = [
        group.median("files_per_s")
        for (scenario, system, case), group in groups.items()
        if scenario == "d" and system == FRAZIL and case.startswith(prefix)
    ]
    best = ratio(max(ours, default=math.nan), java)
    yield Target("d", "100,000 files, every entry checked: files/s ÷ Java's", "≥", 3, best)
    for name, wanted, text in (
        ("checked_files_per_s", 3, "committer's functions alone, every entry checked"),
        ("moved_files_per_s", 10, "committer's functions alone, blocks moved without a check"),
    ):
        found = [
            group.median(name)
            for (scenario, system, case), group in groups.items()
            if scenario == "d" and system not in (FRAZIL, *JAVA) and case.startswith(prefix)
        ]
        most = max((each for each in found if not math.isnan(each)), default=math.nan)
        yield Target(
            "d", f"100,000 files, {text}: files/s ÷ Java's", "≥", wanted, ratio(most, java)
        )


def _growth(groups: Groups) -> Iterator[Target]:
    for (scenario, system, case), group in groups.items():
        if (
            scenario == "e"
            and system == FRAZIL
            and "ratio" in group.spreads
            and not case.startswith("10 existing")
        ):
            stopped = " (not reached)" if "stopped" in group.texts else ""
            text = f"one-file commit, {case}{stopped}, ÷ the smallest table or a fresh one"
            yield Target("e", text, "≤", 1.1, group.median("ratio"))
