"""A catalog of each kind as settings of the command, and a view in it that an engine has made."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3  # type: ignore[import-untyped]  # it has no types

from committer.catalog.hive.thrift_connection import Connection
from committer.catalog.hive.thrift_values import Struct, get_struct, struct, structs, text, text_map
from committer.settings.setting_names import variable_of
from tests.support.catalogs.hive_harness import empty
from tests.support.catalogs.rest_harness import RestHarness
from tests.support.servers.dynamodb_server import DynamoDbServer
from tests.support.servers.hive_server import HiveServer
from tests.support.servers.mariadb_server import MariaDbServer
from tests.support.servers.moto_server import MotoServer
from tests.support.servers.postgres_server import PostgresServer, execute
from tests.support.servers.rest_server import RestServer

_VIEW_ROW = "INSERT INTO iceberg_tables VALUES ('frazil', 'db', 'seen', 'x', NULL, 'VIEW')"
_REST_VIEW = {
    "name": "seen",
    "schema": {"type": "struct", "schema-id": 0, "fields": []},
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
        "default-namespace": ["db"],
    },
    "properties": {},
}


@dataclass(frozen=True, slots=True)
class CatalogOfKind:
    """`properties` open it. `make_view` makes the view `db.seen`, past Frazil; `views` lists those
    of `db`; both None where the back end has no views. `keeps_properties`: of namespaces.
    """

    properties: dict[str, str]
    make_view: Callable[[], None] | None = None
    views: Callable[[], list[str]] | None = None
    renames: bool = True
    keeps_properties: bool = True

    @property
    def settings(self) -> dict[str, str]:
        return {variable_of(f"catalog.{name}"): value for name, value in self.properties.items()}


def catalog_of_kind(kind: str, folder: Path, fixture: Callable[[str], Any]) -> CatalogOfKind:
    """Return an empty catalog. `fixture` returns that of a server, by its name."""
    warehouse = {"warehouse": f"file://{folder}/lake"}
    match kind:
        case "sqlite":
            return _sqlite(folder / "catalog.db", warehouse)
        case "files":
            properties = {"type": "hadoop", **warehouse}
            return CatalogOfKind(properties, renames=False, keeps_properties=False)
        case "postgres":
            return _postgres(fixture("postgres_server"), warehouse)
        case "mariadb":
            return _mariadb(fixture("mariadb_server"), warehouse)
        case "dynamodb":
            return _dynamodb(fixture("dynamodb_server"), warehouse)
        case "glue":
            return _glue(fixture("moto_server"), warehouse)
        case "hive":
            return _hive(fixture("hive_server"))
        case "rest":
            return _rest(fixture("rest_server"))
    raise AssertionError(kind)


def _sqlite(path: Path, warehouse: dict[str, str]) -> CatalogOfKind:
    def run(statement: str) -> list[Any]:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()

    return _sql({"uri": f"sqlite:///{path}", **warehouse}, run)


def _postgres(server: PostgresServer, warehouse: dict[str, str]) -> CatalogOfKind:
    uri = server.new_schema()
    return _sql({"uri": uri, **warehouse}, lambda statement: execute(uri, statement))


def _mariadb(server: MariaDbServer, warehouse: dict[str, str]) -> CatalogOfKind:
    database = server.new_database()

    def run(statement: str) -> list[Any]:
        return server.execute(database, statement)

    return _sql({"uri": server.uri(database), **warehouse}, run)


def _sql(properties: dict[str, str], run: Callable[[str], list[Any]]) -> CatalogOfKind:
    def views() -> list[str]:
        found = "SELECT table_name FROM iceberg_tables WHERE iceberg_type = 'VIEW'"
        return [row[0] for row in run(found)]

    def make_view() -> None:
        run(_VIEW_ROW)

    return CatalogOfKind(properties, make_view, views)


def _dynamodb(server: DynamoDbServer, warehouse: dict[str, str]) -> CatalogOfKind:
    options = server.options
    return CatalogOfKind(
        {
            "uri": f"dynamodb://{server.new_table_name()}",
            "dynamodb.endpoint": options.endpoint_url,
            "client.region": options.region,
            **warehouse,
        }
    )


def _glue(server: MotoServer, warehouse: dict[str, str]) -> CatalogOfKind:
    options = server.new_account()

    def opened() -> closing[Any]:
        return closing(
            boto3.client(
                "glue",
                region_name=options.region,
                endpoint_url=options.endpoint_url,
                aws_access_key_id=options.access_key_id,
                aws_secret_access_key=options.secret_access_key,
            )
        )

    view = {
        "Name": "seen",
        "TableType": "VIRTUAL_VIEW",
        "Parameters": {"table_type": "iceberg-view", "metadata_location": "x"},
    }

    def views() -> list[str]:
        with opened() as client:
            found = client.get_tables(DatabaseName="db")["TableList"]
        return [one["Name"] for one in found if one["TableType"] == "VIRTUAL_VIEW"]

    def make_view() -> None:
        with opened() as client:
            client.create_table(DatabaseName="db", TableInput=view)

    properties = {
        "type": "glue",
        "glue.endpoint": options.endpoint_url,
        "client.region": options.region,
        "client.access-key-id": options.access_key_id,
        "client.secret-access-key": options.secret_access_key,
        **warehouse,
    }
    return CatalogOfKind(properties, make_view, views, renames=False)


def _hive(server: HiveServer) -> CatalogOfKind:
    empty(server)

    def call(name: str, arguments: Struct) -> Struct:
        with closing(Connection(*server.address, connect_timeout_s=10, read_timeout_s=60)) as one:
            return one.call(name, arguments)

    def views() -> list[str]:
        named = {1: struct({1: text("db"), 2: text("seen")})}
        entry = get_struct(get_struct(call("get_table_req", named), 0), 1)
        return [entry[1].value] if entry[12].value == "VIRTUAL_VIEW" else []

    def make_view() -> None:
        # As Iceberg Java makes one.
        parameters = {"table_type": "iceberg-view", "metadata_location": "x", "EXTERNAL": "TRUE"}
        descriptor = {1: structs(()), 2: text(""), 7: struct({3: text_map({})})}
        entry = {
            1: text("seen"),
            2: text("db"),
            7: struct(descriptor),
            9: text_map(parameters),
            10: text("select 1"),
            11: text("select 1"),
            12: text("VIRTUAL_VIEW"),
        }
        call("create_table", {1: struct(entry)})

    return CatalogOfKind({"uri": server.uri, "warehouse": server.warehouse}, make_view, views)


def _rest(server: RestServer) -> CatalogOfKind:
    async def clear() -> None:
        harness = await RestHarness.open(server)
        await harness.close()

    def ask(method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(f"{server.url}/v1/{path}", data, headers, method=method)
        with urlopen(request) as answer:
            return json.loads(answer.read() or b"null")

    def views() -> list[str]:
        found = ask("GET", "namespaces/db/views")["identifiers"]
        return [one["name"] for one in found]

    def make_view() -> None:
        ask("POST", "namespaces/db/views", _REST_VIEW)

    asyncio.run(clear())
    return CatalogOfKind(
        {"type": "rest", "uri": server.url, "warehouse": server.warehouse}, make_view, views
    )
