"""`frazil status`: what waits, since when, and what has landed."""

from __future__ import annotations

from typing import Annotated

import typer

from committer.cli.options import AsJson


def status(
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this table: db.flights.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what waits, since when, and which epochs of which producers have landed.

    Exit code 1 if the queue, the catalog or the inbox did not answer; what is known is printed all
    the same. A private queue answers while `frazil serve` runs.
    """
    from committer.cli.printing import print_json, show
    from committer.cli.session import parse_identifier, run_with_requests
    from committer.cli.status_report import collect, describe, views

    wanted = parse_identifier(table) if table else None
    report = run_with_requests(lambda parts: collect(parts, wanted))
    if as_json:
        print_json(describe(report))
    else:
        show(views(report))
    if report.troubles:
        for component, why in report.troubles.items():
            typer.echo(f"frazil: {component}: {why}", err=True)
        raise typer.Exit(1)
