"""Runs simulations: `python -m tests.simulation --seeds 1000 --first-seed 1 --jobs 2`.

`--replay SEED` runs one again, and shows what happened; `--shrink` makes it smaller first.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.simulation.catalogs import SimCatalog
from tests.simulation.run import FAILURES_MAX, simulate
from tests.simulation.scenario import draw_scenario
from tests.simulation.shrink import Shrinker
from tests.simulation.simulation import Outcome, Simulation

LINES_SHOWN = 60
_KINDS = f"its kind: {', '.join(one.value for one in SimCatalog)}; default: dynamodb"


def main() -> int:
    options = _options()
    if options.replay is not None:
        return replay(
            options.replay, catalog=options.catalog, lines=options.lines, shrinks=options.shrink
        )
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    totals = simulate(
        seeds, jobs=options.jobs, failures_max=options.failures, catalog=options.catalog
    )
    print(totals.table())
    print(totals.line())
    for run in totals.failed:
        print(f"seed {run.seed}: {run.violations[0][:200]}")
        print(f"  {replay_command(run.seed, options.catalog)}")
    return 1 if totals.failed else 0


def replay(seed: int, *, catalog: SimCatalog, lines: int, shrinks: bool) -> int:
    """Run one seed, show the end of its trace, and what was found."""
    outcome = Simulation(draw_scenario(seed, catalog=catalog), with_notes=True).run()
    if outcome.violations and shrinks:
        shrinker = Shrinker(outcome)
        smallest = shrinker.shrink()
        print(f"made smaller by {shrinker.runs} runs")
        outcome = Simulation(smallest.scenario, with_notes=True).run()
    show(outcome, lines=lines)
    return 1 if outcome.violations else 0


def show(outcome: Outcome, *, lines: int) -> None:
    """Print a run for people."""
    scenario = outcome.scenario
    print("\n".join(outcome.trace.lines[-lines:]))
    print(
        f"seed {scenario.seed}: {scenario.replicas} committers,"
        f" {', '.join(role.name for role in scenario.roles)};"
        f" {outcome.commits} commits, {outcome.virtual_s:.0f} s, trace {outcome.trace.digest}"
    )
    for call, fault in outcome.faults.fired:
        print(f"  {call}: {fault.value}")
    for event in outcome.events:
        print(f"  {event.at_s:.1f} s: {event.fate.value}")
    for violation in outcome.violations:
        print(violation)


def replay_command(seed: int, catalog: SimCatalog = SimCatalog.DYNAMODB) -> str:
    """Return the command that replays a seed."""
    return f"python -m tests.simulation --catalog {catalog.value} --replay {seed} --shrink"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument(
        "--catalog", type=SimCatalog, default=SimCatalog.DYNAMODB, help=_KINDS, metavar="KIND"
    )
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="default: all cores")
    parser.add_argument("--failures", type=int, default=FAILURES_MAX, help="after so many, end")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run one, and show it")
    parser.add_argument("--lines", type=int, default=LINES_SHOWN, help="lines of its trace")
    parser.add_argument("--shrink", action="store_true", help="leave out what is not needed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
