"""`frazil table accept`: continue with tables that lack commits that they had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import parse_identifier, run_with_parts
from committer.cli.context.common_options import AsJson, Yes, complete_table, list_tables
from committer.cli.context.operator_audit import ReasonOption, audit_trail
from committer.cli.output.printing import confirm, counted, print_json, say
from committer.errors import FrazilError, InvalidMetadataError

if TYPE_CHECKING:
    from committer.plan.ledger.state import TableState
    from committer.request.table_identifier import TableIdentifier
    from committer.service.process.composition import Parts

_LOADS_AT_ONCE = 16


def accept(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE", help="The table: db.flights.", autocompletion=complete_table
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Every table of the catalog that lacks commits. Needs --reason."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be accepted, and change nothing.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    reason: ReasonOption = None,
) -> None:
    """Accept a frozen table as it is now, and forget the commits that it lacks.

    For a table that is frozen because it was restored, registered from an older metadata file, or
    lost entries of the ledger. Its missing rows do not return by themselves; epochs that its ledger
    lacks land again if their producers publish them again. Committers continue within seconds.

    --all is for a catalog that was restored: it looks at every table, shows what each one lacks,
    and asks once. Tables that lack nothing stay as they are. Exit code 1 if a table cannot be read,
    or has changed since it was shown; all others are accepted.
    """
    if (name is None) is not every:
        raise typer.BadParameter("expected a TABLE or --all, not both")
    if every and not (reason or dry_run):
        raise typer.BadParameter("--all needs --reason TEXT: the audit keeps it for each table")
    if name is None:
        looked = run_with_parts(_look_at_all)
    else:
        identifier = parse_identifier(name)
        looked = _Looked([run_with_parts(lambda parts: _look(parts, identifier))])
    for found in looked.tables:
        say(found.text())
    looked.say_unreadable()
    if dry_run or not looked.tables:
        _end_dry_run(looked, as_json=as_json)
        return
    question = f"Accept {counted(len(looked.tables), 'table')}?" if every else "Accept?"
    confirm(question, needed=not yes)
    _accept_all(looked, reason, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Found:
    """A table as it is, and what it lacks."""

    identifier: TableIdentifier
    state: TableState
    missing: Sequence[str]

    def text(self) -> str:
        metadata = self.state.metadata
        lacks = [f"  lacks: {one}" for one in self.missing] or [
            "  lacks nothing that the high-water mark knows: unless a committer has logged"
            " `table.frozen`, there is nothing to accept"
        ]
        snapshot_id = metadata.current_snapshot_id
        snapshot = "no snapshot" if snapshot_id is None else f"snapshot {snapshot_id}"
        return "\n".join(
            (
                f"{self.identifier}: {self.state.table.metadata_location}",
                f"  last sequence number {metadata.last_sequence_number}, {snapshot}",
                *lacks,
            )
        )

    def describe(self) -> dict[str, object]:
        metadata = self.state.metadata
        return {
            "table": str(self.identifier),
            "table_uuid": str(metadata.table_uuid),
            "metadata_location": self.state.table.metadata_location,
            "last_sequence_number": metadata.last_sequence_number,
            "current_snapshot_id": metadata.current_snapshot_id,
            "missing": list(self.missing),
        }


@dataclass(frozen=True, slots=True)
class _Looked:
    """The tables that may be accepted, and why others of the catalog cannot be read."""

    tables: Sequence[_Found]
    unreadable: Sequence[str] = ()

    def say_unreadable(self) -> None:
        for why in self.unreadable:
            say(f"frazil: {why}")


async def _look_at_all(parts: Parts) -> _Looked:
    """Look at every table of the catalog; return those that lack something."""
    from committer.group_commit import finish_in_turns

    unreadable: list[str] = []
    look = partial(_look_or_explain, parts, unreadable)
    names = await list_tables(parts.catalog)
    looked = await finish_in_turns(look, names, at_once_max=_LOADS_AT_ONCE)
    return _Looked([one for one in looked if one is not None and one.missing], unreadable)


async def _look_or_explain(
    parts: Parts, unreadable: list[str], identifier: TableIdentifier
) -> _Found | None:
    try:
        return await _look(parts, identifier)
    except FrazilError as error:
        unreadable.append(f"{identifier}: {error}")
    return None


async def _look(parts: Parts, identifier: TableIdentifier) -> _Found:
    from committer.plan.ledger.high_water_mark import missing_from
    from committer.plan.ledger.state import TableState

    state = TableState.of(await parts.catalog.load(identifier))
    try:
        high_water_mark = await parts.high_water_marks.read(state.metadata.require_uuid())
    except InvalidMetadataError as error:
        return _Found(identifier, state, [str(error)])
    return _Found(identifier, state, list(missing_from(state, high_water_mark)))


def _end_dry_run(looked: _Looked, *, as_json: bool) -> None:
    if as_json:
        for found in looked.tables:
            print_json({**found.describe(), "accepted_ms": None})
    say(f"nothing was accepted; {counted(len(looked.tables), 'table')} would be")
    if looked.unreadable:
        raise typer.Exit(1)


def _accept_all(looked: _Looked, reason: str | None, *, as_json: bool) -> None:
    """Accept each table as it was shown, and say which. Exit code 1 if one was left out."""

    async def work(parts: Parts) -> int:
        count = 0
        for found in looked.tables:
            accepted_ms = await _accept(parts, found, reason)
            if accepted_ms is None:
                continue
            count += 1
            if as_json:
                print_json({**found.describe(), "accepted_ms": accepted_ms})
            else:
                say(f"accepted {found.identifier}")
        return count

    if run_with_parts(work) < len(looked.tables) or looked.unreadable:
        raise typer.Exit(1)


async def _accept(parts: Parts, found: _Found, reason: str | None) -> int | None:
    """Accept one table, with an entry in the audit. None if it has changed since it was shown."""
    from committer.service.admin.recorded_change import Change

    shown = found.state.table.metadata_location
    change = Change(
        "table accept",
        table=str(found.identifier),
        table_uuid=str(found.state.metadata.table_uuid),
        before={"metadata_location": shown, "missing": list(found.missing)},
    )
    async with audit_trail(parts, reason).recorded(change):
        if await parts.catalog.current_location(found.identifier) != shown:
            change.refused = "it has changed meanwhile; nothing was accepted: look again"
            say(f"frazil: {found.identifier}: {change.refused}")
            return None
        accepted = await parts.high_water_marks.accept(found.state, now_ms=parts.world.now_ms())
        change.after = {"metadata_location": shown, "accepted_ms": accepted.accepted_ms}
    return accepted.accepted_ms
