"""The meaning of a database's errors, for a caller whose transaction has not been committed.

Errors are told apart by the driver's code, SQLSTATE or SQLite's own. PostgreSQL alone has no code
for a connection that it refuses: the server's English words stand for it, and other words mean that
it is unavailable.
"""

from __future__ import annotations

import sqlite3
from enum import Enum

from sqlalchemy import Engine
from sqlalchemy.exc import DataError, SQLAlchemyError

from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    InvalidMetadataError,
    NotFoundError,
    SettingsError,
    UnsupportedError,
)


class Fault(Enum):
    """The kind of a database error."""

    UNAVAILABLE = "the database did not answer, or another connection holds its lock"
    OVERTAKEN = "another transaction came first"
    FORBIDDEN = "the database refuses this user, or is read-only"
    REFUSED = "the database refuses this change"
    DAMAGED = "the database file is damaged or is no database"


class UnsuitableServerError(SQLAlchemyError):
    """A server that answers, but on which a commit could be lost. The message says why."""


_SQLITE_FAULTS = {
    sqlite3.SQLITE_PERM: Fault.FORBIDDEN,
    sqlite3.SQLITE_READONLY: Fault.FORBIDDEN,
    sqlite3.SQLITE_AUTH: Fault.FORBIDDEN,
    sqlite3.SQLITE_CONSTRAINT: Fault.REFUSED,
    sqlite3.SQLITE_TOOBIG: Fault.REFUSED,
    sqlite3.SQLITE_CORRUPT: Fault.DAMAGED,
    sqlite3.SQLITE_NOTADB: Fault.DAMAGED,
}
_NO_RIGHT = "42501"
_PROTOCOL_VIOLATION = "08P01"
# SQLSTATE classes and states, the longer one first in the search.
_SQLSTATE_FAULTS = {
    "25006": Fault.FORBIDDEN,  # read-only transaction
    "28": Fault.FORBIDDEN,  # authorization
    _NO_RIGHT: Fault.FORBIDDEN,
    "40001": Fault.OVERTAKEN,  # serialization failure
    "40P01": Fault.OVERTAKEN,  # deadlock
    "22": Fault.REFUSED,  # data, such as a value too long for its column
    "23": Fault.REFUSED,  # integrity constraint
    "P0001": Fault.REFUSED,  # raised by a trigger
    "XX001": Fault.DAMAGED,
    "XX002": Fault.DAMAGED,
}
# Error numbers of MariaDB.
_MARIADB_FAULTS = {
    1020: Fault.OVERTAKEN,  # the row has changed since it was read
    1213: Fault.OVERTAKEN,  # deadlock
    **dict.fromkeys((1044, 1045, 1142, 1143, 1227, 1290, 1698, 1792, 1836), Fault.FORBIDDEN),
    # Values that do not fit, constraints, and a trigger's SIGNAL.
    **dict.fromkeys((1048, 1062, 1264, 1292, 1366, 1406, 1451, 1452, 1644, 1665), Fault.REFUSED),
    **dict.fromkeys((1033, 1034, 1194, 1195, 1712), Fault.DAMAGED),
}
_MARIADB_NO_RIGHT = (1142, 1143)
# Host, user, password or database.
_MARIADB_REFUSED_CONNECTIONS = (1044, 1045, 1049, 1130, 1698)
# Of connections that another attempt does not make succeed.
_REFUSED_CONNECTIONS = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "does not exist",  # role or database
    "is not permitted to log in",
    "permission denied for database",
    "is not currently accepting connections",  # ALLOW_CONNECTIONS false
    "server does not support SSL",
    "certificate verify failed",
    "root certificate file",
    "invalid sslmode value",
    "invalid connection option",
    "invalid port number",
)


def fault_of(error: BaseException) -> Fault:
    """Classify a database error by its code, never by its text."""
    origin = getattr(error, "orig", None) or error
    code = getattr(origin, "sqlite_errorcode", None)
    if code is not None:
        return _SQLITE_FAULTS.get(code & 0xFF, Fault.UNAVAILABLE)
    number = _mariadb_number(error)
    if number is not None:
        return _MARIADB_FAULTS.get(number, Fault.UNAVAILABLE)
    state = _sqlstate(error)
    if not state and isinstance(error, DataError):  # the driver cannot say it, as a NUL in a text
        return Fault.REFUSED
    return _SQLSTATE_FAULTS.get(state) or _SQLSTATE_FAULTS.get(state[:2]) or Fault.UNAVAILABLE


