"""Opens the catalog that the settings name, and reads tables in calls that block their caller.

Each call opens what it needs and closes it, so a table needs no closing, may be shared by threads,
and survives a fork. Where an event loop runs already (a notebook), the call runs in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import NoSuchTableError, NotFoundError
from committer.extras import named_extra
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.scan.time_travel import find_snapshot
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from committer.settings import default_places
from committer.table_reader import TableReader, open_reader, open_shared_reader
from workers.requests.outside_loops import outside_any_loop
from workers.settings.setting_sources import SettingSources
from workers.settings.worker_setting_names import given_settings

_T = TypeVar("_T")


def find_catalog(
    *,
    catalog_uri: str | None,
    catalog_name: str | None,
    home: str | None,
    properties: Mapping[str, str] | None,
) -> CatalogProperties:
    """Find the catalog of the arguments, the environment, the settings file or the defaults.

    Errors: `SettingsError` naming what is wrong.
    """
    plain = {"catalog.uri": catalog_uri, "catalog.name": catalog_name, "home": home}
    found = SettingSources(given_settings(plain, properties), os.environ)
    catalog = found.catalog
    if catalog.get("uri", "type"):
        return catalog.with_folder(default_places.warehouse(found.home))
    return catalog.with_uri(default_places.catalog_uri(found.home))


@dataclass(frozen=True, slots=True)
class TableHandle:
    """One table of a catalog, as it was when it was read."""

    catalog: CatalogProperties
    loaded: LoadedTable

    @property
    def metadata(self) -> TableMetadata:
        return self.loaded.metadata

    def reading(self, work: Callable[[TableReader], _T]) -> _T:
        """Return the result of work with an open reader."""

        def prepared(reader: TableReader) -> _T:
            reader.prepare(self.loaded.identifier)
            return work(reader)

        return _reading(self.catalog, prepared)

    @contextmanager
    def open_shared_reader(self) -> Iterator[TableReader]:
        """Open a reader for calls from any threads, for as long as the block runs."""
        with open_shared_reader(self.catalog) as reader:
            reader.prepare(self.loaded.identifier)
            yield reader

    def refreshed(self) -> TableHandle:
        """Load the table as it is now.

        Errors: also `NoSuchTableError` where another table has its name.
        """
        fresh = load(self.catalog, self.loaded.identifier)
        known, found = self.metadata.table_uuid, fresh.metadata.table_uuid
        if known != found:
            raise NoSuchTableError(
                f"{fresh.identifier}: the table with uuid {known} is gone, its name is that of the"
                f" table with uuid {found} now; frazil.load_table reads that one"
            )
        return TableHandle(self.catalog, fresh)

    def find_snapshot(self, snapshot_id: int | None, ref: str | None = None) -> Snapshot | None:
        """Return the snapshot of an id or a ref, else the current one. Errors: `NotFoundError`."""
        try:
            return find_snapshot(self.metadata, snapshot_id=snapshot_id, ref=ref)
        except NotFoundError as error:
            listed = "snapshots()" if ref is None else "refs()"
            raise NotFoundError(
                f"{self.loaded.identifier}: {error}; `{listed}` of the table has those there are"
            ) from error


def load(catalog: CatalogProperties, identifier: TableIdentifier) -> LoadedTable:
    """Load the table as its catalog names it now. Errors: those of `frazil.load_table`."""
    with named_extra("frazil.load_table", "read"):
        return _reading(catalog, lambda reader: reader.load(identifier))


def _reading(catalog: CatalogProperties, work: Callable[[TableReader], _T]) -> _T:
    def run() -> _T:
        with open_reader(catalog) as reader:
            return work(reader)

    return outside_any_loop(run)
