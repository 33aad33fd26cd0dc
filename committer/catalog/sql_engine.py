"""Connects to the catalog's database: the engine, and the meaning of a dialect's errors.

All that is special to SQLite or PostgreSQL lives here. No statement on the catalog's tables does.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from committer.catalog.sqlite_file import follow_name
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    InvalidMetadataError,
    InvariantError,
    NotFoundError,
    SettingsError,
)

JournalMode = Literal["wal", "delete"]

_WRITES = "catalog_writes"
_SERVER_THREADS = 8


class Fault(Enum):
    """The kind of a database error, for a caller whose transaction has not been committed."""

    UNAVAILABLE = "the database did not answer, or another connection holds its lock"
    FORBIDDEN = "the database refuses this user, or is read-only"
    REFUSED = "the database refuses this change"
    DAMAGED = "the database file is damaged or is no database"


_SQLITE_FAULTS = {
    sqlite3.SQLITE_PERM: Fault.FORBIDDEN,
    sqlite3.SQLITE_READONLY: Fault.FORBIDDEN,
    sqlite3.SQLITE_AUTH: Fault.FORBIDDEN,
    sqlite3.SQLITE_CONSTRAINT: Fault.REFUSED,
    sqlite3.SQLITE_TOOBIG: Fault.REFUSED,
    sqlite3.SQLITE_CORRUPT: Fault.DAMAGED,
    sqlite3.SQLITE_NOTADB: Fault.DAMAGED,
}
# SQLSTATE classes and states, the longer one first in the search.
_SQLSTATE_FAULTS = {
    "25006": Fault.FORBIDDEN,  # read-only transaction
    "28": Fault.FORBIDDEN,  # authorisation
    "42501": Fault.FORBIDDEN,  # insufficient privilege
    "22": Fault.REFUSED,  # data, such as a value too long for its column
    "23": Fault.REFUSED,  # integrity constraint
    "P0001": Fault.REFUSED,  # raised by a trigger
    "XX001": Fault.DAMAGED,
    "XX002": Fault.DAMAGED,
}


def open_engine(
    uri: str,
    *,
    busy_timeout_ms: int = 5_000,
    journal_mode: JournalMode | None = "wal",
    create: bool = True,
) -> Engine:
    """Build the engine of a SQLAlchemy URL, say `sqlite:////abs/path/catalog.db`; do not connect.

    `busy_timeout_ms` is how long SQLite waits for another connection's lock. Journal mode "delete"
    is for file systems without shared memory (network mounts), where the write-ahead log cannot be;
    None keeps that of the file. Without `create` no SQLite file is made.

    Errors: `SettingsError` for a URL that names no database, or whose driver is not installed;
    `NotFoundError` for a SQLite file that is missing and is not to be made.
    """
    try:
        url = make_url(uri)
        engine = create_engine(url)
    except NoSuchModuleError as error:
        raise SettingsError(
            f"catalog uri: no such kind of database: `{urlsplit(uri).scheme}`"
        ) from error
    except ArgumentError as error:
        raise SettingsError(
            "catalog uri: expected a form such as `sqlite:////abs/path/catalog.db`"
        ) from error
    except ImportError as error:
        raise SettingsError(
            f"catalog uri: the driver of `{url.drivername}` is not installed: {error}"
        ) from error
    if engine.dialect.name == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise SettingsError("catalog uri: SQLite needs a file, which other processes can open")
        _prepare_sqlite(engine, busy_timeout_ms=busy_timeout_ms, journal_mode=journal_mode)
        _follow_file(engine, create=create)
    return engine


def threads(engine: Engine) -> int:
    """Return how many calls may be in the database at once.
    SQLite has one writer; more would wait."""
    return 1 if engine.dialect.name == "sqlite" else _SERVER_THREADS


def writing(engine: Engine) -> Engine:
    """Return the same engine for transactions that write."""
    return engine.execution_options(**{_WRITES: True})


def fault_of(error: BaseException) -> Fault:
    """Classify a database error by its code, never by its text."""
    origin = getattr(error, "orig", None) or error
    code = getattr(origin, "sqlite_errorcode", None)
    if code is not None:
        return _SQLITE_FAULTS.get(code & 0xFF, Fault.UNAVAILABLE)
    state = getattr(origin, "sqlstate", None) or getattr(origin, "pgcode", None) or ""
    return _SQLSTATE_FAULTS.get(state) or _SQLSTATE_FAULTS.get(state[:2]) or Fault.UNAVAILABLE


def frazil_error(error: SQLAlchemyError) -> FrazilError:
    """Return the error to raise for a transaction that was surely not committed."""
    fault = fault_of(error)
    message = f"catalog database: {fault.value}: {cause_of(error)}"
    match fault:
        case Fault.UNAVAILABLE:
            return CatalogUnavailableError(message)
        case Fault.FORBIDDEN:
            return AccessError(message)
        case Fault.DAMAGED:
            return InvalidMetadataError(message)
        case Fault.REFUSED:
            return InvariantError(message)


def open_error(error: SQLAlchemyError, engine: Engine) -> FrazilError:
    """Return the error to raise for the first connection of a process."""
    where = engine.url.render_as_string(hide_password=True)
    if _is_missing_folder(error):
        return SettingsError(
            f"catalog uri: cannot open {where}: the folder must exist and be writable"
        )
    if fault_of(error) is Fault.DAMAGED:
        return SettingsError(f"catalog uri: {where} is no intact database: {cause_of(error)}")
    return frazil_error(error)


def no_catalog(engine: Engine) -> NotFoundError:
    """Return the error to raise where there is no catalog, and none is to be made."""
    where = engine.url.render_as_string(hide_password=True)
    return NotFoundError(f"there is no catalog at {where} yet: `frazil table create` makes one")


def cause_of(error: BaseException) -> str:
    """Return the driver's own words, without the statement and its parameters."""
    return str(getattr(error, "orig", None) or error).strip()


def _is_missing_folder(error: SQLAlchemyError) -> bool:
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_CANTOPEN


def _prepare_sqlite(
    engine: Engine, *, busy_timeout_ms: int, journal_mode: JournalMode | None
) -> None:
    def connected(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        # The driver would begin a transaction at the first write only; here they begin explicitly.
        connection.isolation_level = None
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {busy_timeout_ms:d}")
            # A commit that was answered survives a power cut.
            cursor.execute("PRAGMA synchronous = FULL")
            if journal_mode is not None:
                _set_journal_mode(connection, journal_mode)

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


def _set_journal_mode(connection: DBAPIConnection, journal_mode: JournalMode) -> None:
    """Ask for the mode; keep the file's present one where others use it or it may not be changed.

    Both modes are safe, and all connections follow the file.
    """
    with closing(connection.cursor()) as cursor:
        try:
            cursor.execute(f"PRAGMA journal_mode = {journal_mode}")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY):
                raise
