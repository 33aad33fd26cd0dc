"""`frazil table set`: change properties of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from committer.cli.context.command_session import (
    parse_identifier,
    read_settings,
    run_with_parts,
    usage_error,
)
from committer.cli.context.common_options import TableArgument
from committer.cli.context.operator_audit import ReasonOption, recorded_on_table
from committer.cli.context.property_changes import (
    PAIRS,
    PairsArgument,
    PropertyChange,
    UnsetOption,
    parse_change,
)
from committer.cli.output.printing import say

if TYPE_CHECKING:
    from committer.iceberg.metadata.location_properties import AllowedLocations
    from committer.iceberg.updates.metadata_update import Update
    from committer.ports.pointer_swap import LoadedTable
    from committer.service.process.composition import Parts


def set_(
    name: TableArgument,
    properties: PairsArgument = None,
    unset: UnsetOption = None,
    reason: ReasonOption = None,
) -> None:
    """Set properties of a table, and remove some, in one change of its metadata.

    Committers obey from their next commit on. Repeating it changes nothing. The ledger's entries
    and what engines reserve are refused, and so are values that Frazil could not read.
    """
    from committer.cli.tables.table_properties import check_keys, check_properties, refuse_long_keys
    from committer.service.admin.table_change import change_table

    change = parse_change(properties, unset)
    check_properties(change.wanted, hint=PAIRS)
    check_keys(change.removed, hint="--unset")
    identifier = parse_identifier(name)
    allowed = read_settings().allowed_locations
    is_changed = False

    async def decide(table: LoadedTable) -> Sequence[Update]:
        nonlocal is_changed
        updates = _updates(table.metadata.properties, change)
        _check_locations(table, change, allowed)
        _check_tags(table.metadata.properties, change)
        is_changed = is_changed or bool(updates)
        return updates

    async def work(parts: Parts) -> None:
        refuse_inbox_inside(parts.settings.inbox, change.wanted)
        refuse_long_keys(change.wanted, parts.catalog.capabilities)
        async with recorded_on_table(parts, "table set", identifier, reason):
            await change_table(parts.catalog, parts.storage, parts.world, identifier, decide)

    run_with_parts(work)
    unchanged = "no change, the properties are set already"
    say(f"{identifier}: {change if is_changed else unchanged}")


def refuse_inbox_inside(inbox: str, properties: Mapping[str, str]) -> None:
    """Refuse locations around the inbox. Errors: `typer.BadParameter`."""
    from committer.creation.create_table import places_of, refuse_around_inbox

    with usage_error():
        refuse_around_inbox(inbox, places_of(properties))


def _check_locations(table: LoadedTable, change: PropertyChange, allowed: AllowedLocations) -> None:
    """Refuse to move files to where no table may be. Errors: `typer.BadParameter`."""
    metadata = table.metadata
    refusal = allowed.property_refusal(_new(metadata.properties, change), metadata.location)
    if refusal is not None:
        raise typer.BadParameter(f"{PAIRS}: {refusal}")


def _check_tags(now: Mapping[str, str], change: PropertyChange) -> None:
    """Check what the table would have, if the change is about tags."""
    from committer.cli.tables.table_properties import TAG_PROPERTIES, check_tags

    if TAG_PROPERTIES & {*change.wanted, *change.removed}:
        kept = {key: text for key, text in now.items() if key not in change.removed}
        check_tags({**kept, **change.wanted}, hint=PAIRS)


def _new(now: Mapping[str, str], change: PropertyChange) -> dict[str, str]:
    return {key: text for key, text in change.wanted.items() if now.get(key) != text}


def _updates(now: Mapping[str, str], change: PropertyChange) -> list[Update]:
    from committer.iceberg.updates.metadata_update import RemoveProperties, SetProperties

    new = _new(now, change)
    gone = tuple(key for key in change.removed if key in now)
    updates: list[Update] = [SetProperties(new)] if new else []
    return [*updates, RemoveProperties(gone)] if gone else updates
