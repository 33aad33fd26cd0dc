"""The demo's display: live on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from committer.demo.demo_options import DemoOptions
from committer.demo.demo_readers import SnapshotRow
from committer.demo.demo_verdict import Carriers, Reading, total
from committer.demo.programs.progress import Progress, percentile

_LINE_S = 5.0
_BAR_WIDTH_MAX = 28
# Beside the bars: names, numbers and their gaps, at their usual lengths.
_BESIDE_BARS_WIDTH = 66
_PIPE_WIDTH = 120
_SNAPSHOTS_MAX = 8
_DIFFERENCES_MAX = 20


def open_console() -> Console:
    """Open standard output. Into a pipe no line is broken."""
    console = Console(highlight=False)
    if console.is_terminal:
        return console
    return Console(highlight=False, width=_PIPE_WIDTH, color_system=None)


def line(console: Console, text: str) -> None:
    """Print some words, as long as they are."""
    console.print(Text(text), soft_wrap=True)


def fact(console: Console, name: str, text: str) -> None:
    """Print one fact of a run."""
    console.print(Text.assemble((f"  {name:<12}", "bold"), text), soft_wrap=True)


def show_act(console: Console, title: str) -> None:
    """Begin another part of the run."""
    console.print()
    console.print(Text(f"  {title}", style="bold"))
    console.print()


def show_title(console: Console, options: DemoOptions) -> None:
    console.print(
        Text.assemble(
            ("frazil demo", "bold"),
            f"  {options.streams} Spark streams, {options.applications} applications, one table",
        )
    )
    console.print()
    fact(console, "folder", str(options.home))


def show_applications(console: Console, pids: Sequence[int]) -> None:
    processes = ", ".join(map(str, pids))
    fact(console, "Spark", f"starting {len(pids)} applications (processes {processes})")
    console.print()


# A name, what is done of how much, and both in words.
Measure = tuple[str, int, int, str, str]


class ProgressView:
    """Shows a `Progress`, as often as `update` is called; use it as a context."""

    def __init__(self, console: Console, applications: int) -> None:
        self._console = console
        self._applications = applications
        self._line_s = 0.0
        # A dumb terminal cannot rewrite what it shows: it gets lines, as a pipe does.
        rewrites = console.is_terminal and not console.is_dumb_terminal
        self._live = Live(console=console, auto_refresh=False) if rewrites else None
        self._bar_width = max(4, min(_BAR_WIDTH_MAX, console.width - _BESIDE_BARS_WIDTH))

    def __enter__(self) -> ProgressView:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def update(self, progress: Progress, elapsed_s: float, *, last: bool = False) -> None:
        if self._live:
            self._live.update(self._picture(progress, elapsed_s), refresh=True)
        elif last or elapsed_s >= self._line_s:
            self._line_s = elapsed_s + _LINE_S
            self._console.print(Text(self._line(progress, elapsed_s)), soft_wrap=True)

    def _picture(self, progress: Progress, elapsed_s: float) -> Group:
        bars = Table.grid(padding=(0, 2))
        bars.add_column(min_width=11, style="bold", no_wrap=True)
        bars.add_column()
        bars.add_column(justify="right", min_width=12, no_wrap=True)
        bars.add_column(no_wrap=True)
        for name, done, of, amount, words in self._measures(progress):
            bars.add_row(f"  {name}", self._bar(done, of), amount, words)
        words = self._starting(progress) or (
            f"latency {_latency(progress)}; conflicts seen by writers: {_conflicts(progress)}"
        )
        return Group(bars, Text.assemble((f"  {elapsed_s:>6.0f} s    ", "bold"), words))

    def _measures(self, progress: Progress) -> Sequence[Measure]:
        expected = progress.rows_expected
        published, committed = progress.rows_published, progress.rows_committed
        batches = _counted(progress.batches_published, "micro-batch")
        return (
            ("published", published, expected, _rows(published), batches),
            ("committed", committed, expected, _rows(committed), _commits(progress)),
        )

    def _counts(self, progress: Progress) -> str:
        return (
            f"published {progress.rows_published:,} rows in"
            f" {_counted(progress.batches_published, 'micro-batch')}; committed"
            f" {progress.rows_committed:,} rows in {_commits(progress)}"
        )

    def _bar(self, done: int, of: int) -> ProgressBar:
        return ProgressBar(
            total=of,
            completed=done,
            width=self._bar_width,
            complete_style="cyan",
            finished_style="green",
        )

    def _starting(self, progress: Progress) -> str | None:
        """Describe the start, until there is something to count:
        a Spark takes longer to start than to write."""
        if progress.batches_published:
            return None
        up = progress.applications_started
        if up < self._applications:
            return f"Spark is starting: {up} of {self._applications} applications are up"
        return "Spark is up; the first micro-batches are on their way"

    def _line(self, progress: Progress, elapsed_s: float) -> str:
        words = self._starting(progress) or (
            f"{self._counts(progress)};"
            f" latency {_latency(progress)}; conflicts seen by writers: {_conflicts(progress)}"
        )
        return f"  {elapsed_s:>5.0f} s  {words}"


class ChangesView(ProgressView):
    """Shows the second act. A change that is deleted later is no row, so micro-batches count."""

    def __init__(self, console: Console, applications: int, micro_batches: int) -> None:
        super().__init__(console, applications)
        self._micro_batches = micro_batches
        self._changes_shown = 0

    def update(self, progress: Progress, elapsed_s: float, *, last: bool = False) -> None:
        for change in progress.changes[self._changes_shown :]:
            fact(self._console, change.change, f"{change.words}, after {elapsed_s:.0f} s")
        self._changes_shown = len(progress.changes)
        super().update(progress, elapsed_s, last=last)

    def _measures(self, progress: Progress) -> Sequence[Measure]:
        published, of = progress.batches_reported, self._micro_batches
        landed = progress.batches_committed
        batches = _counted(published, "micro-batch")
        return (
            ("published", published, of, _rows(progress.rows_reported), batches),
            ("committed", landed, of, f"{landed} requests", _counted(progress.commits, "commit")),
        )

    def _counts(self, progress: Progress) -> str:
        return (
            f"published {progress.rows_reported:,} changes in"
            f" {progress.batches_reported} of {self._micro_batches} micro-batches;"
            f" committed {_counted(progress.batches_committed, 'request')} in"
            f" {_counted(progress.commits, 'commit')}"
        )


def _rows(rows: int) -> str:
    return f"{rows:,} rows"


def _commits(progress: Progress) -> str:
    return (
        f"{_counted(progress.commits, 'commit')} of {progress.batches_per_commit:.1f} micro-batches"
    )


def _counted(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith('ch') else 's'}"


def _latency(progress: Progress) -> str:
    median, worst = (percentile(progress.latencies_s, percent) for percent in (50, 99))
    return "–" if median is None or worst is None else f"p50 {median:.2f} s, p99 {worst:.2f} s"


def _conflicts(progress: Progress) -> int:
    """Count conflicts: a writer meets one as an error of its query, and in no other way."""
    return len(progress.writer_errors)


# --- After the run ---


def show_sums(console: Console, expected: Carriers, readings: Sequence[Reading]) -> None:
    """Show the input beside what each reader found."""
    console.print()
    sums = [total(expected), *(total(reading.carriers) for reading in readings)]
    table = _table("read by others", "input", *(reading.reader for reading in readings))
    table.add_row("rows", *(f"{one.flights:,}" for one in sums))
    table.add_row("sum of distance", *(f"{one.distance:,}" for one in sums))
    table.add_row("sum of arr_delay", *(f"{one.arr_delay:,}" for one in sums))
    equal = (_equal_carriers(expected, reading.carriers) for reading in readings)
    table.add_row("carriers with equal sums", str(len(expected)), *map(str, equal))
    table.add_row("data files", "", *(f"{len(reading.paths):,}" for reading in readings))
    table.add_row("paths named twice", "", *(str(len(one.duplicate_paths)) for one in readings))
    console.print(table)


def show_verdict(
    console: Console,
    found: Sequence[str],
    *,
    words: str = "every flight is in the table exactly once, say both readers",
) -> None:
    """Print what differs, or by `words` that nothing does."""
    console.print()
    if not found:
        console.print(Text.assemble("  ", ("✔ ", "bold green"), (words, "bold")))
        console.print()
        return
    console.print(Text.assemble("  ", ("✘ ", "bold red"), ("the table is not the input", "bold")))
    for text in found[:_DIFFERENCES_MAX]:
        line(console, f"    {text}")
    if len(found) > _DIFFERENCES_MAX:
        line(console, f"    and {len(found) - _DIFFERENCES_MAX} more")
    console.print()


def show_hints(console: Console, commands: Sequence[str]) -> None:
    console.print()
    console.print(Text("  look around", style="bold"))
    for command in commands:
        line(console, f"    {command}")


def _equal_carriers(expected: Carriers, found: Carriers) -> int:
    return sum(found.get(carrier) == sums for carrier, sums in expected.items())


def show_snapshots(console: Console, snapshots: Sequence[SnapshotRow]) -> None:
    """Show the last snapshots, newest first."""
    console.print()
    line(console, f"the last of {len(snapshots)} snapshots")
    table = _table("at (UTC)", "snapshot id", "batches", "files", "rows", "rows in all")
    for one in reversed(snapshots[-_SNAPSHOTS_MAX:]):
        table.add_row(
            _time(one.timestamp_ms),
            str(one.snapshot_id),
            *(f"{number:,}" for number in (one.requests, one.files, one.rows, one.total_rows)),
        )
    console.print(table)


def _time(timestamp_ms: int) -> str:
    return f"{datetime.fromtimestamp(timestamp_ms / 1000, UTC):%H:%M:%S.%f}"[:-3]


def _table(*headers: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 2))
    for number, header in enumerate(headers):
        justify: Literal["left", "right"] = "right" if number else "left"
        table.add_column(header, justify=justify, header_style="bold", no_wrap=True)
    return table
