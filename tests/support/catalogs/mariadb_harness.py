"""The SQL catalog on a real MariaDB, behind a proxy that loses answers at COMMIT."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pymysql

from committer.catalog.sql.sql_catalog import SchemaVersion
from tests.support.catalogs.sql_server_harness import SqlServerHarness
from tests.support.faults.fault_proxy import FaultProxy
from tests.support.servers.mariadb_server import USER, MariaDbServer

REFUSE = (
    "CREATE TRIGGER refuse BEFORE UPDATE ON iceberg_tables FOR EACH ROW"
    " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by the test'"
)
ALLOW = "DROP TRIGGER refuse"
# A query, and nothing behind it. `READ COMMITTED` is none.
COMMIT = b"\x03COMMIT"


class MariaDbHarness(SqlServerHarness):
    """A catalog in a database of its own."""

    commit = COMMIT

    def __init__(self, server: MariaDbServer, proxy: FaultProxy, database: str) -> None:
        super().__init__(server.address, proxy, server.uri(database))
        self.server = server
        self.database = database

    @classmethod
    async def open(
        cls,
        server: MariaDbServer,
        *,
        schema_version: SchemaVersion = "V1",
        answer_s_max: float = 20.0,
    ) -> MariaDbHarness:
        proxy = await FaultProxy(server.address).__aenter__()
        harness = cls(server, proxy, server.new_database())
        return await harness.connect(schema_version, answer_s_max)

    def refuse(self) -> None:
        self.execute(REFUSE)

    def allow(self) -> None:
        self.execute(ALLOW)

    def run(self, updates: Sequence[tuple[str, Any]]) -> None:
        host, port = self.address
        with closing(
            pymysql.connect(host=host, port=port, user=USER, database=self.database)
        ) as connection:
            counts = [connection.cursor().execute(*update) for update in updates]
            if all(counts):
                connection.commit()

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements in this database, past the catalog."""
        return self.server.execute(self.database, *statements)
