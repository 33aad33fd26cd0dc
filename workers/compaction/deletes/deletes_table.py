"""A table as a rewrite of delete files has read it: its state, its groups, what its tasks need.

Runs on the driver only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.scan.scan_filter import ScanFilter
from committer.iceberg.scan.time_travel import find_snapshot
from committer.iceberg.values.locations import data_folder
from committer.ledger_entry import MAIN
from committer.request.table_identifier import TableIdentifier
from committer.table_reader import TableReader, open_reader
from workers.compaction.deletes.delete_groups import (
    DeletesGroup,
    group_equalities,
    group_positions,
)
from workers.compaction.deletes.deletes_options import DeletesOptions
from workers.compaction.deletes.live_deletes import LiveDeletes, read_live_deletes
from workers.compaction.group_writer import RewriteTarget
from workers.files.deletes.position_delete_writer import DeleteForm
from workers.files.store_access import StoreAccess
from workers.files.vended_keys import access_of_tasks
from workers.read.shared_read import TableRead
from workers.settings.session_settings import with_session_settings
from workers.settings.worker_settings import WorkerSettings, load_settings

_VECTORS = 3


@dataclass(frozen=True, slots=True)
class DeletesTable:
    """One state of a table. `snapshot`: the head of the branch, None of an empty table."""

    options: DeletesOptions
    settings: WorkerSettings
    metadata: TableMetadata
    snapshot: Snapshot | None
    access: StoreAccess
    reader: TableReader

    @property
    def form(self) -> DeleteForm:
        """How new deletes are stored: as deletion vectors from format version 3 on."""
        if self.metadata.format_version >= _VECTORS:
            return "vectors"
        is_file = self.options.granularity(self.metadata.properties) == "file"
        return "files" if is_file else "partitions"

    def live_deletes(self) -> LiveDeletes:
        """Read the deletes. Errors: as `plan_files`."""
        return read_live_deletes(self.metadata, self.snapshot, self.reader.read)

    def plan(self, live: LiveDeletes) -> list[DeletesGroup]:
        """Plan the groups that are worth rewriting. Errors: `SettingsError`."""
        options = self.options
        if options.purpose == "convert equality":
            return group_equalities(live, self._chooses(), options.files_min)
        sizes = options.sizes(self.metadata.properties)
        return group_positions(live, sizes, self._chooses(), self.form)

    def _chooses(self) -> _Chooser:
        asked = ScanFilter(self.metadata, self.metadata.current_schema, self.options.where)
        return _Chooser(asked)

    @property
    def read(self) -> TableRead:
        return TableRead.of(self.metadata, names=())

    @property
    def target(self) -> RewriteTarget:
        """How delete files are written."""
        metadata = self.metadata
        properties = {k: v for k, v in metadata.properties.items() if k.startswith("write.")}
        schema, spec = metadata.current_schema, metadata.default_spec
        return RewriteTarget(metadata.location, schema, spec, properties, self.access)


@dataclass(frozen=True, slots=True)
class _Chooser:
    """Chooses the delete files of partitions that may have rows of a filter."""

    asked: ScanFilter

    def __call__(self, file: DataFile) -> bool:
        return self.asked.residual(file.spec_id)(file.partition) is not None


@contextmanager
def open_deletes_table(options: DeletesOptions) -> Iterator[DeletesTable]:
    """Load the table as it is now, for as long as the block runs.

    Errors: `SettingsError`, those of `TableReader.load`, `NotFoundError` for a branch that is not
    there.
    """
    settings = load_settings(with_session_settings(options.settings))
    with open_reader(settings.catalog) as reader:
        metadata = reader.load(TableIdentifier.parse(options.table)).metadata
        ref = None if options.branch == MAIN else options.branch
        folder = data_folder(metadata.location, metadata.properties)
        access = access_of_tasks(settings.access, reader.credential(folder))
        snapshot = find_snapshot(metadata, ref=ref)
        yield DeletesTable(options, settings, metadata, snapshot, access, reader)
