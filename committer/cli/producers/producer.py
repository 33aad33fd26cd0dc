"""`frazil producer`: the writers that a table's ledger knows, and what an operator decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import (
    checked_branch,
    checked_producer,
    parse_identifier,
    run_with_parts,
)
from committer.cli.context.common_options import AsJson, TableArgument, Yes
from committer.cli.context.operator_audit import ReasonOption
from committer.cli.context.option_groups import grouped
from committer.cli.output.printing import confirm, print_json, print_json_lines, print_table, say
from committer.cli.output.printing import show as show_views

if TYPE_CHECKING:
    from committer.cli.producers.producer_report import Found
    from committer.plan.ledger.producer_decisions import ProducerName
    from committer.request.table_identifier import TableIdentifier
    from committer.service.process.composition import Parts

app = typer.Typer(
    help="Show, freeze, thaw or remove the producers of a table.",
    no_args_is_help=True,
)


@dataclass(frozen=True, slots=True)
class ProducerPlace:
    """The options that name a producer of a table."""

    table: TableArgument
    producer: Annotated[str, typer.Argument(help="The producer's id.")]
    branch: Annotated[str, typer.Option("--branch", help="On this branch.")] = "main"

    @property
    def identifier(self) -> TableIdentifier:
        return parse_identifier(self.table)

    @property
    def name(self) -> ProducerName:
        from committer.plan.ledger.producer_decisions import ProducerName

        return ProducerName(self.producer, self.branch)


@dataclass(frozen=True, slots=True)
class NewProducerPlace(ProducerPlace):
    """The same, of a producer that the table may not know: one that a request can name."""

    producer: Annotated[str, typer.Argument(callback=checked_producer, help="The producer's id.")]
    branch: Annotated[
        str, typer.Option("--branch", callback=checked_branch, help="On this branch.")
    ] = "main"


@app.command("list")
def list_(
    table: TableArgument,
    branch: Annotated[str | None, typer.Option("--branch", help="Of this branch alone.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the producers that the table's ledger knows."""
    from committer.cli.producers.producer_report import describe, list_producers

    identifier = parse_identifier(table)
    found = run_with_parts(lambda parts: list_producers(parts, identifier, branch))
    if as_json:
        print_json_lines(describe(identifier, one) for one in found)
        return
    print_table(
        ("producer", "query", "branch", "state", "last epoch", "epochs", "accepted"),
        [
            (
                one.name.producer,
                one.entry.name if one.entry else None,
                one.name.branch,
                one.state,
                one.entry.epochs.highest if one.entry else None,
                one.entry.epochs if one.entry else None,
                len(one.entry.accepted) if one.entry else None,
            )
            for one in found
        ],
    )


@app.command()
@grouped
def show(place: ProducerPlace, as_json: AsJson = False) -> None:
    """Show the landed epochs of a producer, whether it is frozen and why,
    and the epochs that a rollback lost.

    Counts what of it waits in the inbox and in quarantine.
    """
    _print(_find(place), as_json)


@app.command()
@grouped
def freeze(
    place: NewProducerPlace,
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            metavar="TEXT",
            help="For those who find its requests in quarantine; also in the audit.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Freeze a producer: its requests go to quarantine.

    The freeze is in the table's ledger: every committer obeys from its next commit on. The table
    need not know the producer yet.
    """
    from committer.cli.producers.producer_report import operator, recorded_on_producer

    said = f"an operator froze the producer{f': {reason}' if reason else ''}"
    identifier = place.identifier

    async def work(parts: Parts) -> None:
        async with recorded_on_producer(parts, "producer freeze", identifier, place.name, reason):
            await operator(parts).freeze(identifier, place.name, said)

    run_with_parts(work)
    _print(_find(place), as_json)


@app.command()
@grouped
def thaw(
    place: ProducerPlace,
    skip_lost: Annotated[
        bool, typer.Option("--skip-lost", help="After a rollback: lost epochs never land.")
    ] = False,
    redo_lost: Annotated[
        bool, typer.Option("--redo-lost", help="After a rollback: lost epochs may land again.")
    ] = False,
    epochs: Annotated[
        str | None,
        typer.Option(help="With --redo-lost, only these epochs: 40-42,44.", metavar="RANGES"),
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
    reason: ReasonOption = None,
) -> None:
    """Thaw a frozen producer.

    After a rollback, choose what happens to the lost epochs: they still count as landed and their
    rows stay out of the table (--skip-lost), or each may land once more when it is published or
    replayed (--redo-lost). Requests quarantined in the meantime stay there until they are replayed.
    """
    from committer.cli.producers.producer_report import (
        choose_epochs,
        operator,
        recorded_on_producer,
        require_lost,
        what_follows,
    )

    if skip_lost and redo_lost:
        raise typer.BadParameter("expected --skip-lost or --redo-lost, not both")
    found = _find(place)
    if found.is_active:
        say(f"`{place.producer}` is not frozen")
        _print(found, as_json)
        return
    chosen = choose_epochs(found, skip=skip_lost, redo=redo_lost, epochs=epochs)
    run_with_parts(lambda parts: require_lost(parts, place.identifier, place.name, chosen))
    if follows := what_follows(found, chosen):
        say(follows)
    confirm("Thaw?", needed=found.is_rolled_back and not yes)

    async def work(parts: Parts) -> None:
        table, name = place.identifier, place.name
        async with recorded_on_producer(parts, "producer thaw", table, name, reason):
            await operator(parts).thaw(table, name, chosen)

    run_with_parts(work)
    _print(_find(place), as_json)


@app.command()
@grouped
def forget(place: ProducerPlace, yes: Yes = False, reason: ReasonOption = None) -> None:
    """Remove a producer that will never publish again from the ledger.

    Its landed rows stay. Refused while a request of it waits or is in quarantine.
    """
    from committer.cli.producers.producer_report import operator, recorded_on_producer

    found = _find(place)
    entry = found.standing.entry
    landed = f"epochs {entry.epochs}" if entry and entry.epochs.ranges else "no epoch that is known"
    said = (
        f"The ledger forgets that {landed} of `{place.producer}` have landed. Should it publish"
        " one of them again, its rows are added a second time: stop it before."
    )
    say(said)
    confirm("Forget?", needed=not yes)

    async def work(parts: Parts) -> None:
        table, name = place.identifier, place.name
        async with recorded_on_producer(parts, "producer forget", table, name, reason):
            await operator(parts).forget(table, name)

    run_with_parts(work)
    say(f"forgot `{place.producer}` of {place.identifier}")


def _find(place: ProducerPlace) -> Found:
    from committer.cli.producers.producer_report import find

    identifier = place.identifier
    return run_with_parts(lambda parts: find(parts, identifier, place.name))


def _print(found: Found, as_json: bool) -> None:
    if as_json:
        print_json(found.describe())
    else:
        show_views([found.view()])
