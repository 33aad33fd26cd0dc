"""The SQL catalog on a real PostgreSQL, behind a proxy that loses answers at COMMIT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from committer.catalog.sql.sql_catalog import SchemaVersion
from tests.support.catalogs.sql_server_harness import SqlServerHarness
from tests.support.faults.fault_proxy import FaultProxy
from tests.support.servers.postgres_server import PostgresServer, execute

REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = '{state}'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON iceberg_tables FOR EACH ROW EXECUTE FUNCTION refuse()
"""
ALLOW = "DROP FUNCTION refuse CASCADE"
# `READ COMMITTED` is none.
COMMIT = b"COMMIT\0"


class PostgresHarness(SqlServerHarness):
    """A catalog in a database or a schema of its own."""

    commit = COMMIT

    def __init__(self, server: PostgresServer, proxy: FaultProxy, uri: str) -> None:
        super().__init__(server.address, proxy, uri)
        self.server = server

    @classmethod
    async def open(
        cls,
        server: PostgresServer,
        *,
        database: str = "",
        schema_version: SchemaVersion = "V1",
        answer_s_max: float = 20.0,
    ) -> PostgresHarness:
        """Open a catalog in this database, else in a schema of its own."""
        uri = server.uri(database) if database else server.new_schema()
        harness = cls(server, await FaultProxy(server.address).__aenter__(), uri)
        return await harness.connect(schema_version, answer_s_max)

    def refuse(self) -> None:
        self.execute(REFUSE.format(state="P0001"))

    def allow(self) -> None:
        self.execute(ALLOW)

    def run(self, updates: Sequence[tuple[str, Any]]) -> None:
        with psycopg.connect(self.uri) as connection:
            counts = [connection.execute(one.encode(), values).rowcount for one, values in updates]
            if not all(counts):
                connection.rollback()

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run statements at this place, past the catalog."""
        return execute(self.uri, statement)
