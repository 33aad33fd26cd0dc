"""The SQL catalog on a real MariaDB beyond the contract: races, refusals, a server that dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pymysql
import pytest
from pyiceberg.catalog.sql import SqlCatalog as ForeignCatalog

from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    NoSuchTableError,
    SettingsError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Rejected, Swap, Unknown
from committer.ports.storage import Storage
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.catalogs.mariadb_harness import ALLOW, COMMIT, REFUSE, MariaDbHarness
from tests.support.faults.fault_proxy import Fault
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.mariadb_server import USER, MariaDbServer, running_mariadb

pytestmark = [pytest.mark.server, pytest.mark.heavy, pytest.mark.timeout(120)]

FLIGHTS = TableIdentifier(("db",), "flights")
ROUNDS = 20
SWAPPERS = 8
NAME_CHARS_MAX = 255


@pytest.fixture
async def harness(mariadb_server: MariaDbServer) -> AsyncIterator[MariaDbHarness]:
    harness = await MariaDbHarness.open(mariadb_server)
    yield harness
    await harness.close()


@pytest.fixture
def mortal() -> Iterator[MariaDbServer]:
    with running_mariadb() as server:
        yield server


async def create(harness: MariaDbHarness, name: str = "db.flights") -> LoadedTable:
    table = build_table(name, warehouse=harness.warehouse)
    await harness.catalog.create_namespace(table.identifier.namespace)
    await harness.catalog.create_table(table)
    return table


async def written(storage: Storage, catalog: Catalog, base: LoadedTable) -> Swap:
    swap = build_swap(base)
    await storage.create(catalog.objects_before(swap))
    return swap


async def open_on(server: MariaDbServer, database: str) -> SqlCatalog:
    return await SqlCatalog.open(
        uri=server.uri(database), name="frazil", storage=LocalStorage(), create=True
    )


async def refusal(server: MariaDbServer, database: str) -> str:
    with pytest.raises(SettingsError) as refused:
        await open_on(server, database)
    return str(refused.value)


# --- Swaps ---------------------------------------------------------------------------------------


async def test_each_of_twenty_races_of_eight_swappers_has_one_winner(
    harness: MariaDbHarness,
) -> None:
    base = await create(harness)
    clients = [await harness.another() for _ in range(SWAPPERS)]
    for _ in range(ROUNDS):
        swaps = [await written(harness.storage, client, base) for client in clients]
        answers = await asyncio.gather(
            *(client.swap(swap) for client, swap in zip(clients, swaps, strict=True))
        )
        (winner,) = [answer for answer in answers if isinstance(answer, Committed)]
        assert sum(isinstance(answer, Conflict) for answer in answers) == SWAPPERS - 1
        base = winner.table
        assert await harness.catalog.current_location(FLIGHTS) == base.metadata_location


@pytest.mark.parametrize(
    ("number", "answer"), [(1213, Conflict), (1020, Conflict), (1644, Rejected)]
)
async def test_what_the_server_says_before_the_commit_has_its_answer(
    harness: MariaDbHarness, number: int, answer: type[object]
) -> None:
    base = await create(harness)
    harness.execute(REFUSE.replace("MESSAGE_TEXT", f"MYSQL_ERRNO = {number}, MESSAGE_TEXT"))
    swap = await written(harness.storage, harness.catalog, base)
    assert isinstance(await harness.catalog.swap(swap), answer)
    harness.execute(ALLOW)
    assert isinstance(await harness.catalog.swap(swap), Committed)


async def test_an_update_that_found_and_not_changed_its_row_counts_it(
    harness: MariaDbHarness,
) -> None:
    """A rename of a table to its own name changes nothing, and must not look like an absent one."""
    await create(harness)
    with pytest.raises(TableAlreadyExistsError):
        await harness.catalog.rename_table(FLIGHTS, FLIGHTS)


async def test_a_lock_that_another_client_holds_is_given_up(mariadb_server: MariaDbServer) -> None:
    harness = await MariaDbHarness.open(mariadb_server, answer_s_max=1.0)
    base = await create(harness)
    swap = await written(harness.storage, harness.catalog, base)
    host, port = mariadb_server.address
    with closing(
        pymysql.connect(host=host, port=port, user=USER, database=harness.database)
    ) as other:
        other.cursor().execute("SELECT * FROM iceberg_tables FOR UPDATE")
        with pytest.raises(CatalogUnavailableError):
            await harness.catalog.swap(swap)
    assert isinstance(await harness.catalog.swap(swap), Committed)
    await harness.close()


# --- Names ---------------------------------------------------------------------------------------


async def test_names_that_differ_by_a_letters_case_or_a_space_are_different_tables(
    harness: MariaDbHarness,
) -> None:
    """The database's own collation would take all of them for one."""
    tables = [await create(harness, f"db.{name}") for name in ("flights", "Flights", "flïghts")]
    for table in tables:
        assert await harness.catalog.load(table.identifier) == table
    with pytest.raises(NoSuchTableError):
        await harness.catalog.load(TableIdentifier(("db",), "flights "))


