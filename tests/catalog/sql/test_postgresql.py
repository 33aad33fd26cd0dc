"""The SQL catalog on a real PostgreSQL beyond the contract: races, refusals, a server that dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.catalog.sql.sql_engine import open_engine, writing
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    NoSuchTableError,
    SettingsError,
    UnsupportedError,
)
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    GroupCommitted,
    GroupConflict,
    LoadedTable,
    SwapAnswer,
    Unknown,
)
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.catalogs.interfered_storage import InterferedStorage
from tests.support.catalogs.plain_namespaces import WAREHOUSE
from tests.support.catalogs.postgres_harness import ALLOW, COMMIT, REFUSE, PostgresHarness
from tests.support.faults.fault_proxy import Fault as NetworkFault
from tests.support.faults.statement_pooler import StatementPooler
from tests.support.integration.real_harness import until
from tests.support.servers.postgres_server import (
    LOCKED,
    PostgresServer,
    running_postgres,
    standby_of,
)

pytestmark = pytest.mark.server
FLIGHTS = TableIdentifier(("db",), "flights")
SWAPPERS = 8
TOUCH = b"UPDATE iceberg_tables SET iceberg_type = 'TABLE' WHERE table_name = %s"


@pytest.fixture
async def harness(postgres_server: PostgresServer) -> AsyncIterator[PostgresHarness]:
    async with opened(postgres_server) as harness:
        yield harness


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresServer]:
    """Start a server that the tests of this module may kill."""
    with running_postgres() as server:
        yield server


@asynccontextmanager
async def opened(
    server: PostgresServer, *, answer_s_max: float = 20.0
) -> AsyncIterator[PostgresHarness]:
    database = server.new_database()
    harness = await PostgresHarness.open(server, database=database, answer_s_max=answer_s_max)
    try:
        yield harness
    finally:
        await harness.close()


def database_of(harness: PostgresHarness) -> str:
    return harness.uri.rpartition("/")[2]


def set_default(harness: PostgresHarness, name: str, value: str) -> None:
    """Set what new connections to the harness's database begin with."""
    harness.execute(f"ALTER DATABASE {database_of(harness)} SET {name} = '{value}'")


async def create(harness: PostgresHarness, name: str = "db.flights") -> LoadedTable:
    table = build_table(name, warehouse=WAREHOUSE)
    await harness.catalog.create_namespace(("db",))
    await harness.catalog.create_table(table)
    return table


async def open_and_close(uri: str, *, create: bool = True) -> None:
    """Open a catalog as a committer does, and probe it."""
    storage = InterferedStorage()
    catalog = await SqlCatalog.open(uri=uri, name="frazil", storage=storage, create=create)
    try:
        await catalog.probe()
    finally:
        await catalog.close()


async def refusal(uri: str, *, create: bool = True) -> FrazilError:
    with pytest.raises(FrazilError) as refused:
        await open_and_close(uri, create=create)
    assert "\n" not in str(refused.value)
    return refused.value


# --- Races ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
async def test_of_eight_swappers_of_one_base_exactly_one_wins_and_seven_lose(
    postgres_server: PostgresServer, isolation: str
) -> None:
    async with opened(postgres_server) as harness:
        set_default(harness, "default_transaction_isolation", isolation)
        base = await create(harness)
        swappers = [await harness.another() for _ in range(SWAPPERS)]
        for _ in range(20):
            swaps = [build_swap(base, properties={"by": str(n)}) for n in range(SWAPPERS)]
            answers = await asyncio.gather(
                *(each.swap(swap) for each, swap in zip(swappers, swaps, strict=True))
            )
            (winner,) = [one for one in answers if isinstance(one, Committed)]
            assert sum(isinstance(one, Conflict) for one in answers) == SWAPPERS - 1
            base = winner.table
            assert await harness.catalog.current_location(FLIGHTS) == base.metadata_location


async def test_swaps_run_in_read_committed_whatever_the_servers_default_is(
    harness: PostgresHarness,
) -> None:
    set_default(harness, "default_transaction_isolation", "serializable")
    engine = open_engine(harness.uri)
    with writing(engine).connect() as connection:
        found = connection.exec_driver_sql("SHOW transaction_isolation").scalar()
    assert found == "read committed"
    engine.dispose()


@pytest.mark.parametrize("state", ["40001", "40P01"])
async def test_serialization_failure_before_the_commit_is_a_conflict(
    harness: PostgresHarness, state: str
) -> None:
    base = await create(harness)
    harness.execute(REFUSE.format(state=state))
    assert await harness.catalog.swap(build_swap(base)) == Conflict()
    harness.execute(ALLOW)
    assert isinstance(await harness.catalog.swap(build_swap(base)), Committed)


