"""Keeps SQLite connections on the file that bears the database's name now.

An open connection follows the file, not its name. If the file is moved, deleted, or replaced by a
backup, commits would still go into the old file, which no process opens again, and would be
reported as done: in WAL mode SQLite does not notice. So the file is compared before each use and
once more under the write lock, and a name without a file is an outage, never a reason to make an
empty catalog. Between that comparison and COMMIT lie microseconds, which SQLite cannot close.

`sql_engine` has the meaning of the errors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

_FILE = "frazil.file"


def follow_name(engine: Engine, path: Path, *, create: bool = True) -> None:
    """Guard all connections of an engine. Only its first one may make the file, if `create`."""
    path = path.absolute()
    made = not create

    def connecting(
        _: Dialect, entry: ConnectionPoolEntry, arguments: list[Any], options: dict[str, Any]
    ) -> None:
        entry.info[_FILE] = _identity(path)
        if made:
            arguments[0] = f"{path.as_uri()}?mode=rw"
            options["uri"] = True

    def connected(_: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
        nonlocal made
        before = entry.info[_FILE]
        entry.info[_FILE] = _identity(path)
        if before not in (None, entry.info[_FILE]):
            raise _moved(path)
        made = True

    def check(entry_info: dict[Any, Any]) -> None:
        if entry_info.get(_FILE) is None or entry_info[_FILE] != _identity(path):
            raise _moved(path)

    def taken(_: DBAPIConnection, entry: ConnectionPoolEntry, __: PoolProxiedConnection) -> None:
        check(entry.info)

    def begun(connection: Connection) -> None:
        check(connection.info)

    event.listen(engine, "do_connect", connecting)
    event.listen(engine, "connect", connected)
    event.listen(engine, "checkout", taken)
    event.listen(engine, "begin", begun)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _moved(path: Path) -> DisconnectionError:
    return DisconnectionError(f"the file `{path}` was moved, deleted or replaced")
