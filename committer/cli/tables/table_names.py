"""`frazil table register`, `rename` and `drop`: names of tables. They touch no file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import parse_identifier, run_with_parts
from committer.cli.context.common_options import TableArgument, Yes
from committer.cli.context.operator_audit import ReasonOption, facts_now, recorded_on_table
from committer.cli.output.printing import confirm, counted, say
from committer.creation.new_namespace import with_namespace
from committer.errors import InvalidMetadataError
from committer.ports.capability_checks import check_namespace, check_register, check_rename

if TYPE_CHECKING:
    from committer.ports.pointer_swap import LoadedTable
    from committer.request.table_identifier import TableIdentifier
    from committer.service.process.composition import Parts


def register(
    name: TableArgument,
    location: Annotated[str, typer.Argument(help="Of the metadata file: …/00003-….metadata.json")],
    reason: ReasonOption = None,
) -> None:
    """Bring a table into the catalog by its metadata file, and make its namespace if there is none.

    A table that is in a catalog already must not get a second name: only commits under one are
    safe.
    """
    identifier = parse_identifier(name)

    async def work(parts: Parts) -> LoadedTable:
        check_register(parts.catalog.capabilities, location)
        check_namespace(parts.catalog.capabilities, identifier.namespace)
        async with (
            recorded_on_table(parts, "table register", identifier, reason, is_new=True),
            with_namespace(parts.catalog, identifier.namespace),
        ):
            return await parts.catalog.register_table(identifier, location)

    registered = run_with_parts(work, create=True)
    say(f"registered {identifier} at {registered.metadata.location}")


def rename(
    old: Annotated[str, typer.Argument(help="The table: db.flights.")],
    new: Annotated[str, typer.Argument(help="Its new name, in a namespace that is there.")],
    yes: Yes = False,
    reason: ReasonOption = None,
) -> None:
    """Rename a table. Stop its writers first, and restart them with the new name.

    Asks first if requests wait: they name the old table, so they go to quarantine.
    """
    identifier, to = parse_identifier(old), parse_identifier(new)

    async def look(parts: Parts) -> bool:
        check_rename(parts.catalog.capabilities)
        check_namespace(parts.catalog.capabilities, to.namespace)
        return await _say_what_waits(parts, identifier)

    async def work(parts: Parts) -> None:
        async with recorded_on_table(parts, "table rename", identifier, reason) as change:
            await parts.catalog.rename_table(identifier, to)
            change.after = {"table": str(to), **(await facts_now(parts, to) or {})}

    waiting = run_with_parts(look)
    confirm("Rename?", needed=waiting and not yes)
    run_with_parts(work)
    say(f"renamed {identifier} to {to}")


def drop(name: TableArgument, yes: Yes = False, reason: ReasonOption = None) -> None:
    """Remove a table from the catalog. Its files stay; `register` restores it."""
    identifier = parse_identifier(name)

    async def look(parts: Parts) -> str:
        location = await parts.catalog.current_location(identifier)
        if not parts.catalog.capabilities.drops_pointer_only:
            # It refuses, and says what to do instead.
            await parts.catalog.drop_table(identifier)
        await _say_what_waits(parts, identifier)
        return location

    async def work(parts: Parts) -> str | None:
        async with recorded_on_table(parts, "table drop", identifier, reason) as change:
            last = await parts.catalog.drop_table(identifier)
            change.after = {"metadata_location": last}
            return last

    location = run_with_parts(look)
    say(f"This removes {identifier} from the catalog. Its files stay; its metadata file is")
    say(location)
    confirm("Drop?", needed=not yes)
    last = run_with_parts(work)
    say(f"dropped {identifier}")
    if last not in (None, location):
        say(f"A commit came between: its last metadata file is {last}")


async def _say_what_waits(parts: Parts, identifier: TableIdentifier) -> bool:
    """Return whether requests wait for the table, and say how many. A table that cannot be read
    keeps its own trouble to itself: it may still be renamed and dropped.
    """
    try:
        table = await parts.catalog.load(identifier)
    except InvalidMetadataError as error:
        say(f"frazil: {error}")
        return False
    waiting = [one.key async for one in parts.inbox.list(table.metadata.require_uuid())]
    if waiting:
        requests = counted(len(waiting), "request")
        say(f"In the inbox: {requests} for {identifier}, which can only land under this name.")
    return bool(waiting)
