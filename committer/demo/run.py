"""One run of the demo, from an empty folder to the verdict. Its display is in `demo_view.py`."""

from __future__ import annotations

import asyncio

import pyarrow as pa
from rich.console import Console

from committer.demo import demo_view
from committer.demo.act import until_ready, watch_to_the_end
from committer.demo.demo_options import DemoOptions
from committer.demo.demo_readers import (
    TableReport,
    read_by_duckdb,
    read_by_pyiceberg,
    sums_by_carrier,
)
from committer.demo.demo_stack import DemoStack, open_stack
from committer.demo.demo_table import TABLE, create_table, flights_table, latest_table
from committer.demo.demo_verdict import Reading, differences, disagreements
from committer.demo.hints import hints
from committer.demo.programs.interruption import Interruption, run_until_signal
from committer.demo.programs.watch import Watch
from committer.demo.second_act import run_second_act
from committer.demo.writers.flight_replay import plan_input, write_input
from committer.demo.writers.flights import PARTITIONED_BY, read_flights


def run_demo(options: DemoOptions) -> int:
    """Run the demo. Return the exit code: 0 if all readers found what was put in, 130 after Ctrl-C.

    Errors: `FrazilError` if a part is missing or has failed.
    """
    console = demo_view.open_console()
    try:
        return run_until_signal(_run(options, console))
    except Interruption as interruption:
        demo_view.line(console, f"stopped; what there is lies in {options.home}")
        return interruption.exit_code


async def _run(options: DemoOptions, console: Console) -> int:
    demo_view.show_title(console, options)
    async with open_stack(options) as stack:
        try:
            flights, report, passed = await _first_act(stack, console)
            if passed and options.upsert:
                passed = await run_second_act(stack, flights, console)
        except asyncio.CancelledError:
            demo_view.line(console, "\nstopping …")
            raise
    if passed:
        demo_view.show_hints(console, hints(options, report))
    return 0 if passed else 1


async def _first_act(stack: DemoStack, console: Console) -> tuple[pa.Table, TableReport, bool]:
    """Run the appends. Return the flights, the report of a reader, and whether both readers found
    what was put in."""
    clock = asyncio.get_running_loop().time
    started_s = clock()
    flights = await _prepare(stack, console)
    await _replay(stack, console)
    written_s = clock()
    report, by_duckdb = await asyncio.to_thread(_read_back, stack)
    passed = _show_verdict(flights, report, by_duckdb, console)
    demo_view.fact(console, "warehouse", report.location)
    took = f"{written_s - started_s:.0f} s, and {clock() - written_s:.0f} s to read it back"
    demo_view.fact(console, "took", took)
    return flights, report, passed


async def _prepare(stack: DemoStack, console: Console) -> pa.Table:
    """Prepare the input as files, and an empty table."""
    options = stack.options
    if options.catalog is not None:
        shown = f"`{options.catalog.name}` ({options.catalog.shown_uri})"
        demo_view.fact(console, "catalog", shown)
    flights = await asyncio.to_thread(read_flights, options.rows)
    files = plan_input(options.rows, options.streams, options.batches)
    await asyncio.to_thread(write_input, flights, files, stack.input_folder)
    demo_view.fact(
        console,
        "input",
        f"{options.rows:,} flights in {len(files)} Parquet files for {options.streams} streams",
    )
    for shape in (flights_table(), *((latest_table(),) if options.upsert else ())):
        await create_table(stack.settings, shape)
    demo_view.fact(console, "table", f"{TABLE}, Iceberg v2, partitioned by {PARTITIONED_BY}")
    return flights


async def _replay(stack: DemoStack, console: Console) -> None:
    """Start everything, and watch until all that was published is committed."""
    options = stack.options
    committer = await stack.start_committer()
    watch = Watch(committer, options.rows)
    await until_ready(watch)
    demo_view.fact(console, "committer", f"process {committer.process.pid} is ready")
    applications = await stack.start_applications()
    view = demo_view.ProgressView(console, options.applications)
    await watch_to_the_end(watch, applications, view, console)


def _read_back(stack: DemoStack) -> tuple[TableReport, Reading]:
    report = read_by_pyiceberg(stack.settings.catalog.all_properties, str(TABLE))
    return report, read_by_duckdb(report.metadata_location)


def _show_verdict(
    flights: pa.Table, report: TableReport, by_duckdb: Reading, console: Console
) -> bool:
    expected = sums_by_carrier(flights)
    readings = (report.reading, by_duckdb)
    found = [
        *(text for reading in readings for text in differences(expected, reading)),
        *disagreements(*readings),
    ]
    demo_view.show_snapshots(console, report.snapshots)
    demo_view.show_sums(console, expected, readings)
    demo_view.show_verdict(console, found)
    return not found
