"""A table as the driver reads it: found in the catalog, its metadata, and the access of its tasks.

Never on an executor: what is here knows the settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from committer.errors import NoSuchTableError, NotFoundError, SettingsError
from committer.iceberg.inspection.metadata_tables import SNAPSHOT_KINDS, TABLE_KINDS
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import MAIN, Snapshot
from committer.iceberg.scan.time_travel import find_snapshot, snapshot_schema
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.locations import data_folder
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from committer.table_reader import TableReader, open_reader
from workers.files.store_access import StoreAccess
from workers.files.vended_keys import access_of_tasks
from workers.settings.wap import UnnamedState, is_wap_enabled
from workers.settings.worker_settings import ReadSettings, load_read_settings
from workers.source.read_options import ReadOptions, TimeTravel

KINDS = frozenset((*SNAPSHOT_KINDS, *TABLE_KINDS))
_MARK = "$"


class DriverTable:
    """A table, open on the driver. `kind` is the metadata table that is meant, None for rows."""

    def __init__(
        self,
        settings: ReadSettings,
        reader: TableReader,
        loaded: LoadedTable,
        kind: str | None = None,
    ) -> None:
        self._settings, self._reader = settings, reader
        self._loaded = loaded
        self.kind = kind

    @property
    def name(self) -> str:
        return str(self._loaded.identifier)

    @property
    def metadata(self) -> TableMetadata:
        return self._loaded.metadata

    @property
    def metadata_location(self) -> str:
        return self._loaded.metadata_location

    def read(self, location: str) -> bytes:
        """Read a file that the metadata names. Errors: as `TableReader.read`."""
        return self._reader.read(location)

    def refresh(self) -> None:
        """Load the table as it is now.

        Errors: as `TableReader.load`; `NoSuchTableError` also where another table has its name.
        """
        fresh = self._reader.refreshed(self._loaded)
        known, found = self.metadata.table_uuid, fresh.metadata.table_uuid
        if known != found:
            raise NoSuchTableError(
                f"{self.name}: the table with uuid {known} is gone, its name is that of the table"
                f" with uuid {found} now: start the query anew, with a new checkpoint"
            )
        self._loaded = fresh

    def access(self) -> StoreAccess:
        """Return what the tasks need to reach the table's files."""
        folder = data_folder(self.metadata.location, self.metadata.properties)
        return access_of_tasks(self._settings.access, self._reader.credential(folder))


@contextmanager
def open_table(options: ReadOptions) -> Iterator[DriverTable]:
    """Open the table for as long as the block runs.

    `db.flights$files` is a metadata table, and so is `db.flights.files` where there is no table of
    that name. Errors: `SettingsError`, and those of `TableReader.load`.
    """
    settings = load_read_settings(options.settings)
    with open_reader(settings.catalog) as reader:
        loaded, kind = _load(reader, options.table)
        yield DriverTable(settings, reader, loaded, kind)


def _load(reader: TableReader, name: str) -> tuple[LoadedTable, str | None]:
    owner, mark, kind = name.rpartition(_MARK)
    if mark:
        _check_kind(kind, name)
        return reader.load(TableIdentifier.parse(owner)), kind
    owner, _, kind = name.rpartition(".")
    if kind not in KINDS or "." not in owner:
        return reader.load(TableIdentifier.parse(name)), None
    try:
        return reader.load(TableIdentifier.parse(name)), None
    except NoSuchTableError:
        return reader.load(TableIdentifier.parse(owner)), kind


def _check_kind(kind: str, name: str) -> None:
    if kind not in KINDS:
        raise SettingsError(
            f"`{name}`: there is no metadata table `{kind}`, expected one of"
            f" {', '.join(sorted(KINDS))}"
        )


# --- The state that is read ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadState:
    """The snapshot that is read, None for a table without one, and its schema."""

    snapshot: Snapshot | None
    schema: Schema


def find_state(table: DriverTable, travel: TimeTravel) -> ReadState:
    """Find the state that the options name. Errors: `NotFoundError`, `SettingsError`.

    A snapshot, a time and a tag are read with the schema of the snapshot, a branch and what was
    appended with the current one. Source: Iceberg Java, `SnapshotUtil.schemaFor`.
    """
    metadata = table.metadata
    snapshot = _find_snapshot(table, travel)
    asked = travel.snapshot_id, travel.as_of_ms, travel.tag
    if snapshot is None or asked == (None, None, None):
        return ReadState(snapshot, metadata.current_schema)
    return ReadState(snapshot, snapshot_schema(metadata, snapshot))


def unnamed_state(table: DriverTable, travel: TimeTravel) -> UnnamedState | None:
    """Return a read of main that the session may mean for another branch; None where it cannot."""
    metadata = table.metadata
    if travel.names_head or not is_wap_enabled(metadata.properties):
        return None
    others = frozenset(metadata.branches) - {MAIN}
    return UnnamedState(table.name, others) if others else None


def _find_snapshot(table: DriverTable, travel: TimeTravel) -> Snapshot | None:
    ref = travel.branch or travel.tag
    _check_ref(table, travel)
    try:
        return find_snapshot(
            table.metadata,
            snapshot_id=travel.snapshot_id if travel.up_to is None else travel.up_to,
            ref=ref,
            as_of_ms=travel.as_of_ms,
        )
    except NotFoundError as error:
        listed = "refs" if ref else "snapshots"
        raise NotFoundError(
            f"{table.name}: {error}; `{table.name}${listed}` has those there are"
        ) from None


def _check_ref(table: DriverTable, travel: TimeTravel) -> None:
    for option, name in (("branch", travel.branch), ("tag", travel.tag)):
        ref = table.metadata.refs.get(name) if name else None
        if ref is not None and ref.type != option:
            raise SettingsError(f"option `{option}`: `{name}` of {table.name} is a {ref.type}")
