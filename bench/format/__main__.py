"""Measures the format beside its peers: `make bench-format`, or `python -m bench.format --help`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.format.cases import CASES, TITLES, Case, sizes_of
from bench.format.measure import Measured
from bench.format.report import Line, Lines, print_report
from bench.machine import describe_python

ROOT = Path(__file__).resolve().parents[2]
_CASE_S_MAX = 900
_PACKAGES = ("orjson", "fastavro", "pyiceberg", "pyiceberg-core", "pyarrow")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    rounds = options.rounds or (1 if options.quick else 3)
    name = time.strftime("%Y-%m-%d-%H%M-format", time.gmtime())
    folder = options.results or ROOT / "bench" / "results" / name
    environment = describe_python(ROOT, _PACKAGES)
    lines: dict[tuple[str, str, int], Line] = {}
    for case, system, size in _chosen(options):
        measured = _measure(case, system, size, rounds)
        line = lines[case.name, system, size] = Line(case.name, system, size, measured)
        print(f"{case.name}, {size:,}, {TITLES[system]}: {line.per_s:,.0f}/s", flush=True)
    write_results(folder, environment, lines)
    print(f"results are in {folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}")
    return 0


def write_results(folder: Path, environment: dict[str, str], lines: Lines) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(print_report(environment, lines))
    records = (
        {"case": case, "system": system, "size": size, **line.measured.as_json()}
        for (case, system, size), line in lines.items()
    )
    text = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "records.jsonl").write_text(text)


def _chosen(options: argparse.Namespace) -> Iterator[tuple[Case, str, int]]:
    for case in CASES:
        if options.case and case.name not in options.case:
            continue
        for size in case.quick_sizes if options.quick else case.sizes:
            for system in case.systems:
                if options.systems and system not in options.systems:
                    continue
                if size in sizes_of(case, system, quick=options.quick):
                    yield case, system, size


def _measure(case: Case, system: str, size: int, rounds: int) -> Measured:
    """Measure in a fresh process: no case finds another's leftovers in memory or in caches."""
    command = [sys.executable, "-m", "bench.format.run_case", case.name, system, str(size)]
    answer = subprocess.run(
        [*command, str(rounds)], cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=_CASE_S_MAX
    )
    return Measured(**json.loads(answer.stdout))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-format", description=__doc__)
    parser.add_argument("--case", nargs="+", choices=[case.name for case in CASES])
    parser.add_argument("--systems", nargs="+", choices=list(TITLES))
    parser.add_argument("--rounds", type=int, help="of each case, at least (default 3)")
    parser.add_argument("--quick", action="store_true", help="small, to see that all works")
    parser.add_argument("--results", type=Path, help="folder for the results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
