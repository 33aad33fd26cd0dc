"""The `frazil` command line and its list of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from committer.cli import audit, demo, key
from committer.cli.catalogs import catalog_commands, namespace_commands
from committer.cli.changes import refs
from committer.cli.changes.branch_moves import cherry_pick, fast_forward, publish, rollback
from committer.cli.changes.evolve import evolve
from committer.cli.committers import serve, status
from committer.cli.context.command_session import CatalogName, chosen_catalog
from committer.cli.producers import producer, quarantine
from committer.cli.tables import table
from committer.cli.views import inspect

app = typer.Typer(
    name="frazil",
    help="Many writers, one Apache Iceberg table, one commit.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"frazil {version('frazil')}")
        raise typer.Exit


@app.callback()
def _frazil(
    catalog: CatalogName = None,
    version: Annotated[  # noqa: ARG001  # its callback has printed it
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say which it is."),
    ] = False,
) -> None:
    """Many writers, one Apache Iceberg table, one commit.

    Settings come from FRAZIL_… variables and from the file that FRAZIL_CONFIG names; without any,
    everything is below ~/.frazil. Exit code 1: what was asked for failed or is not there; 2: wrong
    usage or settings, a missing extra, or no permission.
    """
    chosen_catalog.set(catalog)


app.command()(serve.serve)
app.command()(demo.demo)
app.command()(status.status)
app.command()(audit.audit)
app.command()(inspect.inspect)
table.app.command()(evolve)
table.app.add_typer(refs.branches, name="branch")
table.app.add_typer(refs.tags, name="tag")
table.app.command()(fast_forward)
table.app.command()(rollback)
table.app.command()(publish)
table.app.command()(cherry_pick)
app.add_typer(table.app, name="table")
app.add_typer(namespace_commands.app, name="namespace")
app.add_typer(catalog_commands.app, name="catalog")
app.add_typer(quarantine.app, name="quarantine")
app.add_typer(key.app, name="key")
app.add_typer(producer.app, name="producer")
