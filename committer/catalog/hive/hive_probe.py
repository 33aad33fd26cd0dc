"""Proves that a metastore enforces what the swap relies on, on an entry of its own."""

from __future__ import annotations

from committer.catalog.hive import hive_layout as layout
from committer.catalog.hive.metastore import Metastore, asked, frazil_error, says_modified
from committer.catalog.hive.table_lock import TableLocks
from committer.catalog.hive.thrift_connection import LostAnswerError, MetastoreError
from committer.catalog.hive.thrift_values import Struct
from committer.errors import CatalogUnavailableError, SettingsError
from committer.ports.world import World

_DATABASE = "default"


async def probe(
    metastore: Metastore, locks: TableLocks, world: World, *, allow_unfenced_locks: bool
) -> None:
    """Alter a view that has a pointer from a stale base, then from the current one.

    Errors: `SettingsError` for a metastore that accepts the stale one, unless
    `allow_unfenced_locks`; then its locks must work.
    """
    name = f"frazil_probe_{world.uuid().hex}"
    what = f"probe's view {_DATABASE}.{name}"
    await asked(metastore.create_table(layout.probe_entry(name, _DATABASE)), what)
    try:
        entry = await asked(metastore.table(_DATABASE, name), what)
        if entry is None:
            raise CatalogUnavailableError(
                f"Hive metastore: the {what} vanished: do all addresses of `uri` name one"
                " metastore?"
            )
        if await _is_applied(metastore, name, entry, "another") and not allow_unfenced_locks:
            raise SettingsError(
                "catalog uri: this Hive metastore changes a table although the expected"
                " `metadata_location` does not match, so concurrent commits would be lost: upgrade"
                " it to 2.3.10, 4.0.1 or later (or set `hive.allow-unfenced-locks` if it is enough"
                " that the metastore's locks, which expire, keep commits apart)"
            )
        if allow_unfenced_locks:
            async with locks.held(_DATABASE, name):
                pass
        if not await _is_applied(metastore, name, entry, layout.PROBE_LOCATION):
            raise SettingsError(
                "catalog uri: this Hive metastore refuses a change whose expected"
                " `metadata_location` matches"
            )
    finally:
        await asked(metastore.drop_table(_DATABASE, name), what)


async def _is_applied(metastore: Metastore, name: str, entry: Struct, base: str) -> bool:
    """Return whether an alter with this base is applied."""
    changed = layout.with_location(entry, "second")
    try:
        await metastore.alter(_DATABASE, name, changed, base)
    except MetastoreError as error:
        if says_modified(error):
            return False
        if error.kind == "MetaException":
            raise SettingsError(
                f"catalog uri: this Hive metastore cannot compare an expected parameter:"
                f" {error.message} (the embedded Derby cannot; PostgreSQL and MySQL can)"
            ) from error
        raise frazil_error(error, "the probe's swap") from error
    except LostAnswerError as error:
        raise frazil_error(error, "the probe's swap") from error
    return True
