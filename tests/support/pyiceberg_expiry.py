"""PyIceberg's expiry of a table of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tests.support.integration.real_harness import CATALOG, RealHarness


@contextmanager
def pyiceberg_table(harness: RealHarness, name: str) -> Iterator[Table]:
    uri = f"sqlite:///{harness.catalog_file}"
    catalog = SqlCatalog(CATALOG, uri=uri, warehouse=harness.warehouse_location)
    yield catalog.load_table(name)
    catalog.close()


def expire_all_old(table: Table) -> None:
    """Expire all snapshots except the heads of branches and those with tags."""
    tomorrow = datetime.now().astimezone() + timedelta(days=1)
    table.maintenance.expire_snapshots().older_than(tomorrow).commit()