async def test_two_groups_that_wait_for_each_other_end_in_a_conflict_and_one_lands_as_a_whole(
    harness: PostgresHarness,
) -> None:
    """Another client that locks the rows in another order than ours: a deadlock, which the server
    ends by refusing one of the two.
    """
    bases = [await create(harness, name) for name in ("db.flights", "db.trains")]
    swaps = [build_swap(base) for base in bases]
    with closing(psycopg.connect(harness.uri)) as other:
        other.execute(b"SET deadlock_timeout = '1h'")  # ours is the one that is refused
        other.execute(TOUCH, ("trains",))
        ours = asyncio.create_task(harness.catalog.swap_together(swaps))
        await until_waiting(harness)
        await asyncio.to_thread(other.execute, TOUCH, ("flights",))
        other.commit()
    assert await ours == GroupConflict()
    for base in bases:
        found = await harness.catalog.current_location(base.identifier)
        assert found == base.metadata_location
    assert isinstance(await harness.catalog.swap_together(swaps), GroupCommitted)


async def test_group_takes_one_trip_a_table_beside_begin_and_commit(
    harness: PostgresHarness,
) -> None:
    bases = [await create(harness, name) for name in ("db.flights", "db.trains", "db.ships")]
    before = harness.proxy.requests
    await harness.catalog.swap_together([build_swap(base) for base in bases])
    assert harness.proxy.requests - before == 5


async def test_a_swap_takes_three_trips_and_a_question_one(harness: PostgresHarness) -> None:
    base = await create(harness)
    before = harness.proxy.requests
    await harness.catalog.swap(build_swap(base))
    assert harness.proxy.requests - before == 3
    before = harness.proxy.requests
    await harness.catalog.current_location(FLIGHTS)
    assert harness.proxy.requests - before == 1


# --- Names and columns ---------------------------------------------------------------------------


async def test_name_or_location_that_no_column_can_hold_is_refused_before_a_file_is_written(
    harness: PostgresHarness,
) -> None:
    await harness.catalog.create_namespace(("db",))
    long_name = build_table(f"db.{'x' * 256}", warehouse=WAREHOUSE)
    long_location = build_table(warehouse=f"{WAREHOUSE}/{'y' * 1000}")
    for table in (long_name, long_location):
        with pytest.raises(UnsupportedError, match="characters: a SQL catalog takes at most"):
            await harness.catalog.create_table(table)
    with pytest.raises(UnsupportedError, match="has 256 characters"):
        await harness.catalog.create_namespace(("z" * 127, "z" * 128))
    table = await create(harness)
    with pytest.raises(UnsupportedError, match="has 256 characters"):
        await harness.catalog.rename_table(FLIGHTS, long_name.identifier)
    assert [each.location async for each in harness.storage.list(WAREHOUSE)] == [
        table.metadata_location
    ]


async def test_names_and_locations_of_the_full_length_are_used(harness: PostgresHarness) -> None:
    name = "n" * 255
    await harness.catalog.create_namespace((name,))
    table = build_table(f"{name}.{name}", warehouse=WAREHOUSE)
    await harness.catalog.create_table(table)
    assert isinstance(await harness.catalog.swap(build_swap(table)), Committed)


@pytest.mark.parametrize("name", ["a\0b", "\N{SNOWMAN}", "\ud800"])
async def test_a_name_that_the_database_cannot_say_is_that_of_no_table(
    postgres_server: PostgresServer, name: str
) -> None:
    postgres_server.execute("postgres", "DROP DATABASE IF EXISTS latin")
    postgres_server.execute("postgres", "CREATE DATABASE latin ENCODING LATIN1 TEMPLATE template0")
    storage = InterferedStorage()
    catalog = await SqlCatalog.open(
        uri=postgres_server.uri("latin"), name="frazil", storage=storage
    )
    with pytest.raises(NoSuchTableError):
        await catalog.current_location(TableIdentifier(("db",), name))
    with pytest.raises(UnsupportedError):
        await catalog.create_namespace((name,))
    await catalog.close()


# --- A server that is refused --------------------------------------------------------------------


async def test_standby_is_refused_and_its_primary_is_not(mortal: PostgresServer) -> None:
    database = mortal.new_database()
    await open_and_close(mortal.uri(database))
    with standby_of(mortal) as standby:
        refused = await refusal(standby.uri(database))
        assert isinstance(refused, SettingsError)
        assert "is a standby" in str(refused) and "target_session_attrs" in str(refused)
        hosts = f"host=127.0.0.1:{standby.port}&host=127.0.0.1:{mortal.port}"
        both = f"postgresql://frazil@/{database}?{hosts}&target_session_attrs=read-write"
        await open_and_close(both)


