"""Other engines on the same tables: what Spark, Flink or Trino do with Iceberg's own libraries.

Each deed is theirs whole: load the table, think, write manifests and metadata, swap; on a conflict
load and try again, on an answer that was lost look for the own metadata. They know nothing of us
and may take away what we rely on: that is what they are here for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from committer.errors import FrazilError, NoSuchTableError, NotFoundError
from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry, ManifestEntryStatus
from committer.iceberg.metadata.snapshot import MAIN
from committer.iceberg.metadata.table_metadata import new_table_metadata
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.updates.metadata_update import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    RemovePartitionSpecs,
    RemoveProperties,
    RemoveSchemas,
    SetCurrentSchema,
    SetDefaultPartitionSpec,
    SetSnapshotRef,
)
from committer.iceberg.values.locations import metadata_file_location, metadata_folder
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import IntegerType, LongType, NestedField, StringType
from committer.ledger_entry import LEDGER_PREFIX
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from tests.simulation.administrators import AUDIT
from tests.simulation.chance import rng
from tests.simulation.engine import Change, Worker
from tests.simulation.expiries import Expiry, Step, replace_table, tag
from tests.simulation.foreign_rows import apply_deletes, delete_rows
from tests.simulation.ports import Ports
from tests.support.iceberg.manifest_builders import added_entry

# As Iceberg's `commit.retry.num-retries`.
RETRIES_MAX = 4


class Deed(Enum):
    """An action of another engine on a table."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    COMPACT = "compact"
    EXPIRE = "expire snapshots"
    DELETE_ROWS = "delete rows"
    APPLY_DELETES = "rewrite files without their deleted rows"
    FAST_FORWARD = "fast-forward a branch to main"
    TAG = "tag a snapshot, or drop the tag"
    REPLACE = "create or replace table"
    CLEAN_ORPHANS = "remove orphan files"
    ROLL_BACK = "rollback_to_snapshot"
    RESTORE = "register_table of older metadata"
    UNSET = "unset our properties"
    EVOLVE_SCHEMA = "add a column"
    REUSE_SCHEMA_ID = "drop a schema and use its id again"
    EVOLVE_SPEC = "change the partition spec"
    REUSE_SPEC_ID = "drop a spec and use its id again"
    DROP_AND_CREATE = "drop and create"


# Deeds that leave a table's history and ledger as they are.
HARMLESS = (
    Deed.APPEND,
    Deed.OVERWRITE,
    Deed.COMPACT,
    Deed.EXPIRE,
    Deed.EXPIRE,
    Deed.TAG,
    Deed.REPLACE,
    Deed.CLEAN_ORPHANS,
    Deed.EVOLVE_SCHEMA,
    Deed.REUSE_SCHEMA_ID,
    Deed.EVOLVE_SPEC,
    Deed.REUSE_SPEC_ID,
)
# Deeds beside jobs that change rows, and beside operators that change refs.
TO_ROWS = (Deed.DELETE_ROWS, Deed.DELETE_ROWS, Deed.APPLY_DELETES, Deed.COMPACT)
TO_REFS = (Deed.APPEND, Deed.FAST_FORWARD, Deed.TAG, Deed.EVOLVE_SCHEMA)
# Deeds that set a table back, so that an operator has to decide.
SETTING_BACK = (Deed.ROLL_BACK, Deed.RESTORE, Deed.UNSET)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPlan:
    """`deeds` one after the other, a pause of about `pause_s` before each.

    `think_s`: between load and swap; the engines with Java take seconds. `orphans_older_than_s`: as
    `remove_orphan_files` has it, three days unless its user is careless.
    """

    deeds: tuple[Deed, ...] = (Deed.APPEND,)
    pause_s: float = 5.0
    think_s: float = 0.5
    retries_max: int = RETRIES_MAX
    orphans_older_than_s: float = 3 * 86_400.0


