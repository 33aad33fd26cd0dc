"""The second act: four streams of changes, a merge and a compaction on one table, and its verdict.

The streams upsert what becomes known of flights, each by keys of its own. Beside them another
application loads some flights, merges corrections of them, and compacts the table.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pyarrow as pa
from rich.console import Console

from committer.demo import demo_view
from committer.demo.act import until_ready, watch_to_the_end
from committer.demo.demo_readers import sums_by_carrier
from committer.demo.demo_stack import DemoStack
from committer.demo.demo_table import LATEST
from committer.demo.demo_verdict import differences, disagreements
from committer.demo.latest_readers import (
    LatestReport,
    read_latest_by_duckdb,
    read_latest_by_frazil,
    row_differences,
)
from committer.demo.programs.watch import Watch
from committer.demo.writers.flight_changes import (
    ChangeInput,
    latest_rows,
    plan_changes,
    write_changes,
)

# DuckDB's time grows with the rows times the deletes: a quarter of the flights took it 36 s of CPU.
_PART_OF_FLIGHTS = 8
_MICRO_BATCHES_MIN = 6
_VERDICT = "every flight is as its last change left it, say both readers"


async def run_second_act(stack: DemoStack, flights: pa.Table, console: Console) -> bool:
    """Run the act on a part of the flights. Return whether both readers found what was put in."""
    clock = asyncio.get_running_loop().time
    started_s = clock()
    demo_view.show_act(console, "second act: upserts, a merge and a compaction at the same time")
    changes = await _prepare(stack, flights, console)
    await _replay(stack, changes, console)
    written_s = clock()
    passed = await asyncio.to_thread(_verdict, changes, console)
    took = f"{written_s - started_s:.0f} s, and {clock() - written_s:.0f} s to read it back"
    demo_view.fact(console, "took", took)
    return passed


async def _prepare(stack: DemoStack, flights: pa.Table, console: Console) -> ChangeInput:
    options = stack.options
    part = flights.slice(0, max(1, options.rows // _PART_OF_FLIGHTS))
    batches = max(_MICRO_BATCHES_MIN, options.batches)
    changes = await asyncio.to_thread(plan_changes, part, options.streams, batches)
    await asyncio.to_thread(write_changes, changes, stack.changes_folder)
    demo_view.fact(
        console,
        "changes",
        f"{changes.streamed_rows:,} of {changes.first_correction:,} flights in"
        f" {changes.micro_batches} Parquet files for {options.streams} streams",
    )
    others = part.num_rows - changes.first_correction
    demo_view.fact(console, "batch", f"beside them corrections of {others:,} other flights")
    demo_view.fact(console, "table", f"{LATEST}, Iceberg v2, one row for each id")
    return changes


async def _replay(stack: DemoStack, changes: ChangeInput, console: Console) -> None:
    watch = Watch(await stack.start_committer("committer-2"), changes.streamed_rows)
    await until_ready(watch)
    applications = await stack.start_changes(changes)
    view = demo_view.ChangesView(console, len(applications), changes.micro_batches)
    await watch_to_the_end(watch, applications, view, console)


def _verdict(changes: ChangeInput, console: Console) -> bool:
    """Compare sums, rows and files of both readers with what the changes themselves say."""
    report = read_latest_by_frazil(str(LATEST))
    duckdb = read_latest_by_duckdb(report.metadata_location)
    rows = latest_rows(changes.all_changes)
    expected = sums_by_carrier(rows)
    found = [
        text
        for each in (report.read, duckdb)
        for text in (*row_differences(each, rows), *differences(expected, each.reading))
    ]
    found += disagreements(report.read.reading, duckdb.reading)
    demo_view.fact(console, "snapshots", _snapshots(report))
    demo_view.show_sums(console, expected, (report.read.reading, duckdb.reading))
    demo_view.show_verdict(console, found, words=_VERDICT)
    return not found


def _snapshots(report: LatestReport) -> str:
    """Say what snapshots there are, and how many came after the compaction."""
    counts = Counter(report.operations)
    shown = ", ".join(f"{count} `{operation}`" for operation, count in sorted(counts.items()))
    if "replace" not in counts:
        return shown
    later = len(report.operations) - 1 - report.operations.index("replace")
    return f"{shown}; {later} after the compaction"
