"""One state of a branch: what it was when it was read, and the way to read it.

Runs on the driver only: knows the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from committer.errors import InvariantError
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.scan.time_travel import find_snapshot
from committer.iceberg.values.locations import data_folder
from committer.ledger_entry import MAIN
from committer.request.table_identifier import TableIdentifier
from committer.table_reader import TableReader, open_reader
from workers.files.store_access import StoreAccess
from workers.files.vended_keys import access_of_tasks
from workers.settings.session_settings import with_session_settings
from workers.settings.wap import Destination
from workers.settings.worker_settings import WorkerSettings, load_settings


@dataclass(frozen=True, slots=True)
class BranchState:
    """`snapshot`: the head of the branch, None of an empty table; that of main where the branch is
    yet to be created. `access`: of tasks, to the files of the table."""

    table: TableIdentifier
    destination: Destination
    settings: WorkerSettings
    metadata: TableMetadata
    snapshot: Snapshot | None
    access: StoreAccess
    reader: TableReader

    @property
    def branch(self) -> str:
        return self.destination.branch

    def require_snapshot(self) -> Snapshot:
        """Return the head of a branch that has files. Errors: `InvariantError`."""
        if self.snapshot is None:
            raise InvariantError(f"files of table `{self.table}`, which has no snapshot")
        return self.snapshot

    def reload_metadata(self) -> TableMetadata:
        """Load the table as it is now. Errors: as `TableReader.load`."""
        return self.reader.load(self.table).metadata


def load_metadata(table: str, settings: Mapping[str, str]) -> TableMetadata:
    """Load a table as it is now. `settings`: as of `open_branch`. Errors: `SettingsError`, those of
    `TableReader.load`."""
    with open_reader(load_settings(with_session_settings(settings)).catalog) as reader:
        return reader.load(TableIdentifier.parse(table)).metadata


@contextmanager
def open_branch(table: str, branch: str, settings: Mapping[str, str]) -> Iterator[BranchState]:
    """Load the table as it is now, for as long as the block runs. Errors: as `open_destination`."""
    with open_destination(table, lambda _: Destination(branch), settings) as state:
        yield state


@contextmanager
def open_destination(
    table: str, choose: Callable[[TableMetadata], Destination], settings: Mapping[str, str]
) -> Iterator[BranchState]:
    """Load the table as it is now, for as long as the block runs. `choose`: where a change of it
    lands; `settings`: those of the call, which the session's complete.

    Errors: `SettingsError`, those of `TableReader.load`, `NotFoundError` for a branch that is not
    there, and is not to be created.
    """
    loaded = load_settings(with_session_settings(settings))
    with open_reader(loaded.catalog) as reader:
        identifier = TableIdentifier.parse(table)
        metadata = reader.load(identifier).metadata
        folder = data_folder(metadata.location, metadata.properties)
        destination = choose(metadata)
        yield BranchState(
            identifier,
            destination,
            loaded,
            metadata,
            _head(metadata, destination),
            access_of_tasks(loaded.access, reader.credential(folder)),
            reader,
        )


def _head(metadata: TableMetadata, destination: Destination) -> Snapshot | None:
    """Return the snapshot that a change begins on."""
    branch = destination.branch
    is_new = destination.create_branch and branch not in metadata.refs
    return find_snapshot(metadata, ref=None if branch == MAIN or is_new else branch)
