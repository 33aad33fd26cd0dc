"""`frazil table migrate`: move a table to another catalog while writers run."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import parse_identifier, run_with_parts
from committer.cli.context.common_options import TableArgument, Yes
from committer.cli.context.operator_audit import ReasonOption, recorded_on_table
from committer.cli.output.printing import confirm, counted, say
from committer.errors import AccessError, CatalogUnavailableError, SettingsError, TransientError
from committer.ports.capability_checks import check_namespace, check_register

if TYPE_CHECKING:
    from committer.ports.pointer_swap import LoadedTable
    from committer.request.table_identifier import TableIdentifier
    from committer.service.admin.catalog_side import CatalogSide
    from committer.service.admin.table_migration import Migrated, TableMigration
    from committer.service.process.composition import Parts


def migrate(
    name: TableArgument,
    to: Annotated[
        str, typer.Option("--to", metavar="CATALOG", help="A catalog of PyIceberg's configuration.")
    ],
    to_inbox: Annotated[
        str,
        typer.Option(metavar="LOCATION", help="The inbox of its committer. Default: the same."),
    ] = "",
    no_active_writers: Annotated[
        bool,
        typer.Option(
            "--no-active-writers",
            help="For a catalog that cannot rename in one step: nothing commits to the table now.",
        ),
    ] = False,
    yes: Yes = False,
    reason: ReasonOption = None,
) -> None:
    """Move a table to another catalog, with its ledger and the requests that wait. Files stay.

    Nothing can commit to it in the old catalog from then on. Run it again after an interruption,
    and once more when the last writer has been switched over. Views stay where they are.
    """
    identifier = parse_identifier(name)

    async def look(parts: Parts) -> LoadedTable | None:
        async with _opened(parts, to, to_inbox) as target:
            migration = _migration(parts, target, identifier, is_quiet=no_active_writers)
            table = await migration.look()
            if table is not None:
                await _check_target(target, table)
            return table

    async def work(parts: Parts) -> Migrated:
        async with _opened(parts, to, to_inbox) as target:
            migration = _migration(parts, target, identifier, is_quiet=no_active_writers)
            async with recorded_on_table(parts, "table migrate", identifier, reason) as change:
                migrated = await migration.run()
                location = migrated.table.metadata_location
                change.after = {"catalog": to, "metadata_location": location}
                return migrated

    table = run_with_parts(look)
    if table is not None:
        say(f"This moves {identifier} to catalog `{to}`. Its files stay at")
        say(table.metadata.location)
        say("Writers that name the old catalog fail from then on; their requests wait.")
        confirm("Migrate?", needed=not yes)
    _say_result(identifier, run_with_parts(work), to)


def _say_result(identifier: TableIdentifier, migrated: Migrated, to: str) -> None:
    say(f"{identifier} is in catalog `{to}`, at {migrated.table.metadata_location}")
    say(f"carried over: {counted(migrated.carried, 'request')}")
    if migrated.waiting:
        requests = counted(migrated.waiting, "request")
        say(f"In the inbox: {requests}, for a committer that serves catalog `{to}`.")


@contextmanager
def _both_named(parts: Parts, to: str) -> Iterator[None]:
    """Name both catalogs where one does not answer: its own words say which of them."""
    try:
        yield
    except CatalogUnavailableError as error:
        both = f"`{parts.settings.catalog.name}` and `{to}`"
        raise TransientError(f"{error}; check that the catalogs {both} run") from error


@asynccontextmanager
async def _opened(parts: Parts, name: str, inbox: str) -> AsyncIterator[CatalogSide]:
    """Open the other catalog, for work between both. A missing one is not made."""
    from committer.backends import catalog_kinds, storage_schemes
    from committer.service.admin.catalog_side import CatalogSide
    from committer.settings.catalog_sources import other_catalog

    if name.lower() == parts.settings.catalog.name.lower():
        raise typer.BadParameter(f"--to {name}: this is the catalog that the table is in")
    properties = other_catalog(name, os.environ)
    async with AsyncExitStack() as stack:
        stack.enter_context(_both_named(parts, name))
        own = storage_schemes.open_storage(properties, parts.world)
        storage = storage_schemes.open_table_storage(own, properties, parts.world)
        stack.push_async_callback(storage.close)
        try:
            catalog = await catalog_kinds.open_catalog(
                properties, storage, parts.world, create=False, vended=storage
            )
        except (SettingsError, AccessError) as error:
            raise type(error)(f"--to {name}: {error}") from error
        stack.push_async_callback(catalog.close)
        yield CatalogSide(name, catalog, storage, own, inbox or parts.settings.inbox)


def _migration(
    parts: Parts, target: CatalogSide, identifier: TableIdentifier, *, is_quiet: bool
) -> TableMigration:
    from committer.service.admin.catalog_side import CatalogSide
    from committer.service.admin.table_migration import TableMigration

    settings = parts.settings
    source = CatalogSide(
        settings.catalog.name, parts.catalog, parts.storage, parts.own_storage, settings.inbox
    )
    return TableMigration(
        identifier, source=source, target=target, world=parts.world, is_quiet=is_quiet
    )


async def _check_target(target: CatalogSide, table: LoadedTable) -> None:
    """Refuse what the new catalog cannot hold, and an inbox that engines would clean up or that
    cannot be written; prove the conditions of both while nothing has begun.
    """
    from committer.cli.tables.table_properties import refuse_long_keys
    from committer.iceberg.metadata.metadata_check import check_new_table
    from committer.settings.service_settings import is_inside

    can = target.catalog.capabilities
    check_register(can, table.metadata_location)
    check_namespace(can, table.identifier.namespace)
    check_new_table(table.metadata)
    refuse_long_keys(table.metadata.properties, can)
    if is_inside(target.root, table.metadata.location):
        raise typer.BadParameter(
            f"inbox `{target.root}` lies inside the table's location `{table.metadata.location}`:"
            " an engine's orphan clean-up could remove requests"
        )
    await target.catalog.probe()
    try:
        await target.own.probe(target.root)
    except SettingsError as error:
        raise SettingsError(f"--to-inbox: {error}") from error