@pytest.mark.parametrize("value", ["on", "local", "remote_write", "off"])
async def test_server_that_confirms_what_a_crash_takes_back_is_refused(
    harness: PostgresHarness, value: str
) -> None:
    set_default(harness, "synchronous_commit", value)
    uri = harness.uri
    if value != "off":
        await open_and_close(uri)
        return
    refused = await refusal(uri)
    assert isinstance(refused, SettingsError)
    assert "`synchronous_commit` is off" in str(refused)
    await open_and_close(f"{uri}?options=-csynchronous_commit%3Don")


async def test_pooler_in_statement_mode_is_refused_with_the_setting_to_change(
    harness: PostgresHarness,
) -> None:
    async with StatementPooler(harness.server.address) as pooler:
        refused = await refusal(harness.server.uri(database_of(harness), port=pooler.port))
    assert isinstance(refused, SettingsError)
    assert "`pool_mode` of PgBouncer" in str(refused)


async def test_server_that_becomes_unsuitable_later_is_unavailable_and_nothing_is_applied(
    harness: PostgresHarness,
) -> None:
    base = await create(harness)
    set_default(harness, "synchronous_commit", "off")
    end_connections(harness)
    for words in ("connection", "the server confirms commits that"):
        with pytest.raises(CatalogUnavailableError, match=words):
            await harness.catalog.swap(build_swap(base))
    set_default(harness, "synchronous_commit", "on")
    assert isinstance(await harness.catalog.swap(build_swap(base)), Committed)


def end_connections(harness: PostgresHarness) -> None:
    harness.server.execute(
        "postgres",
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        f" WHERE datname = '{database_of(harness)}'",
    )


async def test_wrong_password_user_or_database_is_one_sentence_without_the_password(
    harness: PostgresHarness,
) -> None:
    execute = harness.execute
    execute(f"DROP ROLE IF EXISTS {LOCKED}")
    execute(f"CREATE ROLE {LOCKED} LOGIN PASSWORD 'right'")
    place = f"127.0.0.1:{harness.server.port}/{database_of(harness)}"
    for uri, words in {
        f"postgresql://{LOCKED}:hunter2@{place}": "password authentication failed",
        f"postgresql://{LOCKED}@{place}": "no password supplied",
        f"postgresql://absent@{place}": 'role "absent" does not exist',
        f"postgresql://frazil:hunter2@{place}_absent": "_absent",
        f"postgresql://frazil:hunter2@{place}?sslmode=require": "SSL",
        f"postgresql://frazil:hunter2@{place}?nonsense=hunter2": "nonsense",
    }.items():
        refused = await refusal(uri)
        assert isinstance(refused, SettingsError), refused
        assert words in str(refused) and "hunter2" not in str(refused)


async def test_server_that_is_down_is_waited_for(postgres_server: PostgresServer) -> None:
    with pytest.raises(CatalogUnavailableError):
        await open_and_close("postgresql://frazil@127.0.0.1:1/frazil")


async def test_missing_right_is_named_with_the_grant(harness: PostgresHarness) -> None:
    await create(harness)
    role = f"reader_{database_of(harness)}"
    harness.execute(f"CREATE ROLE {role} LOGIN")
    harness.execute(f"GRANT SELECT ON iceberg_tables, iceberg_namespace_properties TO {role}")
    uri = harness.server.uri(database_of(harness), user=role)
    refused = await refusal(uri)
    assert isinstance(refused, AccessError)
    assert "permission denied for table iceberg_tables; grant the user SELECT" in str(refused)
    harness.execute(f"GRANT INSERT, UPDATE ON iceberg_tables TO {role}")
    await open_and_close(uri)


async def test_tables_that_the_user_may_not_make_are_named_with_the_grant(
    harness: PostgresHarness,
) -> None:
    database = harness.server.new_database()
    role = f"nothing_{database}"
    harness.execute(f"CREATE ROLE {role} LOGIN")
    refused = await refusal(harness.server.uri(database, user=role))
    assert isinstance(refused, AccessError)
    assert "permission denied for schema public" in str(refused) and "CREATE" in str(refused)


async def test_empty_database_is_left_empty_by_a_command_that_makes_nothing(
    postgres_server: PostgresServer,
) -> None:
    database = postgres_server.new_database()
    refused = await refusal(postgres_server.uri(database), create=False)
    assert "there is no catalog at" in str(refused)
    tables = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'iceberg%'"
    assert postgres_server.execute(database, tables) == [(0,)]


# --- A server that goes away ---------------------------------------------------------------------