class Foreign:
    """An engine that works on one table."""

    def __init__(
        self, name: str, identifier: TableIdentifier, plan: ForeignPlan, *, seed: int
    ) -> None:
        self.name = name
        self.landed: list[Deed] = []
        self.gave_up: list[Deed] = []
        self._identifier = identifier
        self._plan = plan
        self._chance = rng(seed, name)
        self._next = 0

    async def run(self, ports: Ports) -> None:
        while self._next < len(self._plan.deeds):
            await ports.world.sleep(self._plan.pause_s * 2 * ports.world.jitter())
            deed = self._plan.deeds[self._next]
            # A job that dies is not done again: whether it landed, its user looks up.
            self._next += 1
            try:
                await self._do(deed, ports)
            except (NoSuchTableError, NotFoundError):
                continue
            except FrazilError:
                self.gave_up.append(deed)

    async def _do(self, deed: Deed, ports: Ports) -> None:
        match deed:
            case Deed.CLEAN_ORPHANS:
                await self._clean_orphans(ports)
            case Deed.RESTORE:
                await self._restore(ports)
            case Deed.DROP_AND_CREATE:
                await self._drop_and_create(ports)
            case Deed.EXPIRE:
                await self._expire(ports)
            case Deed.REUSE_SCHEMA_ID | Deed.REUSE_SPEC_ID:
                for step in _STEPS[deed]:
                    await self._commit(deed, step, ports)
            case _:
                await self._commit(deed, _STEPS[deed][0], ports)

    async def _commit(self, deed: Deed, plan: Step, ports: Ports) -> LoadedTable | None:
        """Load, think, swap, as often as Iceberg's libraries do. None: it did not land, or there
        was nothing to do.
        """
        for retry in range(self._plan.retries_max + 1):
            base = await ports.catalog.load(self._identifier)
            worker = Worker(ports, base, self._chance)
            change = await plan(worker)
            if change is None:
                return None
            await ports.world.sleep(self._plan.think_s * (0.5 + ports.world.jitter()))
            landed = await worker.swap(change)
            if landed is not None:
                self.landed.append(deed)
                ports.history.tell(self.name, deed.value)
                return landed
            await ports.world.sleep(min(0.1 * 2**retry, 60.0) * (0.5 + ports.world.jitter()))
        self.gave_up.append(deed)
        return None

    # --- Deeds of more than one swap -------------------------------------------------------------

    async def _expire(self, ports: Ports) -> None:
        """Remove snapshots, then perhaps the files that no other snapshot needs."""
        expiry = self._chance.choice(tuple(Expiry))
        before = await ports.catalog.load(self._identifier)
        after = await self._commit(Deed.EXPIRE, expiry.step(), ports)
        if after is None or not expiry.deletes_files:
            return
        worker = Worker(ports, before, self._chance)
        known = after.metadata.snapshots_by_id
        gone = [one for one in before.metadata.snapshots if one.snapshot_id not in known]
        kept = await worker.named_by(after.metadata.snapshots)
        unneeded = await worker.named_by(gone) - kept
        await ports.storage.delete(sorted(unneeded))

    async def _clean_orphans(self, ports: Ports) -> None:
        """Delete old files below the table that no metadata names."""
        table = await ports.catalog.load(self._identifier)
        before_ms = ports.world.now_ms() - int(self._plan.orphans_older_than_s * 1000)
        location = table.metadata.location
        old = [
            found.location
            async for found in ports.storage.list(location)
            if found.modified_ms < before_ms
        ]
        worker = Worker(ports, table, self._chance)
        needed = await worker.named_by(table.metadata.snapshots)
        needed |= {entry.metadata_file for entry in table.metadata.metadata_log}
        orphans = set(old) - needed - {table.metadata_location}
        if orphans:
            await ports.storage.delete(sorted(orphans))
            ports.history.tell(self.name, f"removed {len(orphans)} orphan files")

    async def _restore(self, ports: Ports) -> None:
        """Point the table to an older metadata file, as after an accident."""
        table = await ports.catalog.load(self._identifier)
        log = table.metadata.metadata_log
        if not log:
            return
        older = self._chance.choice(log[-4:]).metadata_file
        await ports.storage.head(older)
        await ports.catalog.drop_table(self._identifier)
        await ports.catalog.register_table(self._identifier, older)
        self.landed.append(Deed.RESTORE)
        ports.history.tell(self.name, f"restored {older}")

    async def _drop_and_create(self, ports: Ports) -> None:
        """Replace the table by another one of the same name in the same place."""
        table = await ports.catalog.load(self._identifier)
        old = table.metadata
        metadata = new_table_metadata(
            table_uuid=ports.world.uuid(),
            location=old.location,
            schema=old.current_schema,
            partition_spec=old.default_spec,
            sort_order=old.default_sort_order,
            properties={
                key: text
                for key, text in old.properties.items()
                if not key.startswith(LEDGER_PREFIX)
            },
            format_version=old.format_version,
            now_ms=ports.world.now_ms(),
        )
        folder = metadata_folder(metadata.location, metadata.properties)
        first = metadata_file_location(folder, 0, ports.world.uuid())
        await ports.catalog.drop_table(self._identifier)
        await ports.catalog.create_table(LoadedTable(self._identifier, metadata, first))
        self.landed.append(Deed.DROP_AND_CREATE)


