"""`frazil status`: waiting requests and their age, landed epochs, and the committer's health."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import parse_identifier, read_settings, run_with_requests
from committer.cli.context.common_options import AsJson
from committer.cli.output.printing import print_json, show

if TYPE_CHECKING:
    from committer.cli.output.view import View


def status(
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this table: db.flights.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Ask only the committer at this address: http://host:8181. Needs no settings.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show waiting requests with their age, landed epochs, and the committer's health.

    Asks the committer at service.http_host and service.http_port, and reads inbox, queue,
    quarantine and catalog itself; if no committer answers, it says so and shows the rest. The
    numbers of tables count from the committer's start. Exit code 0: healthy. 1: stderr names each
    condition: a component is degraded, requests wait and no committer answers, the queue, the
    catalog or the inbox does not answer, or there is no catalog yet; the known part is printed all
    the same. Requests in quarantine are shown, but are no condition. A private queue answers while
    `frazil serve` runs.
    """
    found, shown, conditions = _ask_remote(url, table) if url else _ask_here(table)
    if as_json:
        print_json({**found, "conditions": conditions})
    else:
        show(shown)
    if conditions:
        for component, why in conditions.items():
            typer.echo(f"frazil: {component}: {why}", err=True)
        raise typer.Exit(1)


_Found = tuple[dict[str, object], "list[View]", dict[str, str]]


def _ask_remote(url: str, table: str | None) -> _Found:
    from committer.cli.committers import committer_status

    answer = committer_status.ask_committer(url)
    found: dict[str, object] = {"committer": committer_status.describe_answer(answer, table)}
    return (
        found,
        committer_status.answer_views(answer, table),
        committer_status.conditions_of(answer, None),
    )


def _ask_here(table: str | None) -> _Found:
    from committer.cli.committers import committer_status
    from committer.cli.committers.status_report import collect, describe, views

    wanted = parse_identifier(table) if table else None
    answer = committer_status.ask_own_committer(read_settings())
    report = run_with_requests(lambda parts: collect(parts, wanted))
    if answer is None:
        return {"committer": None, **describe(report)}, views(report, {}), report.conditions
    facts = committer_status.committer_facts(answer, report.quarantined)
    return (
        {"committer": committer_status.describe_answer(answer, table), **describe(report)},
        [*views(report, facts), *committer_status.table_views(answer, table)],
        {**report.conditions, **committer_status.conditions_of(answer, report.total.requests)},
    )