async def test_connections_that_the_server_has_closed_are_replaced(
    harness: PostgresHarness,
) -> None:
    base = await create(harness)
    end_connections(harness)
    answers: list[SwapAnswer] = []
    for _ in range(2):
        try:
            answers.append(await harness.catalog.swap(build_swap(base)))
        except CatalogUnavailableError:
            continue
    assert isinstance(answers[0], Committed)


@pytest.mark.parametrize("statement", [b"UPDATE iceberg_tables", COMMIT])
async def test_server_that_is_killed_in_the_middle_of_a_swap(
    mortal: PostgresServer, statement: bytes
) -> None:
    async with opened(mortal) as harness:
        base = await create(harness)
        swap = build_swap(base)
        held = harness.proxy.spoil(statement, NetworkFault.HOLD_ANSWER)
        swapping = asyncio.create_task(harness.catalog.swap(swap))
        await held.wait()
        mortal.kill()
        await harness.proxy.turn_to(mortal.address)
        if statement == COMMIT:
            assert isinstance(await swapping, Unknown)
        else:
            with pytest.raises(CatalogUnavailableError):
                await swapping
        with pytest.raises(CatalogUnavailableError):
            await harness.catalog.current_location(FLIGHTS)
        mortal.start()
        expected = swap if statement == COMMIT else base
        found = await harness.catalog.current_location(FLIGHTS)
        assert found == expected.metadata_location
        standing = LoadedTable(FLIGHTS, base.metadata, found)
        assert isinstance(await harness.catalog.swap(build_swap(standing)), Committed)


@pytest.mark.parametrize("statement", [b"UPDATE iceberg_tables", COMMIT])
async def test_server_that_is_killed_in_the_middle_of_a_group_has_all_of_it_or_nothing(
    mortal: PostgresServer, statement: bytes
) -> None:
    async with opened(mortal) as harness:
        bases = [await create(harness, name) for name in ("db.flights", "db.trains")]
        swaps = [build_swap(base) for base in bases]
        held = harness.proxy.spoil(statement, NetworkFault.HOLD_ANSWER)
        swapping = asyncio.create_task(harness.catalog.swap_together(swaps))
        await held.wait()
        mortal.kill()
        await harness.proxy.turn_to(mortal.address)
        if statement == COMMIT:
            assert isinstance(await swapping, Unknown)
        else:
            with pytest.raises(CatalogUnavailableError):
                await swapping
        mortal.start()
        found = [await harness.catalog.current_location(base.identifier) for base in bases]
        expected = swaps if statement == COMMIT else bases
        assert found == [one.metadata_location for one in expected]


@pytest.mark.parametrize("statement", [b"UPDATE iceberg_tables", COMMIT])
async def test_server_that_gives_no_answer_is_given_up(
    postgres_server: PostgresServer, statement: bytes
) -> None:
    async with opened(postgres_server, answer_s_max=0.3) as harness:
        base = await create(harness)
        swap = build_swap(base)
        harness.proxy.spoil(statement, NetworkFault.HOLD_ANSWER)
        if statement == COMMIT:
            assert await harness.catalog.swap(swap) == Unknown(
                "the server gave no answer within 0.3 s"
            )
        else:
            with pytest.raises(CatalogUnavailableError, match="no answer within"):
                await harness.catalog.swap(swap)
        expected = swap if statement == COMMIT else base
        found = await harness.catalog.current_location(FLIGHTS)
        assert found == expected.metadata_location


async def test_swap_behind_one_whose_outcome_is_open_waits_for_its_end(
    harness: PostgresHarness,
) -> None:
    """The row stays locked while another commit is on its way, so none is planned past it."""
    base = await create(harness)
    swap = build_swap(base)
    with closing(psycopg.connect(harness.uri)) as other:
        other.execute(b"UPDATE iceberg_tables SET metadata_location = 'memory://warehouse/theirs'")
        swapping = asyncio.create_task(harness.catalog.swap(swap))
        await until_waiting(harness)
        other.commit()
    assert await swapping == Conflict()


async def until_waiting(harness: PostgresHarness) -> None:
    """Return once a statement waits for a lock."""
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        f" AND datname = '{database_of(harness)}'"
    )

    async def is_waiting() -> bool:
        return harness.execute(waiting) != [(0,)]

    await until(is_waiting, "a statement that waits for a lock")


async def test_transaction_of_a_process_that_stands_still_is_ended_by_the_server(
    harness: PostgresHarness,
) -> None:
    base = await create(harness)
    engine = open_engine(harness.uri, answer_s_max=0.5)
    with writing(engine).connect() as still:
        still.exec_driver_sql("UPDATE iceberg_tables SET metadata_location = 'memory://theirs'")
        assert isinstance(await harness.catalog.swap(build_swap(base)), Committed)
        with pytest.raises(DBAPIError, match="idle-in-transaction timeout"):
            still.commit()
    engine.dispose()
