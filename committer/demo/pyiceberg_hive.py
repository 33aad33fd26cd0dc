"""PyIceberg's client of a Hive metastore, for the releases that it does not know yet.

PyIceberg 0.12 asks for a table by a call that a metastore 4 no longer has. The call that replaces
it is in the same client, and every release since 2.3 answers it.
"""

from __future__ import annotations

from typing import Any

from hive_metastore.ttypes import GetTableRequest, NoSuchObjectException
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import NoSuchTableError


class MetastoreCatalog(HiveCatalog):  # type: ignore[misc]  # PyIceberg has no types for us
    """Reads tables of any metastore from 2.3 on."""

    def _get_hive_table(self, open_client: Any, database_name: str, table_name: str) -> Any:
        request = GetTableRequest(dbName=database_name, tblName=table_name)
        try:
            return open_client.get_table_req(request).table
        except NoSuchObjectException as error:
            raise NoSuchTableError(f"{database_name}.{table_name}") from error
