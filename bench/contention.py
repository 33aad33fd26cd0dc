"""Scenarios (a) and (b): writers that wait for each commit, alone and many, and slow storage."""

from __future__ import annotations

from bench.plan import Plan
from bench.records import Record, Recorder, contention_values
from bench.runs import Contender, Contention
from bench.systems import load_average, open_systems


def run(plan: Plan, recorder: Recorder, *, scenario: str, delay_ms: int = 0) -> None:
    """Run the systems in turn; in every round another one is first."""
    with open_systems(plan, delay_ms=delay_ms, with_default=True) as systems:
        known = (systems.frazil, systems.frazil_default, *systems.peers.values())
        contenders: list[Contender] = [each for each in known if each is not None]
        stopped: set[tuple[str, int]] = set()
        for writers in plan.writers:
            for turn in range(plan.rounds):
                first = turn % len(contenders)
                for each in contenders[first:] + contenders[:first]:
                    if (each.name, writers) in stopped:
                        continue  # it would take its whole time again
                    is_default = each is systems.frazil_default
                    if is_default and turn >= plan.default_interval_rounds:
                        continue
                    window_s = plan.default_interval_window_s if is_default else plan.window_s
                    load = load_average()
                    outcome = each.contend(Contention(writers, window_s, delay_ms))
                    values = {**contention_values(outcome, window_s), "load_average": load}
                    record = Record(scenario, each.name, case(writers), turn, values)
                    recorder.add(record, each.profiles)
                    if outcome.stopped:
                        stopped.add((each.name, writers))


def case(writers: int) -> str:
    return "1 writer" if writers == 1 else f"{writers} writers"
