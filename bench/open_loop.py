"""Scenario (c): many producers that wait for durability only, and how soon all is committed.

And the committer's own ceiling: a full queue first, then a committer that starts.
"""

from __future__ import annotations

from bench.frazil import Frazil, shares
from bench.plan import Plan
from bench.records import Record, Recorder, Value
from bench.systems import load_average, open_systems


def run(plan: Plan, recorder: Recorder) -> None:
    with open_systems(plan, with_default=True) as systems:
        known = (systems.frazil, systems.frazil_default)
        total = plan.producers * plan.epochs
        case = f"{plan.producers:,} producers × {plan.epochs}"
        for turn in range(plan.rounds):
            for frazil in (each for each in known if each is not None):
                load = load_average()
                values = {**_flood(frazil, plan, total), "load_average": load}
                recorder.add(Record("c", frazil.name, case, turn, values), frazil.profiles)
            if systems.frazil is not None:
                values = _backlog(systems.frazil, plan, total)
                recorder.add(
                    Record("c", systems.frazil.name, f"backlog of {total:,}", turn, values)
                )


def _prepare(frazil: Frazil, plan: Plan) -> str:
    table = frazil.fresh_table()
    frazil.prepare(table, [len(share) * plan.epochs for share in shares(plan.producers)])
    return table


def _flood(frazil: Frazil, plan: Plan, total: int) -> dict[str, Value]:
    table = _prepare(frazil, plan)
    outcome = frazil.run(table, "flood", shares(plan.producers), until_landed=total)
    outcome.counted = frazil.tables.count(table)
    assert outcome.ended_s is not None
    took_s = outcome.ended_s - outcome.started_s
    durable_s = max(ended for _, _, ended in outcome.requests) - outcome.started_s
    return {
        "landed": outcome.counted.files,
        "failed": outcome.failures,
        "landed_per_s": total / took_s,
        "durable_per_s": total / durable_s,
        "durable_after_s": durable_s,
        "committed_after_s": took_s,
        "proven": outcome.counted.proves(total),
        **outcome.more,
    }


def _backlog(frazil: Frazil, plan: Plan, total: int) -> dict[str, Value]:
    """Measure a committer from its start, with all requests waiting."""
    table = _prepare(frazil, plan)
    commits, took_s = frazil.work_off(table, shares(plan.producers), total)
    counted = frazil.tables.count(table)
    return {
        "landed": counted.files,
        "landed_per_s": total / took_s,
        "committed_after_s": took_s,
        "commits": len(commits),
        "proven": counted.proves(total),
    }
