"""A SQLite driver connection that loses answers at COMMIT, where alone a swap can be in doubt.

The seam is the driver below SQLAlchemy: the adapter and its engine run as they are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from tests.support.faults.faulty_catalog import Fault

_REFUSE = """
CREATE TRIGGER refuse BEFORE UPDATE ON iceberg_tables
BEGIN SELECT RAISE(ABORT, 'refused by the test'); END
"""


class SqlFaults:
    """Faults for the connections of one engine to the database file at `path`."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self._path = path
        self._planned: Fault | None = None
        self._sent: list[tuple[str, Any]] = []
        self._held: list[list[tuple[str, Any]]] = []
        self._cause = (sqlite3.SQLITE_IOERR, "disk I/O error")
        self._impatient = False
        event.listen(engine, "checkout", self._set_patience)
        event.listen(engine, "do_connect", self._connect)
        event.listen(engine, "before_cursor_execute", self._remember)
        event.listen(engine, "begin", self._forget)

    @contextmanager
    def befall(self, fault: Fault) -> Iterator[None]:
        """Apply the fault to the one swap that is made inside the block."""
        match fault:
            case Fault.REJECTED:
                with self._other() as other:
                    other.execute(_REFUSE)
                yield
                with self._other() as other:
                    other.execute("DROP TRIGGER refuse")
            case Fault.UNAVAILABLE:
                self._impatient = True
                with self._other() as other:
                    other.execute("BEGIN IMMEDIATE")
                    yield
                self._impatient = False
            case _:
                self._planned = fault
                yield
                assert self._planned is None, "the fault met no COMMIT"

    def fail_commits_with(self, code: int, message: str) -> None:
        """Raise the driver's error of a lost answer, in place of a disk error."""
        self._cause = (code, message)

    def land_late(self) -> list[int]:
        """Run the transactions that were held back, each unless an UPDATE of it finds its row
        changed; return the number of rows that each UPDATE changed.
        """
        held, self._held = self._held, []
        counts: list[int] = []
        with self._other() as other:
            for updates in held:
                other.execute("BEGIN IMMEDIATE")
                changed = [other.execute(*update).rowcount for update in updates]
                other.execute("COMMIT" if all(changed) else "ROLLBACK")
                counts += changed
        return counts

    @contextmanager
    def _other(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            yield connection

    def _set_patience(self, connection: Any, *_: Any) -> None:
        # A test that waited for the lock that it holds itself would wait in vain.
        connection.execute(f"PRAGMA busy_timeout = {1 if self._impatient else 5_000}")

    def _remember(self, *arguments: Any) -> None:
        statement, parameters = arguments[2], arguments[3]
        if statement.startswith("UPDATE"):
            self._sent.append((statement, parameters))

    def _forget(self, *_: Any) -> None:
        self._sent = []

    def _connect(self, *arguments: Any) -> None:
        faults = self

        class Connection(sqlite3.Connection):
            def commit(self) -> None:
                fault, faults._planned = faults._planned, None
                if fault in (None, Fault.LOST_REPLY):
                    super().commit()
                else:
                    super().rollback()
                if fault is Fault.LANDS_LATE:
                    assert faults._sent
                    faults._held.append(faults._sent)
                if fault is not None:
                    raise faults._lost_answer()

        arguments[3]["factory"] = Connection

    def _lost_answer(self) -> sqlite3.OperationalError:
        error = sqlite3.OperationalError(self._cause[1])
        error.sqlite_errorcode = self._cause[0]
        return error
