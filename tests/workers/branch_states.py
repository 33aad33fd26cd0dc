"""States of branches for tests that neither read the table nor publish."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from committer.catalog.catalog_properties import CatalogProperties
from committer.iceberg.metadata.snapshot import Snapshot
from committer.request.table_identifier import TableIdentifier
from committer.table_reader import open_reader
from tests.support.builders.table_builders import build_metadata
from workers.branches.branch_state import BranchState
from workers.files.store_access import USUAL_ACCESS
from workers.settings.wap import TO_MAIN
from workers.settings.worker_settings import WorkerSettings


@contextmanager
def branch_state(
    folder: Path, *, snapshot: Snapshot | None = None, format_version: int = 2
) -> Iterator[BranchState]:
    """Open a reader on a catalog that is not there yet, of a table below the folder."""
    catalog = CatalogProperties("frazil", {"uri": f"sqlite:///{folder}/catalog.db"})
    with open_reader(catalog) as reader:
        yield BranchState(
            TableIdentifier.parse("db.t"),
            TO_MAIN,
            WorkerSettings(catalog, f"file:{folder}/requests", "none"),
            build_metadata(location=f"file:{folder}/t", format_version=format_version),
            snapshot,
            USUAL_ACCESS,
            reader,
        )