async def test_names_of_the_full_length_fit_the_key_and_longer_ones_are_refused(
    mariadb_server: MariaDbServer,
) -> None:
    storage = MemoryStorage()
    wide = "\N{SNOWFLAKE}" * NAME_CHARS_MAX
    catalog = await SqlCatalog.open(
        uri=mariadb_server.uri(mariadb_server.new_database()), name=wide, storage=storage
    )
    try:
        await catalog.create_namespace((wide,))
        built = build_table(warehouse="memory://warehouse")
        table = LoadedTable(TableIdentifier((wide,), wide), built.metadata, built.metadata_location)
        await catalog.create_table(table)
        assert await catalog.list_tables((wide,)) == [table.identifier]
        longer = TableIdentifier((wide,), f"{wide}x")
        with pytest.raises(UnsupportedError, match="256 characters"):
            await catalog.rename_table(table.identifier, longer)
        with pytest.raises(UnsupportedError, match="1001 characters"):
            await catalog.set_namespace_properties((wide,), {"comment": "x" * 1001})
        assert await catalog.namespace_properties((wide,)) == {}
    finally:
        await catalog.close()
        await storage.close()


# --- Servers on which a commit could be lost -----------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("read_only", "1", "name the primary"),
        ("innodb_flush_log_at_trx_commit", "2", "set it to 1"),
    ],
)
async def test_a_server_that_could_lose_a_commit_is_refused(
    mariadb_server: MariaDbServer, setting: str, value: str, words: str
) -> None:
    database = mariadb_server.new_database()
    before = mariadb_server.execute("", f"SELECT @@{setting}")[0][0]
    mariadb_server.execute("", f"SET GLOBAL {setting} = {value}")
    try:
        said = await refusal(mariadb_server, database)
    finally:
        mariadb_server.execute("", f"SET GLOBAL {setting} = {before}")
    assert words in said
    assert f"`{setting}`" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("ENGINE InnoDB", "COLLATE utf8mb4_nopad_bin"),
        ("ENGINE InnoDB COLLATE utf8mb4_bin", "COLLATE utf8mb4_nopad_bin"),
        ("ENGINE MEMORY COLLATE utf8mb4_nopad_bin", "of MEMORY"),
    ],
)
async def test_tables_of_others_that_take_names_for_one_another_are_refused(
    mariadb_server: MariaDbServer, options: str, words: str
) -> None:
    database = mariadb_server.new_database()
    await (await open_on(mariadb_server, database)).close()
    for table in ("iceberg_tables", "iceberg_namespace_properties"):
        (text,) = mariadb_server.execute(database, f"SHOW CREATE TABLE {table}")
        columns = text[1].rpartition(")")[0].replace(" COLLATE utf8mb4_nopad_bin", "")
        mariadb_server.execute(database, f"DROP TABLE {table}", f"{columns}) {options}")
    said = await refusal(mariadb_server, database)
    assert words in said
    for table in ("iceberg_tables", "iceberg_namespace_properties"):
        mend = "ENGINE InnoDB, CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
        mariadb_server.execute(database, f"ALTER TABLE {table} {mend}")
    await (await open_on(mariadb_server, database)).close()


