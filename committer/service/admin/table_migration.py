"""Moves a table from one catalog to another while writers run.

The steps, each of which may be repeated, and after each of which a crash is continued by running
all of them again:

1. Note in the old inbox root that the table moves: committers then keep its requests.
2. Fence: rename the table in the old catalog. From then on no swap of its old name can land, of a
   committer or of an engine, however late it arrives; and the last metadata is known. The new name
   tells the new catalog, so of two migrations to different ones the first rename decides.
3. Register that metadata in the new catalog, and keep the old one's name in the table's properties,
   so that requests which name it stay valid. A refusal gives the table its old name back.
4. Drop the fenced name from the old catalog. Files stay.
5. Carry over the requests that wait in the old inbox.

The ledger of what has landed is part of the metadata, so no request lands twice, whichever
committer it reaches.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from committer.errors import (
    AccessError,
    AlreadyExistsError,
    FrazilError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotFoundError,
    SettingsError,
    TableAlreadyExistsError,
    TransientError,
    UnsupportedError,
)
from committer.iceberg.updates.metadata_update import SetProperties, Update
from committer.plan.ledger.former_catalogs import FORMER_CATALOGS_PROPERTY, with_former_catalog
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject, create_or_equal
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.catalog_side import CatalogSide, fenced_identifier, is_fenced
from committer.service.admin.table_change import change_table
from committer.storage.inbox.moves import Move

FENCE_ATTEMPTS_MAX = 30
FENCE_PAUSE_S = 0.2
# A catalog that answers so has not applied the call and never will.
_REFUSALS = (AccessError, NotFoundError, SettingsError, TableAlreadyExistsError, UnsupportedError)


@dataclass(frozen=True, slots=True)
class Migrated:
    """The table in its new catalog. `carried`: requests that went over; `waiting`: those that wait
    for the new committer in the inbox that both share."""

    table: LoadedTable
    carried: int
    waiting: int


class TableMigration:
    """One table's way. `is_quiet`: by the operator's word nothing commits to it meanwhile, so it
    need not be fenced."""

    def __init__(
        self,
        identifier: TableIdentifier,
        *,
        source: CatalogSide,
        target: CatalogSide,
        world: World,
        is_quiet: bool = False,
    ) -> None:
        self._identifier = identifier
        self._source = source
        self._target = target
        self._world = world
        self._fences = source.catalog.capabilities.has_atomic_rename
        self._is_quiet = is_quiet
        fenced = fenced_identifier(identifier, target.name)
        self._standing = fenced if self._fences else identifier

    async def look(self) -> LoadedTable | None:
        """Return the table in its old catalog, under whichever name; None where it has left.

        Errors: `UnsupportedError`, `TableAlreadyExistsError`, `NotFoundError` for what forbids to
        begin; `NoSuchTableError` where neither catalog has it.
        """
        named = await self._found(self._source, self._identifier)
        standing = await self._found(self._source, self._standing) if self._fences else None
        if named and standing:
            raise UnsupportedError(
                f"catalog `{self._source.name}` has {self._standing}, which waits to be moved, and"
                f" a new table {self._identifier}: rename or drop the new one first"
            )
        if named:
            await self._check(named)
        elif standing is None and await self._found(self._target, self._identifier) is None:
            raise await self._absent()
        return named or standing

    async def _absent(self) -> FrazilError:
        """Return the error for a table that neither catalog has under its own name."""
        with suppress(NoSuchNamespaceError):
            for one in await self._source.catalog.list_tables(self._identifier.namespace):
                if is_fenced(one, of=self._identifier.name):
                    return UnsupportedError(
                        f"{self._identifier} is on its way from catalog `{self._source.name}`,"
                        f" where it is called {one}, to another one than `{self._target.name}`: end"
                        " that migration first, by running it again"
                    )
        return NoSuchTableError(
            f"no table {self._identifier}, neither in catalog `{self._source.name}` nor in"
            f" `{self._target.name}`"
        )

    async def _check(self, table: LoadedTable) -> None:
        can = self._source.catalog.capabilities
        if can.maintains_tables:
            raise UnsupportedError(
                f"the service behind a catalog of the kind {can.kind} deletes files that its own"
                f" pointer does not name, so {self._identifier} cannot leave it with its files:"
                f" create the table in catalog `{self._target.name}`, and write its rows again"
            )
        if not can.drops_pointer_only:
            raise UnsupportedError(
                f"a catalog of the kind {can.kind} has no pointer that could be removed without the"
                f" files, so {self._identifier} cannot leave it: stop its writers for good, and"
                " `frazil table register` its metadata file in catalog"
                f" `{self._target.name}`"
            )
        if not self._fences and not self._is_quiet:
            raise UnsupportedError(
                f"a catalog of the kind {self._source.catalog.capabilities.kind} cannot rename a"
                f" table in one step, so {self._identifier} cannot be fenced: stop all of its"
                " writers and committers, then say so by --no-active-writers"
            )
        if await self._found(self._target, self._identifier):
            if not self._fences:
                return
            raise TableAlreadyExistsError(
                f"catalog `{self._target.name}` has a table {self._identifier} already"
            )
        if not table.has_metadata_file:
            raise UnsupportedError(
                f"catalog `{self._source.name}` names no metadata file of {self._identifier}"
                f" ({table.metadata_location}), so no other catalog can register it"
            )
        try:
            await self._target.storage.head(table.metadata_location)
        except NotFoundError as error:
            raise NotFoundError(
                f"the storage settings of catalog `{self._target.name}` do not reach the table's"
                f" files: {table.metadata_location} is not there"
            ) from error
        except AccessError:
            # A catalog that vends credentials does so for the tables that it knows.
            if self._target.catalog.capabilities.metadata_writer == "committer":
                raise

    async def run(self) -> Migrated:
        """Do what is left to do. Errors: as `look`, and those of the ports."""
        table = await self.look()
        if table is not None:
            await self._move(table)
        moved = await self._target.catalog.load(self._identifier)
        if table is None:
            await self._check_note(moved.metadata.require_uuid())
        moved = await self._accept_requests_of_before()
        return await self._carry(moved)

    # --- The steps -------------------------------------------------------------------------------

    async def _move(self, table: LoadedTable) -> None:
        """Note, fence, hand over. Each may have been done before, or be done by another run."""
        uuid = table.metadata.require_uuid()
        await self._target.catalog.create_namespace(self._identifier.namespace)
        before, etag = await self._source.moves.held(uuid)
        etag = await self._put_note(uuid, replaces=etag)
        began_here = table.identifier == self._identifier
        try:
            if table.identifier != self._standing:
                await self._fence()
            fenced = await self._found(self._source, self._standing)
            if fenced is not None:
                await self._register(fenced)
        except _REFUSALS as error:
            if began_here:
                await self._undo(uuid, before, etag, error)
            raise
        if fenced is not None:
            await self._drop(fenced)

    async def _put_note(self, table_uuid: UUID, *, replaces: str | None) -> str:
        """Write the note, unless another migration has written its own since that was looked at."""
        try:
            return await self._source.moves.put(table_uuid, self._note, replaces=replaces)
        except AlreadyExistsError as error:
            raise UnsupportedError(
                f"{self._identifier}: another migration of it has begun in this moment; look where"
                " it goes, then run this again"
            ) from error

    @property
    def _note(self) -> Move:
        return Move(
            table=str(self._identifier),
            came_from=self._source.name,
            to=self._target.name,
            inbox=self._target.root,
        )

    async def _undo(
        self, table_uuid: UUID, before: Move | None, etag: str, refusal: Exception
    ) -> None:
        """Give the table its name back, and the note that was there before: this run has begun the
        migration, and was refused. Another run may have ended it in the meantime.
        """
        found = await self._found(self._target, self._identifier)
        if found is not None and found.metadata.table_uuid == table_uuid:
            return
        if self._fences:
            try:
                await self._source.catalog.rename_table(self._standing, self._identifier)
            except NoSuchTableError:
                pass  # it was not fenced, or not by this migration
            except FrazilError as error:
                raise UnsupportedError(
                    f"{refusal}; {self._identifier} waits as {self._standing} in catalog"
                    f" `{self._source.name}`, for giving its name back failed, too ({error}): run"
                    " this again, or rename it"
                ) from refusal
        if before is not None:
            with suppress(AlreadyExistsError):
                await self._source.moves.put(table_uuid, before, replaces=etag)
        elif (await self._source.moves.held(table_uuid))[1] == etag:
            await self._source.moves.delete(table_uuid)

    async def _fence(self) -> None:
        """Rename the table, also against writers that commit as fast as they can. A rename whose
        answer was lost may have been applied.
        """
        catalog = self._source.catalog
        for attempt in range(FENCE_ATTEMPTS_MAX):
            try:
                await catalog.rename_table(self._identifier, self._standing)
            except NoSuchTableError:
                await self._check_fenced()
            except TransientError:
                if attempt == FENCE_ATTEMPTS_MAX - 1:
                    raise
                await self._world.sleep(FENCE_PAUSE_S * self._world.jitter())
                continue
            return

    async def _check_fenced(self) -> None:
        """Require that this migration has fenced the table, or another run of it has ended it."""
        if await self._found(self._source, self._standing) is not None:
            return
        if await self._found(self._target, self._identifier) is None:
            raise await self._absent()

    async def _register(self, table: LoadedTable) -> None:
        """Register the fenced table in the new catalog. It may have been done before."""
        table_uuid, target = table.metadata.require_uuid(), self._target
        if not self._is_one_inbox:
            await target.high_water_marks.keep(await self._source.high_water_marks.read(table_uuid))
        try:
            await target.catalog.register_table(self._identifier, table.metadata_location)
        except TableAlreadyExistsError:
            _must_continue(await target.catalog.load(self._identifier), table, target.name)
        if not self._is_one_inbox:
            await target.moves.delete(table_uuid)

    async def _drop(self, table: LoadedTable) -> None:
        """Drop the registered table where it was. A run at the same time may have done so."""
        try:
            now = await self._source.catalog.current_location(self._standing)
            if now != table.metadata_location:
                raise self._came_between(f"a commit to {self._standing}", f"it is in {now}")
            last = await self._source.catalog.drop_table(self._standing)
        except NoSuchTableError:
            named = await self._found(self._source, self._identifier) if self._fences else None
            if named and named.metadata.table_uuid == table.metadata.table_uuid:
                found = f"it is called {self._identifier} again"
                raise self._came_between("another migration", found) from None
            return
        if last not in (None, table.metadata_location):
            raise UnsupportedError(
                f"a commit to {self._standing} in catalog `{self._source.name}` came between, just"
                f" before it was dropped: it is in {last}, and not in catalog"
                f" `{self._target.name}`; drop {self._identifier} from `{self._target.name}`, and"
                " `frazil table register` that file there"
            )

    def _came_between(self, what: str, found: str) -> UnsupportedError:
        return UnsupportedError(
            f"{what} in catalog `{self._source.name}` came between: {found}, and that is not in"
            f" catalog `{self._target.name}`; stop its writers, drop {self._identifier} from"
            f" `{self._target.name}`, and run this again"
        )

    async def _check_note(self, table_uuid: UUID) -> None:
        note = await self._source.moves.find(table_uuid)
        if note is None or note.to != self._target.name:
            raise NoSuchTableError(
                f"no table {self._identifier} in catalog `{self._source.name}`, and the one in"
                f" `{self._target.name}` did not come from there"
            )

    async def _accept_requests_of_before(self) -> LoadedTable:
        """Make requests that name the old catalog valid in the new one."""

        async def decide(table: LoadedTable) -> tuple[Update, ...]:
            named = with_former_catalog(table.metadata.properties, self._source.name)
            return (SetProperties({FORMER_CATALOGS_PROPERTY: named}),) if named else ()

        target = self._target
        return await change_table(
            target.catalog, target.storage, self._world, self._identifier, decide
        )

    async def _carry(self, moved: LoadedTable) -> Migrated:
        """Copy the requests to the new inbox, and remove each from the old one once it is durable.

        A request keeps its key, so a copy that is made again is the same object, and one that has
        landed since is a duplicate to the ledger.
        """
        source, target = self._source, self._target
        table_uuid, count = moved.metadata.require_uuid(), 0
        keys = [one.key async for one in source.inbox.list(table_uuid)]
        if self._is_one_inbox:
            return Migrated(moved, 0, len(keys))
        for key in keys:
            try:
                content = await source.inbox.get(key)
            except NotFoundError:
                continue
            copy = NewObject(target.inbox.location(key), content)
            await create_or_equal(target.own, copy)
            await source.inbox.delete((key,))
            count += 1
        return Migrated(moved, count, 0)

    @property
    def _is_one_inbox(self) -> bool:
        return self._source.root.rstrip("/") == self._target.root.rstrip("/")

    async def _found(self, side: CatalogSide, name: TableIdentifier) -> LoadedTable | None:
        try:
            return await side.catalog.load(name)
        except NoSuchTableError:
            return None


def _must_continue(found: LoadedTable, fenced: LoadedTable, name: str) -> None:
    """Refuse another table of the name, and an older state of this one."""
    log = {entry.metadata_file for entry in found.metadata.metadata_log}
    snapshots = {snapshot.snapshot_id for snapshot in found.metadata.snapshots}
    if found.metadata.table_uuid == fenced.metadata.table_uuid and (
        fenced.metadata_location in {found.metadata_location, *log}
        or fenced.metadata.current_snapshot_id in snapshots
    ):
        return
    raise TableAlreadyExistsError(
        f"catalog `{name}` has a table {found.identifier} at {found.metadata_location}, which is"
        f" not known to continue {fenced.metadata_location}: if it is another table, rename it; if"
        f" it does continue it, drop {fenced.identifier}; then run this again"
    )
