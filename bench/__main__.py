"""Runs benchmarks and writes what came of them: `make bench`, or `python -m bench --help`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import contention, fairness, growth, open_loop, operations, sizes
from bench.machine import describe
from bench.plan import SCENARIOS, Plan
from bench.plots import draw
from bench.records import Recorder, grouped
from bench.report import print_report
from bench.targets import targets

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    plan = Plan(
        scenarios=tuple(options.scenario),
        systems=tuple(options.systems.split(",")),
        rounds=options.rounds or (1 if options.quick else 3),
        quick=options.quick,
        profile=options.profile,
    )
    folder = options.results or RESULTS / time.strftime("%Y-%m-%d-%H%M", time.gmtime())
    folder.mkdir(parents=True, exist_ok=True)
    environment = describe(ROOT)
    recorder = Recorder(folder)
    started_s = time.monotonic()
    for scenario in plan.scenarios:
        run(scenario, plan, recorder)
    environment["took"] = f"{(time.monotonic() - started_s) / 60:.1f} minutes"
    write_results(folder, environment, recorder)
    return 0 if all(record.values.get("proven", True) for record in recorder.records) else 1


def run(scenario: str, plan: Plan, recorder: Recorder) -> None:
    match scenario:
        case "a":
            contention.run(plan, recorder, scenario="a")
        case "b":
            contention.run(plan, recorder, scenario="b", delay_ms=plan.storage_delay_ms)
        case "c":
            open_loop.run(plan, recorder)
        case "d":
            sizes.run(plan, recorder)
        case "e":
            growth.run(plan, recorder)
        case "f":
            operations.run(plan, recorder)
        case "g":
            fairness.run(plan, recorder)
        case _:
            raise ValueError(f"no scenario `{scenario}`")


def write_results(folder: Path, environment: dict[str, str], recorder: Recorder) -> None:
    """Write the page and its pictures; the records exist already."""
    groups = grouped(recorder.records)
    profiles = sorted(path.name for path in folder.glob("profile-*.txt"))
    notes = (
        [f"Profiles: {', '.join(f'[{name}]({name})' for name in profiles)}."] if profiles else []
    )
    report = print_report(environment, groups, draw(groups, folder), notes)
    (folder / "report.md").write_text(report)
    for target in targets(groups):
        if target.is_measured:
            print(
                f"({target.scenario}) {target.text}: {target.found:,.4g}"
                f" ({target.relation} {target.wanted:g}): {target.verdict}"
            )
    print(f"results are in {folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--scenario", nargs="+", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--systems", default="", help="beginnings of their names, with commas")
    parser.add_argument("--rounds", type=int, help="how often each measurement is repeated")
    parser.add_argument("--quick", action="store_true", help="small: does it work?")
    parser.add_argument("--profile", action="store_true", help="also tell where the time goes")
    parser.add_argument("--results", type=Path, help="folder for what is written")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
