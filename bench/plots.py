"""Pictures of a run: one file for each question. Needs matplotlib, which only benchmarks have."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TypeAlias

from bench.statistics import Spread
from bench.systems import TITLES
from bench.targets import Groups

_WRITERS = (
    ("landed_per_s", "landed requests per second", "rate"),
    ("p99_ms", "p99 from call to receipt, ms", "p99"),
)


def draw(groups: Groups, folder: Path) -> list[str]:
    """Draw what was measured; the names of the files."""
    import matplotlib as mpl

    mpl.use("Agg")
    drawn: list[str] = []
    for scenario in ("a", "b"):
        for value, label, what in _WRITERS:
            lines = _lines(groups, scenario, value, r" writers?")
            name = f"{scenario}-{what}.png"
            drawn += _draw(lines, "writers", label, folder / name)
    lines = _lines(groups, "d", "files_per_s", r" files?")
    drawn += _draw(lines, "files in one commit", "files per second", folder / "d-files.png")
    lines = _lines(groups, "e", "one_file_ms", r" existing files")
    label = "one-file commit, ms"
    drawn += _draw(lines, "existing files", label, folder / "e-existing-files.png")
    lines = _lines(groups, "e", "one_file_ms", r"commit ")
    return drawn + _draw(lines, "commit number", label, folder / "e-history.png")


_Lines: TypeAlias = dict[str, list[tuple[int, Spread]]]


def _lines(groups: Groups, scenario: str, value: str, rest: str) -> _Lines:
    """Return the points of each system, from the cases that are a number and `rest`, a pattern."""
    lines: _Lines = {}
    for (where, system, case), group in groups.items():
        count, found = re.subn(rest, "", case.replace(",", ""))
        if where == scenario and found and count.isdecimal() and value in group.spreads:
            lines.setdefault(system, []).append((int(count), group.spreads[value]))
    return lines


def _draw(lines: _Lines, x_label: str, y_label: str, path: Path) -> list[str]:
    if not any(len(points) > 1 for points in lines.values()):
        return []
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for system, points in lines.items():
        known = sorted(point for point in points if not math.isnan(point[1].median))
        middle = [spread.median for _, spread in known]
        below = [spread.median - spread.least for _, spread in known]
        above = [spread.greatest - spread.median for _, spread in known]
        title = TITLES.get(system, system)
        counts = [count for count, _ in known]
        axes.errorbar(counts, middle, yerr=[below, above], marker="o", capsize=3, label=title)
    axes.set(xscale="log", yscale="log", xlabel=x_label, ylabel=y_label)
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return [path.name]
