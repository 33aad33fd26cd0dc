"""`frazil table`: show tables. `table_create.py` creates one, `table_names.py` names it."""

from __future__ import annotations

from typing import Annotated

import typer

from committer.cli.adoption.add_files import add_files
from committer.cli.context.command_session import read_settings, run_with_parts
from committer.cli.context.common_options import AsJson, list_tables
from committer.cli.context.option_groups import grouped
from committer.cli.output.printing import print_json, print_json_lines, print_table, say
from committer.cli.output.printing import show as show_views
from committer.cli.output.view import Facts
from committer.cli.tables.migrate_command import migrate
from committer.cli.tables.purge_command import purge
from committer.cli.tables.table_accept import accept
from committer.cli.tables.table_create import create
from committer.cli.tables.table_inspect import inspect, print_kind
from committer.cli.tables.table_names import drop, register, rename
from committer.cli.tables.table_orphans import orphans
from committer.cli.tables.table_plan import plan
from committer.cli.tables.table_set import set_
from committer.cli.views.table_source import SnapshotChoice, TablePlace, open_table

app = typer.Typer(
    help="Create, show, name, evolve, branch, roll back, migrate and purge tables.",
    no_args_is_help=True,
)
app.command()(create)
app.command()(register)
app.command()(rename)
app.command()(drop)
app.command()(migrate)
app.command()(purge)
app.command("add-files")(add_files)
app.command("set")(set_)
app.command()(accept)
app.command()(grouped(inspect))
app.command()(grouped(plan))
app.command()(orphans)


@app.command("list")
def list_(
    namespace: Annotated[str | None, typer.Argument(help="A namespace: db.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the tables of a namespace, or of all."""
    found = run_with_parts(lambda parts: list_tables(parts.catalog, namespace))
    if as_json:
        print_json_lines(
            {"table": str(one), "namespace": one.namespace, "name": one.name} for one in found
        )
    elif found:
        print_table(("table",), [(one,) for one in found])
    else:
        say(f"frazil: no table in {read_settings().catalog.all_properties}")


@app.command()
@grouped
def show(place: TablePlace, as_json: AsJson = False) -> None:
    """Show where a table is, how it is partitioned and sorted, and its properties."""
    from committer.cli.views.metadata_view import (
        describe_table,
        ledger_text,
        metadata_facts,
        properties_outside_ledger,
    )

    with open_table(place) as table:
        if as_json:
            print_json(describe_table(table))
            return
        found = table.metadata
        facts = {
            **metadata_facts(found),
            "ledger": ledger_text(table),
            "metadata location": table.metadata_location,
        }
        title = str(table.identifier or table.metadata_location)
        properties = properties_outside_ledger(found)
        show_views([Facts(title, facts), Facts("properties", properties)])


@app.command()
@grouped
def schema(place: TablePlace, as_json: AsJson = False) -> None:
    """Show the current schema; --json prints the specification's JSON form."""
    from committer.cli.views.metadata_view import schema_rows
    from committer.iceberg.schema.schema import print_schema

    with open_table(place) as table:
        current = table.metadata.current_schema
        if as_json:
            print_json(print_schema(current))
        else:
            show_views([schema_rows(current)])


# --- Views of `table inspect` ---------------------------------------------------------------------


@app.command()
@grouped
def snapshots(place: TablePlace, as_json: AsJson = False) -> None:
    """List the snapshots that the table still has, oldest first."""
    print_kind("snapshots", place, as_json=as_json)


@app.command()
@grouped
def history(place: TablePlace, as_json: AsJson = False) -> None:
    """List which snapshot became current when."""
    print_kind("history", place, as_json=as_json)


@app.command()
@grouped
def files(place: TablePlace, choice: SnapshotChoice, as_json: AsJson = False) -> None:
    """List the data and delete files of a snapshot; --json adds the metrics of each."""
    print_kind("files", place, choice, as_json=as_json)