# --- The changes of each deed --------------------------------------------------------------------


async def _append(worker: Worker) -> Change | None:
    """Append one file."""
    snapshot_id = worker.new_snapshot_id()
    file = worker.new_file(rows=7)
    manifests = [worker.manifest([added_entry(file)], 0, file.spec_id, snapshot_id)]
    counts = {
        "added-data-files": 1,
        "added-records": file.record_count,
        "added-files-size": file.file_size_in_bytes,
    }
    snapshot = worker.snapshot("append", counts, manifests, await worker.rows(), snapshot_id)
    return worker.change(snapshot, manifests, [file])


async def _overwrite(worker: Worker) -> Change | None:
    """Replace one or two files by one."""
    return await _replace(worker, "overwrite", files_max=2)


async def _compact(worker: Worker) -> Change | None:
    """Rewrite several files into one with the same rows; not beside deletes, which it would leave
    behind (`foreign_rows.apply_deletes` does not)."""
    if any(row.content is ManifestContent.DELETES for row in await worker.rows()):
        return None
    return await _replace(worker, "replace", files_max=6)


async def _replace(worker: Worker, operation: str, *, files_max: int) -> Change | None:
    """Rewrite the manifests of some live files, in which these are deleted now; add one file."""
    rows = await worker.rows()
    by_row = {row.manifest_path: await worker.entries(row) for row in rows}
    spec_id = worker.metadata.default_spec_id
    live = [
        (row, entry)
        for row in rows
        if row.partition_spec_id == spec_id and row.content is ManifestContent.DATA
        for entry in by_row[row.manifest_path]
        if entry.is_live
    ]
    chosen = worker.chance.sample(live, min(len(live), files_max))
    if not chosen or (operation == "replace" and len(chosen) < 2):
        return None
    gone = {entry.data_file.file_path for _, entry in chosen}
    touched = [row for row in rows if any(row is one for one, _ in chosen)]
    snapshot_id = worker.new_snapshot_id()
    records = sum(entry.data_file.record_count for _, entry in chosen)
    file = worker.new_file(rows=records if operation == "replace" else 5)
    if operation == "replace":
        written, files = worker.ports.history.written, [entry.data_file for _, entry in chosen]
        copied = [row for one in files for row in written.rows(one.file_path, one.record_count)]
        written.write(file.file_path, copied)
    manifests = [worker.manifest([added_entry(file)], 0, file.spec_id, snapshot_id)]
    for number, row in enumerate(touched, start=1):
        entries = _without(by_row[row.manifest_path], gone, snapshot_id)
        manifests.append(worker.manifest(entries, number, row.partition_spec_id, snapshot_id))
    counts = {
        "added-data-files": 1,
        "added-records": file.record_count,
        "added-files-size": file.file_size_in_bytes,
        "deleted-data-files": len(gone),
        "deleted-records": records,
        "removed-files-size": sum(entry.data_file.file_size_in_bytes for _, entry in chosen),
    }
    kept = [row for row in rows if row not in touched]
    snapshot = worker.snapshot(operation, counts, manifests, kept, snapshot_id)
    return worker.change(snapshot, manifests, [file])


def _without(
    entries: Sequence[ManifestEntry], gone: set[str], snapshot_id: int
) -> list[ManifestEntry]:
    """Return the entries of a rewritten manifest, without those that were deleted before."""
    rewritten = []
    for entry in entries:
        if not entry.is_live:
            continue
        if entry.data_file.file_path in gone:
            status = ManifestEntryStatus.DELETED
            rewritten.append(replace(entry, status=status, snapshot_id=snapshot_id))
        else:
            rewritten.append(replace(entry, status=ManifestEntryStatus.EXISTING))
    return rewritten


