"""The results of a soak, as a page and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.statistics import percentile
from tests.soak.samples import Depth, Sample, Window, windows
from tests.soak.soak import Story

_MIB = 1024 * 1024
_WINDOW_S = 5.0


def waits(story: Story) -> list[tuple[float, float]]:
    """Return (seconds since the start, seconds from call to receipt) of those that waited."""
    return _ends(story, "committed")


def _ends(story: Story, state: str) -> list[tuple[float, float]]:
    return [(story.since_start(one.at_s), one.took_s) for one in story.ends if one.state == state]


def print_page(story: Story, environment: Mapping[str, str], picture: str) -> str:
    plan = story.plan
    verdict = "**No promise was broken.**" if not story.violations else "**BROKEN PROMISES:**"
    return "\n".join(
        [
            "# Soak",
            "",
            f"{plan.producers} producers on {plan.tables} tables, about"
            f" {plan.requests_per_s:g} requests a second; {plan.replicas} committers, one of which"
            f" is never killed; {len(story.struck)} faults in {plan.play_s:g} s"
            f" (seed {plan.seed}).",
            "",
            verdict,
            *(f"* {one}" for one in story.violations),
            "",
            f"![latency, memory, file handles and backlog]({picture})",
            "",
            *_exactness(story),
            "",
            *_latencies(story),
            "",
            "## Flatness",
            "",
            "Of the committer that was never killed, after the first third, by the median of the"
            " slopes between all pairs of points:",
            "",
            *(f"* {one}" for one in story.trends),
            "",
            "## Faults",
            "",
            *(f"* {at_s:.0f} s: {fault}" for at_s, fault in story.struck),
            "",
            "## Also logged by the committers",
            "",
            "| event, warnings and errors | times |",
            "|---|---|",
            *(f"| `{name}` | {count} |" for name, count in story.events.most_common()),
            "",
            "## Environment",
            "",
            *(f"* {name}: {value}" for name, value in environment.items()),
            "",
        ]
    )


def _exactness(story: Story) -> list[str]:
    found = story.exact.values()
    return [
        "## Exactness",
        "",
        f"{sum(one.requests for one in found):,} requests, of which"
        f" {sum(one.superseded for one in found):,} were replays of epochs that another attempt"
        f" has landed; {sum(one.contents.files for one in found):,} files in"
        f" {story.commits:,} commits; {sum(one.receipts for one in found):,} receipts held against"
        f" the tables. {sum(bool(one.error) for one in story.ends)} publications ended with an"
        " error and were repeated."
        f" {sum(one.backlog is not None for one in story.ends)} were slowed down."
        f" Everything had landed {story.settled_after_s:.1f} s after the end.",
        "",
        f"All {len(story.exact)} tables were read by our reader, and"
        f" {', '.join(f'`{name}`' for name in story.read_by_all)} row for row by PyIceberg and"
        " DuckDB too.",
    ]


def _latencies(story: Story) -> list[str]:
    rows = []
    for what, state in (("durable", "durable"), ("committed", "committed")):
        took_s = [each for _, each in _ends(story, state)]
        numbers = (percentile(took_s, share) for share in (0.5, 0.99, 1.0))
        rows.append(
            f"| {what} | {len(took_s):,} | {' | '.join(f'{each:.3f}' for each in numbers)} |"
        )
    return [
        "## Latency",
        "",
        "From the call of `publish` to its answer, in seconds, faults included:",
        "",
        "| until | requests | p50 | p99 | most |",
        "|---|---|---|---|---|",
        *rows,
    ]


# --- The picture ---------------------------------------------------------------------------------


def draw(story: Story, path: Path) -> None:
    """Draw four panels over time; a line for each fault. Needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(4, 1, figsize=(9, 11), sharex=True, layout="constrained")
    _draw_latency(panels[0], windows(waits(story), _WINDOW_S))
    _draw_samples(panels[1], story.samples, "resident, MiB", lambda one: one.resident_bytes / _MIB)
    _draw_samples(panels[2], story.samples, "file handles", lambda one: float(one.handles))
    _draw_depths(panels[3], story.depths)
    for panel in panels:
        panel.grid(visible=True, alpha=0.3)
        for at_s, _ in story.struck:
            panel.axvline(at_s, color="tab:red", alpha=0.25, linewidth=1)
    panels[0].set_title("red: a fault (see the page)", fontsize=9)
    panels[-1].set_xlabel("seconds")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _draw_latency(panel: Any, found: list[Window]) -> None:
    middles = [window.at_s + _WINDOW_S / 2 for window in found]
    panel.plot(middles, [window.p50_s for window in found], marker=".", label="p50")
    panel.plot(middles, [window.p99_s for window in found], marker=".", label="p99")
    panel.set(ylabel="publish to commit, s", yscale="log")
    panel.legend(fontsize=8)


def _draw_samples(panel: Any, samples: list[Sample], label: str, value: Any) -> None:
    for process in sorted({one.process for one in samples}):
        mine = [one for one in samples if one.process == process]
        times = [one.at_s for one in mine]
        panel.plot(times, [value(one) for one in mine], linewidth=1, label=process)
    panel.set_ylabel(label)
    panel.legend(fontsize=7, ncols=3)


def _draw_depths(panel: Any, depths: list[Depth]) -> None:
    known = [(one.at_s, one.waiting) for one in depths if one.waiting is not None]
    panel.plot([at_s for at_s, _ in known], [waiting for _, waiting in known], linewidth=1)
    panel.set_ylabel("doorbells in the queue")
