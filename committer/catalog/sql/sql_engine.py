"""Connects to the catalog's database: the engine, and the settings of each connection.

All that is special to SQLite lives here and in `sqlite_file`, to PostgreSQL in `postgresql`, to
MariaDB in `mariadb`. The meaning of errors is in `sql_errors`. No statement on the catalog's tables
is here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from committer.catalog.sql.sql_address import database_url
from committer.catalog.sql.sql_errors import no_catalog
from committer.catalog.sql.sqlite_file import follow_name
from committer.errors import InvariantError, SettingsError
from committer.extras import named_extra

# Connects by the arguments that SQLAlchemy makes of a URL, for answers within so many seconds.
_Connect = Callable[[list[Any], dict[str, Any], float], object]

_WRITES = "catalog_writes"
_SERVER_THREADS = 8
# How long SQLite waits for another connection's lock.
_BUSY_MS = 5_000


def open_engine(
    uri: str,
    *,
    driver_properties: Mapping[str, str] | None = None,
    answer_s_max: float = 20.0,
    create: bool = True,
) -> Engine:
    """Build the engine of a database's address, say `sqlite:////abs/path/catalog.db`; do not
    connect.

    `answer_s_max`: how long a server has for an answer. Without `create` no SQLite file is made,
    and one that is there keeps its journal mode. `driver_properties`: see `database_url`.

    Errors: `SettingsError` for an address that names no database, or whose driver is not installed;
    `NotFoundError` for a SQLite file that is missing and is not to be made.
    """
    url = database_url(uri, driver_properties or {})
    match url.get_backend_name():
        case "sqlite":
            return _open_sqlite(url, create=create)
        case "postgresql":
            with named_extra("a catalog on PostgreSQL", "postgres"):
                from committer.catalog.sql.postgresql import connect
            return _open_server(url, connect, answer_s_max, use_native_hstore=False)
        case "mariadb":
            with named_extra("a catalog on MariaDB", "mariadb"):
                from committer.catalog.sql.mariadb import connect as connect_mariadb
            return _open_server(url, connect_mariadb, answer_s_max)
        case other:
            raise InvariantError(f"no adapter for the database `{other}`")


def _open_sqlite(url: URL, *, create: bool) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise SettingsError("catalog uri: SQLite needs a file, which other processes can open")
    engine = create_engine(url)
    _prepare_sqlite(engine, sets_wal=create)
    _follow_file(engine, create=create)
    return engine


def _open_server(url: URL, connect: _Connect, answer_s_max: float, **settings: bool) -> Engine:
    """Build the engine of a server.

    Each statement runs in READ COMMITTED, whatever the server's default is: so a swap that has
    waited for another one sees what that has made of the row.
    """
    engine = create_engine(
        url,
        isolation_level="READ COMMITTED",
        pool_size=_SERVER_THREADS,
        max_overflow=0,
        **settings,
    )

    def do_connect(
        _: Dialect, __: ConnectionPoolEntry, arguments: list[Any], options: dict[str, Any]
    ) -> object:
        return connect(arguments, options, answer_s_max)

    event.listen(engine, "do_connect", do_connect)
    return engine


def threads(engine: Engine) -> int:
    """Return how many calls may be in the database at once.
    SQLite has one writer; more would wait."""
    return 1 if engine.dialect.name == "sqlite" else _SERVER_THREADS


def writing(engine: Engine) -> Engine:
    """Return the same engine for transactions that write."""
    return engine.execution_options(**{_WRITES: True})


def reading(engine: Engine) -> Engine:
    """Return the same engine for single statements that read: a server needs one trip for each."""
    if engine.dialect.name == "sqlite":
        return engine
    return engine.execution_options(isolation_level="AUTOCOMMIT")


@contextmanager
def connected(engine: Engine) -> Iterator[Connection]:
    """Connect. Errors: `SQLAlchemyError`.

    SQLAlchemy sets and resets what `reading` asks for without wrapping the driver's errors: on a
    connection whose server has died they would be taken for bugs of ours.
    """
    try:
        with engine.connect() as connection:
            yield connection
    except _driver_errors(engine) as error:
        raise OperationalError(None, None, error) from error


def _driver_errors(engine: Engine) -> type[Exception]:
    driver = engine.dialect.dbapi
    if driver is None:
        raise InvariantError("an engine without a driver")
    return driver.Error


def _prepare_sqlite(engine: Engine, *, sets_wal: bool) -> None:
    def connected(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        # The driver would begin a transaction at the first write only; here they begin explicitly.
        connection.isolation_level = None
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {_BUSY_MS:d}")
            # A commit that was answered survives a power cut.
            cursor.execute("PRAGMA synchronous = FULL")
            if sets_wal:
                _set_wal(connection)

    def begun(connection: Connection) -> None:
        # Taking the write lock first keeps "locked" before the first write: surely nothing applied.
        if connection.get_execution_options().get(_WRITES):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)


def _follow_file(engine: Engine, *, create: bool) -> None:
    database = str(engine.url.database)
    if database.startswith("file:"):  # SQLite's own URI form may name what is no path
        return
    if not create and _is_absent(Path(database)):
        raise no_catalog(engine)
    follow_name(engine, Path(database), create=create)


def _is_absent(path: Path) -> bool:
    """Return whether a file is absent; SQLite reports a folder that cannot be searched."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _set_wal(connection: DBAPIConnection) -> None:
    """Ask for the write-ahead log; keep the file's present mode where others use it or it may not
    be changed. Both are safe, and all connections follow the file.
    """
    with closing(connection.cursor()) as cursor:
        try:
            cursor.execute("PRAGMA journal_mode = wal")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY):
                raise
