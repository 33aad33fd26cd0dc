"""`frazil table set`: change properties of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.command_session import parse_identifier, run_with_parts
from committer.cli.common_options import TableArgument
from committer.cli.printing import say

if TYPE_CHECKING:
    from committer.iceberg.updates.metadata_update import Update
    from committer.ports.pointer_swap import LoadedTable
    from committer.service.process.composition import Parts


def set_(
    name: TableArgument,
    properties: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Properties to set.")
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="KEY", help="Remove a property. May be repeated."),
    ] = None,
) -> None:
    """Set properties of a table, and remove some, in one change of its metadata.

    Committers obey from their next commit on. Repeating it changes nothing. The ledger's entries
    and what engines reserve are refused, and so are values that Frazil could not read.
    """
    from committer.cli.table_properties import check_keys, parse_properties, refuse_long_keys
    from committer.service.admin.table_change import change_table

    wanted, removed = parse_properties(properties or (), hint="KEY=VALUE"), tuple(unset or ())
    check_keys(removed, hint="--unset")
    if not wanted and not removed:
        raise typer.BadParameter("expected KEY=VALUE, or --unset KEY")
    if both := sorted(wanted.keys() & set(removed)):
        raise typer.BadParameter(f"`{both[0]}` is to be set and to be removed")
    identifier = parse_identifier(name)
    changed: list[str] = []

    async def decide(table: LoadedTable) -> Sequence[Update]:
        updates = _updates(table.metadata.properties, wanted, removed)
        if updates:
            changed[:] = [f"{key}={text}" for key, text in wanted.items()]
            changed.extend(f"{key} removed" for key in removed)
        return updates

    async def work(parts: Parts) -> None:
        refuse_inbox_inside(parts, wanted)
        refuse_long_keys(wanted, parts.catalog.capabilities)
        await change_table(parts.catalog, parts.storage, parts.world, identifier, decide)

    run_with_parts(work)
    say(f"{identifier}: {', '.join(changed)}" if changed else f"{identifier} is so already")


def refuse_inbox_inside(parts: Parts, properties: Mapping[str, str]) -> None:
    """Refuse locations around the inbox. Errors: `typer.BadParameter`."""
    from committer.cli.table_properties import places_of
    from committer.settings.service_settings import is_inside

    for place in places_of(properties):
        if is_inside(inbox := parts.settings.inbox, place):
            raise typer.BadParameter(
                f"inbox `{inbox}` lies inside `{place}`: an engine's orphan clean-up could remove"
                " requests"
            )


def _updates(
    now: Mapping[str, str], wanted: Mapping[str, str], removed: Sequence[str]
) -> list[Update]:
    from committer.iceberg.updates.metadata_update import RemoveProperties, SetProperties

    new = {key: text for key, text in wanted.items() if now.get(key) != text}
    gone = tuple(key for key in removed if key in now)
    updates: list[Update] = [SetProperties(new)] if new else []
    return [*updates, RemoveProperties(gone)] if gone else updates