async def _roll_back(worker: Worker) -> Change | None:
    """Set main back to one of its ancestors."""
    older = list(worker.metadata.branch_history())[1:4]
    if not older:
        return None
    to = worker.chance.choice(older)
    ref = replace(worker.metadata.refs[MAIN], snapshot_id=to.snapshot_id)
    return Change((SetSnapshotRef(MAIN, ref),))


async def _fast_forward(worker: Worker) -> Change | None:
    """Move the branch that operators create to the head of main."""
    main, branch = worker.metadata.refs.get(MAIN), worker.metadata.refs.get(AUDIT)
    if main is None or branch is None or branch.snapshot_id == main.snapshot_id:
        return None
    if not worker.metadata.is_ancestor(branch.snapshot_id, of=main.snapshot_id):
        return None
    return Change((SetSnapshotRef(AUDIT, replace(branch, snapshot_id=main.snapshot_id)),))


async def _unset(worker: Worker) -> Change | None:
    """Remove the ledger's properties, as an engine does that takes them for leftovers."""
    keys = [key for key in worker.metadata.properties if key.startswith(LEDGER_PREFIX)]
    return Change((RemoveProperties(tuple(keys)),)) if keys else None


# --- Schemas and specs, whose ids are used again -------------------------------------------------


def _add_column(kind: LongType | StringType | IntegerType, prefix: str) -> Step:
    async def step(worker: Worker) -> Change | None:
        metadata = worker.metadata
        field_id = metadata.last_column_id + 1
        added = NestedField(field_id, f"{prefix}_{field_id}", kind, required=False)
        schema = Schema((*metadata.current_schema.fields, added))
        return Change((AddSchema(schema, field_id), SetCurrentSchema(LAST_ADDED)))

    return step


async def _remove_newest_schema(worker: Worker) -> Change | None:
    metadata = worker.metadata
    if len(metadata.schemas) < 2:
        return None
    newest = max(schema.schema_id for schema in metadata.schemas)
    others = [schema.schema_id for schema in metadata.schemas if schema.schema_id != newest]
    return Change((SetCurrentSchema(others[-1]), RemoveSchemas((newest,))))


def _add_spec(transform: str) -> Step:
    async def step(worker: Worker) -> Change | None:
        metadata = worker.metadata
        field_id = max(999, metadata.last_partition_id) + 1
        column = metadata.current_schema.fields[0]
        kind = parse_transform(transform)
        field = PartitionField((column.field_id,), field_id, f"{column.name}_{field_id}", kind)
        spec = PartitionSpec(len(metadata.partition_specs), (field,))
        return Change((AddPartitionSpec(spec), SetDefaultPartitionSpec(LAST_ADDED)))

    return step


async def _remove_newest_spec(worker: Worker) -> Change | None:
    """Remove the newest spec if no manifest uses it, as engines check."""
    metadata = worker.metadata
    if len(metadata.partition_specs) < 2:
        return None
    newest = max(spec.spec_id for spec in metadata.partition_specs)
    for snapshot in metadata.snapshots:
        if any(row.partition_spec_id == newest for row in await worker.rows_of(snapshot)):
            return None
    others = [spec.spec_id for spec in metadata.partition_specs if spec.spec_id != newest]
    return Change((SetDefaultPartitionSpec(others[-1]), RemovePartitionSpecs((newest,))))


_STEPS: dict[Deed, tuple[Step, ...]] = {
    Deed.APPEND: (_append,),
    Deed.OVERWRITE: (_overwrite,),
    Deed.COMPACT: (_compact,),
    Deed.DELETE_ROWS: (delete_rows,),
    Deed.APPLY_DELETES: (apply_deletes,),
    Deed.FAST_FORWARD: (_fast_forward,),
    Deed.TAG: (tag,),
    Deed.REPLACE: (replace_table,),
    Deed.ROLL_BACK: (_roll_back,),
    Deed.UNSET: (_unset,),
    Deed.EVOLVE_SCHEMA: (_add_column(LongType(), "added"),),
    Deed.REUSE_SCHEMA_ID: (
        _add_column(LongType(), "first"),
        _remove_newest_schema,
        _add_column(StringType(), "second"),
    ),
    Deed.EVOLVE_SPEC: (_add_spec("bucket[4]"),),
    Deed.REUSE_SPEC_ID: (_add_spec("bucket[8]"), _remove_newest_spec, _add_spec("truncate[10]")),
}
