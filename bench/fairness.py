"""Scenario (g): a stream of row deltas, alone and beside a long compaction of the same table."""

from __future__ import annotations

from dataclasses import replace

from bench.operating import OWN_FILES
from bench.plan import Plan
from bench.records import Record, Recorder, Value
from bench.runs import Compacting, Compactor, Outcome
from bench.statistics import median
from bench.systems import JAVA_MERGE, load_average, open_systems
from bench.tables import Live


def run(plan: Plan, recorder: Recorder) -> None:
    """Run the systems in turn; in every round another one is first."""
    with open_systems(plan) as systems:
        java = systems.peers.get(JAVA_MERGE)
        compactors: list[Compactor] = [each for each in (systems.frazil, java) if each is not None]
        for turn in range(plan.rounds):
            first = turn % len(compactors)
            for each in compactors[first:] + compactors[:first]:
                for compacts in (False, True):
                    _measure(each, replace(plan.compacting, compacts=compacts), turn, recorder)


def _measure(each: Compactor, load: Compacting, turn: int, recorder: Recorder) -> None:
    busy = load_average()
    outcome, live = each.compact(load)
    case = "stream alone"
    if load.compacts:
        case = f"beside {load.groups} groups of {load.files} files, {load.parts} commits"
    values = values_of(load, outcome) | {
        "proven": is_proven(load, outcome, live),
        "load_average": busy,
    }
    recorder.add(Record("g", each.name, case, turn, values), each.profiles)


def values_of(load: Compacting, outcome: Outcome) -> dict[str, Value]:
    """Return the values to record: of the stream, and of the compaction if there was one."""
    latencies = outcome.latencies_ms()
    values: dict[str, Value] = {
        "landed": outcome.landed,
        "failed": outcome.failures,
        **{name: latencies[name] for name in ("p50_ms", "p99_ms", "max_ms")},
    }
    if load.compacts:
        found = outcome.compacted
        values |= {
            "compaction_s": found.took_s,
            "groups_landed": len(found.landed),
            "groups_lost": found.lost,
            "groups_retried": found.retried,
            "part_ms": median(found.commits_ms),
            "part_max_ms": max(found.commits_ms, default=float("nan")),
        }
    if outcome.failed:
        values["errors"] = ", ".join(f"{name} {n}" for name, n in sorted(outcome.failed.items()))
    return values


def is_proven(load: Compacting, outcome: Outcome, live: Live) -> bool:
    """Return whether a foreign reader finds just what the stream and the compaction were told."""
    found = outcome.compacted
    data_files = OWN_FILES + load.groups * load.files - len(found.landed) * (load.files - 1)
    left = sum(count for group, count in found.hits.items() if group not in found.landed)
    return (live.data_files, live.deleted_rows) == (data_files, found.own + left)
