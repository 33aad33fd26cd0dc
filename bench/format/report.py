"""A run as a page: what it was measured on, the targets, a table of all cases. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.format.cases import CASES, FRAZIL, TARGETS, TITLES, Target
from bench.format.measure import Measured
from bench.report import number, table

_MIB = 1024 * 1024
_LEGEND = """\
Each line is a process of its own. Its speed is that of its fastest round, since all others were
disturbed by something. Memory: how much the process grew at most in its first round, beside the
input that it had before. "×": how many times the speed of a peer Frazil has. Files are those of
`bench/workload.py`: 20 columns with metrics, in manifests with deflate that Frazil wrote.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement of a run."""

    case: str
    system: str
    size: int
    measured: Measured

    @property
    def per_s(self) -> float:
        """Of the case's size: a scan with a filter goes through all files for the few it finds."""
        return self.size / self.measured.best_s


Lines = Mapping[tuple[str, str, int], Line]


def found_ratio(target: Target, lines: Lines) -> float | None:
    """Return the speed divided by the peer's; None where one of both was not measured."""
    ours = lines.get((target.case, FRAZIL, target.size))
    theirs = lines.get((target.peer_case, target.peer, target.size))
    return None if ours is None or theirs is None else ours.per_s / theirs.per_s


def print_report(environment: Mapping[str, str], lines: Lines) -> str:
    parts = [
        "# Benchmark of the format\n",
        table(("what", "with"), environment.items()),
        "## Targets\n",
        table(("target", "wanted", "found", "verdict"), _target_rows(lines)),
        _LEGEND,
        "## Cases\n",
        table(
            ("case", "size", "system", "per second", "µs each", "ms", "MiB", "rounds", "×"),
            _case_rows(lines),
        ),
    ]
    return "\n".join(parts)


def _target_rows(lines: Lines) -> Iterator[tuple[str, ...]]:
    for target in TARGETS:
        ratio = found_ratio(target, lines)
        text = (
            f"{target.case}, {target.size:,}: Frazil ÷ {TITLES[target.peer]}'s {target.peer_case}"
        )
        if ratio is None:
            verdict = "not measured"
        else:
            verdict = "reached" if ratio >= target.wanted else "missed"
        found = "" if ratio is None else number(ratio)
        yield text, f"≥ {target.wanted:g}", found, verdict


def _case_rows(lines: Lines) -> Iterator[tuple[str, ...]]:
    titles = {case.name: f"{case.title} ({case.unit})" for case in CASES}
    for (case, system, size), line in lines.items():
        measured, ours = line.measured, lines.get((case, FRAZIL, size))
        is_peer = ours is not None and system != FRAZIL
        yield (
            titles[case],
            f"{size:,}",
            TITLES[system],
            number(line.per_s),
            number(1e6 / line.per_s),
            number(measured.best_s * 1e3),
            number(measured.peak_bytes / _MIB),
            str(measured.rounds),
            number(ours.per_s / line.per_s) if ours is not None and is_peer else "",
        )