def frazil_error(error: SQLAlchemyError) -> FrazilError:
    """Return the error to raise for a transaction that was surely not committed."""
    if isinstance(error, UnsuitableServerError):
        return CatalogUnavailableError(f"catalog database: the server {cause_of(error)}")
    fault = fault_of(error)
    message = f"catalog database: {fault.value}: {cause_of(error)}{_remedy(error)}"
    match fault:
        case Fault.UNAVAILABLE | Fault.OVERTAKEN:
            return CatalogUnavailableError(message)
        case Fault.FORBIDDEN:
            return AccessError(message)
        case Fault.DAMAGED:
            return InvalidMetadataError(message)
        case Fault.REFUSED:
            return UnsupportedError(message)


def open_error(error: SQLAlchemyError, engine: Engine) -> FrazilError:
    """Return the error to raise for the first connection of a process."""
    where, cause = place_of(engine), cause_of(error)
    if _is_missing_folder(error):
        return SettingsError(
            f"catalog uri: cannot open {where}: the folder must exist and be writable"
        )
    if fault_of(error) is Fault.DAMAGED:
        return SettingsError(f"catalog uri: {where} is no intact database: {cause}")
    if _sqlstate(error) == _PROTOCOL_VIOLATION:
        return SettingsError(
            f"catalog uri: {where} does not keep a transaction on one connection ({cause}): set"
            " `pool_mode` of PgBouncer to `transaction` or `session`"
        )
    if isinstance(error, UnsuitableServerError):
        return SettingsError(f"catalog uri: {where} {cause}")
    if _mariadb_number(error) in _MARIADB_REFUSED_CONNECTIONS or (
        not _sqlstate(error) and any(words in cause for words in _REFUSED_CONNECTIONS)
    ):
        return SettingsError(
            f"catalog uri: {where} refuses the connection ({cause}): check user, password, database"
            " and TLS in the address, `jdbc.user` and `jdbc.password`"
        )
    return frazil_error(error)


def no_catalog(engine: Engine) -> NotFoundError:
    """Return the error to raise where there is no catalog, and none is to be made."""
    return NotFoundError(
        f"there is no catalog at {place_of(engine)} yet: `frazil table create` makes one"
    )


def place_of(engine: Engine) -> str:
    """Return the database's address without secrets: parameters may hold some, too."""
    return engine.url.set(query={}).render_as_string(hide_password=True)


def cause_of(error: BaseException) -> str:
    """Return the driver's own words in one line, without the statement and its parameters."""
    origin = getattr(error, "orig", None) or error
    primary = getattr(getattr(origin, "diag", None), "message_primary", None)
    said, _, _ = str(primary or origin).partition("\n\tIs the server running")  # a question
    return " ".join(said.split())


def _remedy(error: BaseException) -> str:
    if _sqlstate(error) != _NO_RIGHT and _mariadb_number(error) not in _MARIADB_NO_RIGHT:
        return ""
    return (
        "; grant the user SELECT, INSERT, UPDATE and DELETE on `iceberg_tables` and"
        " `iceberg_namespace_properties`, and CREATE on their schema if it is to make them"
    )


def _sqlstate(error: BaseException) -> str:
    origin = getattr(error, "orig", None) or error
    return getattr(origin, "sqlstate", None) or getattr(origin, "pgcode", None) or ""


def _mariadb_number(error: BaseException) -> int | None:
    """Return the error number of MariaDB or its driver; None for an error of another database."""
    origin = getattr(error, "orig", None) or error
    if not type(origin).__module__.startswith("pymysql"):
        return None
    return next((one for one in origin.args[:1] if isinstance(one, int)), 0)


def _is_missing_folder(error: SQLAlchemyError) -> bool:
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_CANTOPEN
