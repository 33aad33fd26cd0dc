"""The SQL catalog beyond the contract: layout, classes of errors, other clients."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event
from sqlalchemy.dialects import postgresql

from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.catalog.sql.sql_engine import open_engine
from committer.catalog.sql.sql_errors import Fault as DatabaseFault
from committer.catalog.sql.sql_errors import fault_of
from committer.catalog.sql.sql_layout import Statements
from committer.errors import (
    AccessError,
    InvalidMetadataError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    SettingsError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.ports.pointer_swap import Committed, Unknown
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage
from tests.catalog.swap_racer import race
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.catalogs.catalogs import SqliteHarness, make_schema_v0
from tests.support.catalogs.interfered_storage import InterferedStorage
from tests.support.catalogs.plain_namespaces import WAREHOUSE
from tests.support.faults.faulty_catalog import Fault

FLIGHTS = TableIdentifier(("db",), "flights")


@asynccontextmanager
async def open_catalog(path: Path, *, name: str = "frazil") -> AsyncIterator[SqlCatalog]:
    catalog = await SqlCatalog.open(uri=f"sqlite:///{path}", name=name, storage=InterferedStorage())
    yield catalog
    await catalog.close()


@asynccontextmanager
async def open_hooked(engine: Engine) -> AsyncIterator[SqlCatalog]:
    catalog = await SqlCatalog.on_engine(engine=engine, name="frazil", storage=InterferedStorage())
    yield catalog
    await catalog.close()


@asynccontextmanager
async def open_harness(folder: Path) -> AsyncIterator[SqliteHarness]:
    harness = await SqliteHarness.open(folder / "catalog.db")
    yield harness
    await harness.close()


def rows(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement).fetchall()


# --- The layout ----------------------------------------------------------------------------------


async def test_new_database_has_exactly_the_layout_of_schema_v1(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    async with open_catalog(path):
        columns = "SELECT name, type, pk FROM pragma_table_info('{}')"
        assert rows(path, columns.format("iceberg_tables")) == [
            ("catalog_name", "VARCHAR(255)", 1),
            ("table_namespace", "VARCHAR(255)", 2),
            ("table_name", "VARCHAR(255)", 3),
            ("metadata_location", "VARCHAR(1000)", 0),
            ("previous_metadata_location", "VARCHAR(1000)", 0),
            ("iceberg_type", "VARCHAR(5)", 0),
        ]
        assert rows(path, columns.format("iceberg_namespace_properties")) == [
            ("catalog_name", "VARCHAR(255)", 1),
            ("namespace", "VARCHAR(255)", 2),
            ("property_key", "VARCHAR(255)", 3),
            ("property_value", "VARCHAR(1000)", 0),
        ]


async def test_rows_are_written_as_other_clients_write_them(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    table = build_table(warehouse=WAREHOUSE)
    swap = build_swap(table)
    async with open_catalog(path) as catalog:
        await catalog.create_namespace(("db",))
        await catalog.create_table(table)
        key, first = ("frazil", "db", "flights"), table.metadata_location
        assert rows(path, "SELECT * FROM iceberg_tables") == [(*key, first, None, "TABLE")]
        await catalog.swap(swap)
        second = swap.metadata_location
        assert rows(path, "SELECT * FROM iceberg_tables") == [(*key, second, first, "TABLE")]
    properties = rows(path, "SELECT * FROM iceberg_namespace_properties")
    assert properties == [("frazil", "db", "exists", "true")]


async def test_database_of_schema_v0_is_used_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    make_schema_v0(path)
    layout = rows(path, "SELECT sql FROM sqlite_master ORDER BY name")
    table = build_table(warehouse=WAREHOUSE)
    async with open_catalog(path) as catalog:
        await catalog.create_namespace(("db",))
        await catalog.create_table(table)
        assert isinstance(await catalog.swap(build_swap(table)), Committed)
    assert rows(path, "SELECT sql FROM sqlite_master ORDER BY name") == layout


async def test_row_without_type_is_a_table_and_a_view_is_not_but_holds_its_name(
    tmp_path: Path,
) -> None:
    path = tmp_path / "catalog.db"
    async with open_catalog(path) as catalog:
        rows(
            path,
            "INSERT INTO iceberg_tables VALUES ('frazil', 'db', 'old', 'x', NULL, NULL), "
            "('frazil', 'db', 'flights', 'y', NULL, 'VIEW')",
        )
        assert await catalog.list_tables(("db",)) == [TableIdentifier(("db",), "old")]
        assert await catalog.current_location(TableIdentifier(("db",), "old")) == "x"
        with pytest.raises(NoSuchTableError):
            await catalog.current_location(FLIGHTS)
        with pytest.raises(NoSuchTableError):
            await catalog.drop_table(FLIGHTS)
        with pytest.raises(TableAlreadyExistsError):
            await catalog.create_table(build_table(warehouse=WAREHOUSE))


async def test_namespace_names_the_folder_of_its_tables_as_pyiceberg_lets_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "catalog.db"
    async with open_catalog(path) as catalog:
        rows(
            path,
            "INSERT INTO iceberg_namespace_properties VALUES ('frazil', 'a.b', 'location', 'x'), "
            "('other', 'a', 'location', 'y'), ('frazil', 'a', 'owner', 'z')",
        )
        assert await catalog.default_location(("a", "b")) == "x"
        assert await catalog.default_location(("a",)) is None


async def test_view_keeps_its_namespace(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    async with open_catalog(path) as catalog:
        await catalog.create_namespace(("db",))
        view = "INSERT INTO iceberg_tables VALUES ('frazil', 'db', 'v', 'x', NULL, 'VIEW')"
        rows(path, view)
        with pytest.raises(NamespaceNotEmptyError, match="db"):
            await catalog.drop_namespace(("db",))


async def test_namespace_keeps_the_mark_by_which_others_know_it(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    async with open_catalog(path) as catalog:
        rows(path, "INSERT INTO iceberg_namespace_properties VALUES ('frazil', 'db', 'a', 'x')")
        await catalog.set_namespace_properties(("db",), {"b": "y"}, removed=("a",))
        assert sorted(rows(path, "SELECT * FROM iceberg_namespace_properties")) == [
            ("frazil", "db", "b", "y"),
            ("frazil", "db", "exists", "true"),
        ]
        with pytest.raises(UnsupportedError, match="`exists`"):
            await catalog.set_namespace_properties(("db",), {}, removed=("exists",))
        with pytest.raises(UnsupportedError, match="1001 characters"):
            await catalog.set_namespace_properties(("db",), {"b": "z" * 1001})
        assert await catalog.namespace_properties(("db",)) == {"b": "y"}


async def test_row_without_a_location_breaks_the_specification(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    async with open_catalog(path) as catalog:
        rows(
            path,
            "INSERT INTO iceberg_tables VALUES ('frazil', 'db', 'flights', NULL, NULL, 'TABLE')",
        )
        with pytest.raises(InvalidMetadataError, match=r"db\.flights"):
            await catalog.load(FLIGHTS)


async def test_catalogs_of_other_names_in_one_database_do_not_see_each_other(
    tmp_path: Path,
) -> None:
    path = tmp_path / "catalog.db"
    table = build_table(warehouse=WAREHOUSE)
    async with open_catalog(path) as ours, open_catalog(path, name="other") as other:
        await ours.create_namespace(("db",))
        await ours.create_table(table)
        assert await other.list_namespaces() == []
        with pytest.raises(NoSuchTableError):
            await other.current_location(FLIGHTS)


async def test_database_outlives_a_power_cut_and_readers_do_not_block_it(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'catalog.db'}")
    async with open_hooked(engine):
        with engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_swap_for_a_database_server_is_one_standard_update() -> None:
    statement = Statements("frazil", has_type=True).swap
    # The stubs of SQLAlchemy leave the constructor of a dialect untyped.
    compiled = statement.compile(dialect=postgresql.dialect())  # type: ignore[no-untyped-call]
    text = " ".join(str(compiled).replace("::VARCHAR", "").split())
    assert text.startswith(
        "UPDATE iceberg_tables SET metadata_location=%(location)s, "
        "previous_metadata_location=%(base)s WHERE"
    )
    assert "iceberg_tables.metadata_location = %(base)s" in text


# --- Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (sqlite3.SQLITE_BUSY, "database is locked"),
        (sqlite3.SQLITE_IOERR, "disk I/O error"),
        (sqlite3.SQLITE_READONLY, "attempt to write a readonly database"),
        (sqlite3.SQLITE_CONSTRAINT, "constraint failed"),
    ],
)
async def test_any_error_at_commit_is_unknown_whether_or_not_it_was_applied(
    tmp_path: Path, code: int, message: str
) -> None:
    async with open_harness(tmp_path) as harness:
        table = build_table(warehouse=WAREHOUSE)
        await harness.catalog.create_namespace(("db",))
        await harness.catalog.create_table(table)
        harness.faults.fail_commits_with(code, message)
        for fault in (Fault.REQUEST_LOST, Fault.LOST_REPLY):
            with harness.befall(fault):
                assert await harness.catalog.swap(build_swap(table)) == Unknown(message)


async def test_lost_answer_of_a_create_is_settled_by_repeating_it(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        table = build_table(warehouse=WAREHOUSE)
        await harness.catalog.create_namespace(("db",))
        for fault in (Fault.REQUEST_LOST, Fault.LOST_REPLY):
            with harness.befall(fault), pytest.raises(Exception, match="disk I/O error"):
                await harness.catalog.create_table(table)
        await harness.catalog.create_table(table)
        assert await harness.catalog.load(FLIGHTS) == table


async def test_read_only_database_is_an_access_error_and_can_still_be_read(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    table = build_table(warehouse=WAREHOUSE)
    async with open_catalog(path) as catalog:
        await catalog.create_namespace(("db",))
        await catalog.create_table(table)
    engine = open_engine(f"sqlite:///file:{path}?mode=ro&uri=true")
    async with open_hooked(engine) as catalog:
        assert await catalog.current_location(FLIGHTS) == table.metadata_location
        with pytest.raises(AccessError, match="readonly"):
            await catalog.swap(build_swap(table))
        with pytest.raises(AccessError, match="readonly"):
            await catalog.probe()


async def test_missing_folder_of_the_database_is_a_wrong_setting(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/absent/catalog.db"
    with pytest.raises(SettingsError, match="the folder must exist"):
        await SqlCatalog.open(uri=uri, name="frazil", storage=InterferedStorage())


async def test_file_that_is_no_database_is_a_wrong_setting(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    path.write_bytes(b"certainly no database" * 1000)
    with pytest.raises(SettingsError, match="no intact database"):
        await SqlCatalog.open(uri=f"sqlite:///{path}", name="frazil", storage=InterferedStorage())


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("/just/a/path.db", "expected `sqlite:"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        ("nosuchdb://user:hunter2@host/db", "no such kind of database"),
        ("oracle://user:hunter2@host/db", "Oracle is not supported"),
        ("mssql://user:hunter2@host/db", "SQL Server is not supported"),
        ("jdbc:mariadb://host/db?user=u&password=hunter2&useSSL=true", "parameter `useSSL`"),
        ("jdbc:postgresql://host/db?password=hunter2&gssLib=x", "JDBC parameter `gssLib`"),
    ],
)
async def test_unusable_uri_is_a_wrong_setting_whose_message_keeps_the_password(
    uri: str, expected: str
) -> None:
    with pytest.raises(SettingsError, match=expected) as refused:
        await SqlCatalog.open(uri=uri, name="frazil", storage=InterferedStorage())
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        ("42501", DatabaseFault.FORBIDDEN),
        ("28P01", DatabaseFault.FORBIDDEN),
        ("25006", DatabaseFault.FORBIDDEN),
        ("22001", DatabaseFault.REFUSED),
        ("23505", DatabaseFault.REFUSED),
        ("40001", DatabaseFault.OVERTAKEN),
        ("40P01", DatabaseFault.OVERTAKEN),
        ("57P01", DatabaseFault.UNAVAILABLE),
        (None, DatabaseFault.UNAVAILABLE),
    ],
)
def test_errors_of_a_database_server_are_told_apart_by_their_sqlstate(
    state: str | None, fault: DatabaseFault
) -> None:
    class ServerError(Exception):
        sqlstate = state

    assert fault_of(ServerError("words that no code parses")) is fault


# --- The probe -----------------------------------------------------------------------------------


async def test_probe_refuses_a_database_that_ignores_the_condition(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'catalog.db'}")

    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def forget_condition(*arguments: Any) -> tuple[str, Any]:
        statement, parameters = arguments[2], arguments[3]
        if statement.startswith("UPDATE"):
            return "UPDATE iceberg_tables SET metadata_location = ?", parameters[:1]
        return statement, parameters

    async with open_hooked(engine) as catalog:
        with pytest.raises(SettingsError, match="condition on its `metadata_location`"):
            await catalog.probe()


async def test_probe_refuses_a_database_that_does_not_count_rows(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'catalog.db'}")

    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def count_nothing(*arguments: Any) -> tuple[str, Any]:
        statement, parameters = arguments[2], arguments[3]
        if statement.startswith("UPDATE"):
            return "SELECT 1 WHERE 0", ()
        return statement, parameters

    async with open_hooked(engine) as catalog:
        with pytest.raises(SettingsError, match="does not count"):
            await catalog.probe()


async def test_probe_refuses_a_database_that_keeps_what_was_rolled_back(tmp_path: Path) -> None:
    """As a pooler does that commits each statement by itself."""
    path = tmp_path / "catalog.db"
    engine = open_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "rollback")
    def commit(connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        if driver.in_transaction:
            driver.execute("COMMIT")

    async with open_hooked(engine) as catalog:
        with pytest.raises(SettingsError, match="stay although it was rolled back"):
            await catalog.probe()
    assert rows(path, "SELECT * FROM iceberg_tables") == []


# --- Several processes ---------------------------------------------------------------------------


@pytest.mark.thorough
async def test_two_processes_that_swap_one_table_lose_nothing_and_leave_one_chain(
    tmp_path: Path,
) -> None:
    wins, racers = 50, ("left", "right")
    uri, storage = f"sqlite:///{tmp_path / 'catalog.db'}", LocalStorage()
    catalog = await SqlCatalog.open(uri=uri, name="frazil", storage=storage)
    table = build_table(
        warehouse=f"file:{tmp_path}/warehouse",
        properties={"write.metadata.previous-versions-max": "1000"},
    )
    await catalog.create_namespace(("db",))
    await catalog.create_table(table)

    spawn = multiprocessing.get_context("spawn")
    start = spawn.Barrier(len(racers))
    processes = [
        spawn.Process(target=race, args=(uri, "db.flights", racer, wins, start)) for racer in racers
    ]
    for process in processes:
        process.start()
    for process in processes:
        await asyncio.to_thread(process.join)
    assert [process.exitcode for process in processes] == [0, 0]

    final = await catalog.load(FLIGHTS)
    won = {name for name, value in final.metadata.properties.items() if value == "won"}
    assert won == {f"{racer}-{number}" for racer in racers for number in range(wins)}
    chain = [entry.metadata_file for entry in final.metadata.metadata_log]
    assert chain[0] == table.metadata_location
    assert len(chain) == len(set(chain)) == wins * len(racers)
    await catalog.close()
    await storage.close()


@pytest.mark.thorough
async def test_new_database_may_be_opened_by_several_at_once(tmp_path: Path) -> None:
    storage = InterferedStorage()
    for number in range(10):
        uri = f"sqlite:///{tmp_path / f'{number}.db'}"
        opening = [SqlCatalog.open(uri=uri, name="frazil", storage=storage) for _ in range(4)]
        for catalog in await asyncio.gather(*opening):
            await catalog.probe()
            await catalog.close()