async def test_an_absent_database_and_a_wrong_user_are_one_sentence(
    mariadb_server: MariaDbServer,
) -> None:
    assert "check user, password, database" in await refusal(mariadb_server, "nowhere")
    with pytest.raises(SettingsError, match="check user, password, database"):
        await SqlCatalog.open(
            uri=mariadb_server.uri("mysql", user="nobody"), name="frazil", storage=LocalStorage()
        )


async def test_a_missing_right_is_named_with_the_grant(harness: MariaDbHarness) -> None:
    base = await create(harness)
    harness.execute(
        "CREATE OR REPLACE USER reader IDENTIFIED BY ''",
        f"GRANT SELECT ON {harness.database}.* TO reader",
    )
    reader = await SqlCatalog.open(
        uri=harness.server.uri(harness.database, user="reader"),
        name="frazil",
        storage=harness.storage,
        create=False,
    )
    with pytest.raises(AccessError, match="grant the user SELECT, INSERT, UPDATE and DELETE"):
        await reader.swap(await written(harness.storage, reader, base))
    await reader.close()


# --- The server's death --------------------------------------------------------------------------


async def test_a_commit_whose_server_is_killed_is_unknown_and_what_was_answered_is_kept(
    mortal: MariaDbServer,
) -> None:
    harness = await MariaDbHarness.open(mortal)
    base = await create(harness)
    first = await harness.catalog.swap(await written(harness.storage, harness.catalog, base))
    assert isinstance(first, Committed)
    swap = await written(harness.storage, harness.catalog, first.table)
    held = harness.proxy.spoil(COMMIT, Fault.HOLD_ANSWER)
    task = asyncio.create_task(harness.catalog.swap(swap))
    await held.wait()
    await asyncio.to_thread(mortal.kill)
    await harness.proxy.turn_to(mortal.address)
    assert isinstance(await task, Unknown)
    with pytest.raises(CatalogUnavailableError):
        await harness.catalog.swap(swap)
    await asyncio.to_thread(mortal.start)
    other = await harness.another()
    # Its COMMIT had been answered when the server died.
    assert await other.current_location(FLIGHTS) == swap.metadata_location
    await harness.close()


async def test_a_read_over_a_connection_whose_server_was_killed_says_so(
    mortal: MariaDbServer,
) -> None:
    harness = await MariaDbHarness.open(mortal)
    base = await create(harness)
    direct = await SqlCatalog.open(
        uri=mortal.uri(harness.database), name="frazil", storage=harness.storage
    )
    assert await direct.current_location(FLIGHTS) == base.metadata_location
    await asyncio.to_thread(mortal.kill)
    for _ in range(2):
        with pytest.raises(CatalogUnavailableError, match="catalog database: the database did not"):
            await direct.current_location(FLIGHTS)
    await asyncio.to_thread(mortal.start)
    assert await direct.current_location(FLIGHTS) == base.metadata_location
    await direct.close()
    await harness.close()


# --- Beside PyIceberg ----------------------------------------------------------------------------


async def test_pyiceberg_reads_our_tables_and_its_commits_are_kept(
    mariadb_server: MariaDbServer, tmp_path: Path
) -> None:
    database, storage = mariadb_server.new_database(), LocalStorage()
    ours = await SqlCatalog.open(uri=mariadb_server.uri(database), name="frazil", storage=storage)
    table = build_table(warehouse=f"file://{tmp_path}/warehouse")
    await ours.create_namespace(("db",))
    await ours.create_table(table)
    uri = mariadb_server.uri(database).replace("mariadb:", "mysql+pymysql:")
    with closing(ForeignCatalog("frazil", uri=uri)) as theirs:
        assert theirs.list_tables("db") == [("db", "flights")]
        with theirs.load_table("db.flights").transaction() as transaction:
            transaction.set_properties(theirs="yes")
    seen = await ours.load(FLIGHTS)
    assert seen.metadata.properties["theirs"] == "yes"
    assert isinstance(await ours.swap(await written(storage, ours, table)), Conflict)
    assert isinstance(await ours.swap(await written(storage, ours, seen)), Committed)
    await ours.close()
    await storage.close()
