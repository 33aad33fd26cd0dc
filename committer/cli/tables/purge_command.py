"""`frazil table purge`: drop a table and delete its files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from committer.cli.context.command_session import parse_identifier, run_with_parts
from committer.cli.context.common_options import TableArgument, Yes
from committer.cli.context.operator_audit import ReasonOption, recorded_on_table
from committer.cli.output.printing import confirm, counted, say
from committer.errors import FrazilError, NoSuchTableError, UnsupportedError

if TYPE_CHECKING:
    from committer.ports.pointer_swap import LoadedTable
    from committer.request.table_identifier import TableIdentifier
    from committer.service.admin.table_purge import PurgePlan, TablePurge
    from committer.service.process.composition import Parts


def purge(name: TableArgument, yes: Yes = False, reason: ReasonOption = None) -> None:
    """Drop a table, and delete every file below its location. There is no way back.

    Refused while requests wait for it, while it is being migrated, where `gc.enabled` is false, and
    where its location is shared with another table, the inbox or the warehouse.
    """
    identifier = parse_identifier(name)

    async def look(parts: Parts) -> PurgePlan:
        plan = await _purge(parts, identifier).plan()
        await _refuse_elsewhere(parts, plan.table)
        return plan

    async def work(parts: Parts) -> int:
        async with recorded_on_table(parts, "table purge", identifier, reason) as change:
            deleted = await _purge(parts, identifier).run(plan)
            change.after = {"deleted_objects": deleted}
            return deleted

    plan = run_with_parts(look)
    _say_plan(identifier, plan)
    confirm("Delete them all?", needed=not yes)
    deleted = run_with_parts(work)
    say(f"purged {identifier}: {counted(deleted, 'object')} deleted")


def _say_plan(identifier: TableIdentifier, plan: PurgePlan) -> None:
    say(f"This drops {identifier} and deletes {counted(plan.objects, 'object')},")
    say(f"{plan.size_bytes:,} bytes: all that is below")
    say(plan.table.metadata.location)
    for place in plan.outside:
        say(f"Its files outside stay: {place}")
    again = "register it and repeat" if plan.drops_pointer_first else "repeat"
    say(f"The last file to go is the metadata file: if this is interrupted, {again}:")
    say(plan.table.metadata_location)


def _purge(parts: Parts, identifier: TableIdentifier) -> TablePurge:
    from committer.service.admin.catalog_side import CatalogSide
    from committer.service.admin.table_purge import TablePurge

    settings = parts.settings
    side = CatalogSide(
        settings.catalog.name, parts.catalog, parts.storage, parts.own_storage, settings.inbox
    )
    return TablePurge(identifier=identifier, side=side, warehouse=settings.catalog.warehouse)


async def _refuse_elsewhere(parts: Parts, table: LoadedTable) -> None:
    """Ask the other configured catalogs for the same table; say which of them do not answer."""
    from committer.backends import catalog_kinds
    from committer.settings.catalog_sources import other_catalog
    from committer.settings.pyiceberg_config import read_pyiceberg_catalogs

    chosen = parts.settings.catalog.name.lower()
    for name in sorted(read_pyiceberg_catalogs(os.environ)):
        if name == chosen:
            continue
        try:
            properties = other_catalog(name, os.environ)
            other = await catalog_kinds.open_catalog(
                properties, parts.storage, parts.world, create=False
            )
            try:
                found = await other.load(table.identifier)
            finally:
                await other.close()
        except NoSuchTableError:
            continue
        except FrazilError as error:
            say(f"catalog `{name}` was not asked whether it has this table: {error}")
            continue
        if found.metadata.table_uuid == table.metadata.table_uuid:
            raise UnsupportedError(
                f"{table.identifier} is not purged: catalog `{name}` has this table, too"
            )
