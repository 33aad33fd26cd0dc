"""`frazil status`: the health of all committers, waiting requests, and landed epochs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import parse_identifier, read_settings, run_with_requests
from committer.cli.context.common_options import AsJson
from committer.cli.output.printing import counted, print_json, show
from committer.cli.output.view import Facts, View

if TYPE_CHECKING:
    from committer.cli.committers.cluster_status import Replica


def status(
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this table: db.flights.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Ask the committer at this address, http://host:8181, and those that it shares"
            " the shards with. Needs no settings.",
        ),
    ] = None,
    brief: Annotated[
        bool, typer.Option("--brief", help="Only the health of all parts: loads no table.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the health of all committers, waiting requests with their age, and landed epochs.

    Conditions come first, on stderr. Asks the committer at service.http_host and
    service.http_port, and each committer that the queue's leases name, at its status URL; reads
    inbox, queue, quarantine and catalog itself. What does not answer is said to, and the rest is
    shown. The numbers of tables count from the committer's start. Exit code 0: healthy. 1: stderr
    names each condition: a component of a committer is degraded, a committer that has a lease does
    not answer, requests wait and no committer answers, the queue, the catalog or the inbox does not
    answer, or there is no catalog yet. Requests in quarantine are shown, but are no condition. A
    private queue answers while `frazil serve` runs.
    """
    found = _ask_remote(url, table) if url else _ask_here(table, brief)
    for component, why in found.conditions.items():
        typer.echo(f"frazil: {component}: {why}", err=True)
    if as_json:
        print_json({"conditions": found.conditions, **found.description})
    else:
        show(found.brief() if brief else found.views)
    if found.conditions:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class _Found:
    """The state of all parts. `summary`: the facts that are shown in brief."""

    description: dict[str, object]
    conditions: dict[str, str]
    views: list[View]
    summary: dict[str, object]
    replicas: list[Replica]

    def brief(self) -> list[View]:
        from committer.cli.committers.cluster_status import replica_view

        health = counted(len(self.conditions), "condition") if self.conditions else "healthy"
        facts = Facts("status", {"health": health, **self.summary})
        return [facts, replica_view(self.replicas)] if self.replicas else [facts]


def _ask_remote(url: str, table: str | None) -> _Found:
    from committer.cli.committers import committer_status
    from committer.cli.committers.cluster_status import ask_replicas

    answer = committer_status.ask_committer(url)
    return _with_replicas(
        _Found(
            {"committer": committer_status.describe_answer(answer, table)},
            committer_status.conditions_of(answer, None),
            committer_status.answer_views(answer, table),
            committer_status.answer_facts(answer),
            ask_replicas(answer.members, answer),
        )
    )


def _ask_here(table: str | None, is_brief: bool) -> _Found:
    from committer.cli.committers import committer_status
    from committer.cli.committers.cluster_status import ask_replicas
    from committer.cli.committers.status_report import brief_facts, collect, describe, views

    wanted = parse_identifier(table) if table else None
    answer = committer_status.ask_own_committer(read_settings())
    report = run_with_requests(lambda parts: collect(parts, wanted, is_brief=is_brief))
    # Without an answer of the queue, as the committer saw them last.
    replicas = ask_replicas(report.members or (answer.members if answer else []), answer)
    described, facts, own, tables = None, dict[str, object](), dict[str, str](), list[View]()
    if answer is not None:
        described = committer_status.describe_answer(answer, table)
        facts = committer_status.committer_facts(answer, report.quarantined)
        tables = committer_status.table_views(answer, table)
    others_answer = any(one.answer and one.answer.status for one in replicas)
    # A machine may run none, while others do.
    if answer is not None and (answer.status is not None or not others_answer):
        own = committer_status.conditions_of(answer, report.total.requests)
    return _with_replicas(
        _Found(
            {"committer": described, **describe(report)},
            {**report.conditions, **own},
            [*views(report, facts), *tables],
            {**({"committer": facts["committer"]} if facts else {}), **brief_facts(report)},
            replicas,
        )
    )


def _with_replicas(found: _Found) -> _Found:
    """Add what the other committers say; without leases, nothing."""
    from committer.cli.committers.cluster_status import describe_replicas, replica_view

    conditions = dict(found.conditions)
    for replica in found.replicas:
        conditions |= replica.conditions
    if not found.replicas:
        return found
    return replace(
        found,
        description={**found.description, "replicas": describe_replicas(found.replicas)},
        conditions=conditions,
        views=[replica_view(found.replicas), *found.views],
    )
