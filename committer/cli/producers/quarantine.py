"""`frazil quarantine`: show requests that could not land, and replay or discard them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import read_settings, run_with_parts, run_with_requests
from committer.cli.context.common_options import AsJson, Yes
from committer.cli.context.option_groups import grouped
from committer.cli.output.printing import (
    confirm,
    counted,
    print_json_lines,
    print_table,
    say,
    time_text,
)
from committer.cli.output.printing import show as show_views
from committer.cli.output.view import Facts
from committer.cli.producers.quarantine_filters import AuditReason, Filters, ListFilters

if TYPE_CHECKING:
    from committer.cli.producers.quarantine_selection import Replayed
    from committer.service.process.composition import RequestParts

app = typer.Typer(
    help="Show, replay or discard requests that could not land.", no_args_is_help=True
)

_FILES_SHOWN_MAX = 20

KeyArgument = Annotated[
    str, typer.Argument(help="The key, or enough of its start, end or attempt.")
]
KeysArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Keys, or enough of their start, end or attempt."),
]
All = Annotated[bool, typer.Option("--all", help="All that the filters accept.")]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Let them land although the epoch has landed or the producer is frozen."
    ),
]


@app.command("list")
@grouped
def list_(
    filters: ListFilters,
    answers: Annotated[
        bool,
        typer.Option(
            "--answers",
            help="List instead the answers to refused requests that are not kept.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List what is in quarantine, and why."""
    from committer.cli.producers.quarantine_selection import find_all

    found = run_with_requests(lambda parts: find_all(parts, filters, answers=answers))
    if as_json:
        print_json_lines(one.describe() for one in found)
        return
    if not found:
        say(f"frazil: nothing in quarantine of {read_settings().inbox} that is asked for")
        return
    print_table(
        ("attempt", "table", "producer", "epoch", "reason", "quarantined"),
        [
            (
                one.key.rpartition("/")[2][:8],
                one.record.table or one.table_uuid,
                one.producer,
                one.parsed_key.epoch if one.parsed_key else None,
                one.record.reason,
                time_text(one.record.quarantined_at_ms),
            )
            for one in found
        ],
    )


@app.command()
def show(key: KeyArgument, as_json: AsJson = False) -> None:
    """Show why a request is in quarantine, what to do about it, and what it holds.

    Lists the first 20 of its files; --json lists all.
    """
    from committer.cli.producers.quarantine_selection import explanation, find_keys
    from committer.cli.views.file_report import inspect_content, shortened, without_details

    async def work(parts: RequestParts) -> bytes:
        (found,) = await find_keys(parts, [key])
        return await parts.own_storage.get(parts.quarantine.location(found))

    found = inspect_content(run_with_requests(work))
    line = found.lines[0]
    explained = explanation(str(line.get("reason")), is_answer=line.get("is_told_only") is True)
    if as_json:
        print_json_lines([{**line, **explained}, *found.lines[1:]])
        return
    record, *rest = shortened(without_details(found.views), _FILES_SHOWN_MAX)
    if isinstance(record, Facts):
        said = {"what is wrong": explained["meaning"], "what to do": explained["advice"]}
        record = Facts(record.title, {**record.facts, **said})
    show_views([record, *rest])


@app.command()
@grouped
def replay(
    keys: KeysArgument = None,
    every: All = False,
    *,
    filters: Filters,
    force: Force = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --force: do not ask.")] = False,
    reason: AuditReason = None,
) -> None:
    """Return requests to the inbox, to be checked again. Prints their keys.

    A request whose data files are missing stays. A crash loses nothing: replay again what is still
    listed. Exit code 1 if one cannot be replayed.

    --force lets them land although the ledger refuses them, for the reasons epoch_content_differs,
    epoch_landed_unproven and producer_frozen only. Each lands once, in addition to the epoch that
    has landed; a frozen producer stays frozen. Asks only about those that can land, and names the
    reason for the others.
    """
    from committer.cli.producers.quarantine_selection import replay_all

    if force:
        _force(keys, every, filters, yes=yes, reason=reason)
        return

    async def work(parts: RequestParts) -> list[Replayed]:
        return await replay_all(parts, await _choose(parts, keys, every, filters), reason)

    _print_outcomes(run_with_requests(work))


def _force(
    keys: list[str] | None, every: bool, filters: Filters, *, yes: bool, reason: str | None
) -> None:
    from committer.cli.producers.quarantine_selection import accept, refusals

    named = run_with_requests(lambda parts: _choose(parts, keys, every, filters))
    refused = run_with_parts(lambda parts: refusals(parts, named)) if named else {}
    _print_refused(refused)
    chosen = [key for key in named if key not in refused]
    if not chosen:
        raise typer.Exit(1 if refused else 0)
    say("\n".join(chosen))
    say(
        f"This adds the rows of {counted(len(chosen), 'request')}, although the epoch has landed or"
        " the producer is frozen: rows that are in the table already are in it twice then."
    )
    confirm("Replay?", needed=not yes)
    _print_outcomes(run_with_parts(lambda parts: accept(parts, chosen, reason)))
    if refused:
        raise typer.Exit(1)


def _print_refused(refused: Mapping[str, str]) -> None:
    for key, why in refused.items():
        say(f"frazil: {key} stays in quarantine: {why}")


def _print_outcomes(outcomes: list[Replayed]) -> None:
    """Print keys that were replayed on stdout, the others with why not.
    Exit code 1 if there are any."""

    for one in outcomes:
        if one.refused is None:
            typer.echo(one.key)
        else:
            _print_refused({one.key: one.refused})
        if one.check_error is not None:
            say(f"frazil: {one.key}: could not check that its data files exist: {one.check_error}")
    queue_error = next((one.queue_error for one in outcomes if one.queue_error), None)
    if queue_error:
        say(f"frazil: not announced ({queue_error}); a committer finds it when it lists the inbox")
    if any(one.refused for one in outcomes):
        raise typer.Exit(1)


@app.command()
@grouped
def discard(
    keys: KeysArgument = None,
    every: All = False,
    *,
    filters: Filters,
    yes: Yes = False,
    reason: AuditReason = None,
) -> None:
    """Remove requests for good. Prints their keys. The data files that they name stay."""
    from committer.cli.producers.quarantine_selection import discard_all

    chosen = run_with_requests(lambda parts: _choose(parts, keys, every, filters))
    if not chosen:
        return
    say("\n".join(chosen))
    say(
        f"This removes {counted(len(chosen), 'request')} for good: the rows never"
        " reach the table. The data files stay where they are, until orphan files are cleaned up."
    )
    confirm("Discard?", needed=not yes, refused="nothing was removed")

    run_with_requests(lambda parts: discard_all(parts, chosen, reason, discarded=typer.echo))


async def _choose(
    parts: RequestParts, keys: list[str] | None, every: bool, filters: Filters
) -> list[str]:
    """Return the keys of the named requests, or of all that the filters accept."""
    from committer.cli.producers.quarantine_selection import find_all, find_keys

    if bool(keys) == every or (keys and filters != Filters()):
        raise typer.BadParameter("expected KEYs or --all, not both; filters go with --all")
    if keys:
        return await find_keys(parts, keys)
    return [one.key for one in await find_all(parts, filters)]
