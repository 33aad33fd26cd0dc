"""Scenario (f): writers that delete, upsert and overwrite rows of their own, on one table."""

from __future__ import annotations

from bench.operating import KINDS, OWN_FILES
from bench.plan import Plan
from bench.records import Record, Recorder, contention_values
from bench.runs import Operating, Operator, Outcome
from bench.systems import JAVA_MERGE, load_average, open_systems
from bench.tables import Live


def run(plan: Plan, recorder: Recorder) -> None:
    """Run the systems in turn; in every round another one is first."""
    with open_systems(plan) as systems:
        java = systems.peers.get(JAVA_MERGE)
        operators: list[Operator] = [each for each in (systems.frazil, java) if each is not None]
        for kind in KINDS:
            for turn in range(plan.rounds):
                first = turn % len(operators)
                for each in operators[first:] + operators[:first]:
                    operating = Operating(kind, plan.operating_writers, plan.window_s)
                    load = load_average()
                    outcome, live = each.operate(operating)
                    values = contention_values(outcome, plan.window_s)
                    values |= {"proven": is_proven(operating, outcome, live), "load_average": load}
                    case = f"{operating.writers} writers, {kind}"
                    recorder.add(Record("f", each.name, case, turn, values), each.profiles)


def is_proven(operating: Operating, outcome: Outcome, live: Live) -> bool:
    """Return whether a foreign reader finds just what the writers were told."""
    first, landed = operating.writers * OWN_FILES, len(outcome.requests)
    match operating.kind:
        case "vectors":
            return (live.data_files, live.deleted_rows) == (first, landed)
        case "upserts":
            return (live.data_files, live.delete_files) == (first + landed, landed)
        case _:
            return live.delete_files == 0 and live.overwrites == landed
