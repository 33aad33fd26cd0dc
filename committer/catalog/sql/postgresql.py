"""Connects to PostgreSQL: to a primary that keeps what it confirms, and no longer than it answers.

Each new connection is checked, not the first one alone: after a fail-over, the same address may be
that of a standby, whose answers are stale.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus

from committer.catalog.sql.sql_errors import UnsuitableServerError

# libpq's own defaults would notice a dead peer after hours. Parameters of the URL win.
_CONNECTION = {
    "application_name": "frazil",
    # Else it is the database's, which may be one that cannot say each name.
    "client_encoding": "utf8",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
_CHECK = """
SELECT pg_is_in_recovery(), current_setting('synchronous_commit'),
  set_config('idle_in_transaction_session_timeout', %s, false)
"""
_WAKE_S = 0.1


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that gives up a server which does not answer."""

    answer_s_max = 20.0

    def wait(self, gen: PQGen[RV], interval: float = _WAKE_S, timeout: float | None = None) -> RV:
        """Wait for an answer. An answer that is still on its way ends the connection: the next
        statement must not take it for its own.
        """
        try:
            return super().wait(gen, interval, self.answer_s_max if timeout is None else timeout)
        except UnicodeError as error:
            raise psycopg.DataError("a text is not valid Unicode") from error
        except psycopg.OperationalError as error:
            if self.closed or self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(
                f"the server gave no answer within {self.answer_s_max:g} s"
            ) from error


def connect(
    arguments: list[Any], options: dict[str, Any], answer_s_max: float
) -> BoundedConnection:
    """Connect, by what SQLAlchemy makes of the URL.

    Errors: those of the driver; `UnsuitableServerError`.
    """
    # A pooler may give each transaction another server, which knows no statement prepared here.
    settings = {**_CONNECTION, **options, "prepare_threshold": None}
    try:
        connection = BoundedConnection.connect(*arguments, **settings)
    except psycopg.ProgrammingError as error:
        raise UnsuitableServerError(f"has an unusable address: {error}") from error
    connection.answer_s_max = answer_s_max
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: BoundedConnection) -> None:
    """Require a primary that keeps what it confirms, and have it end a transaction of a process
    that stands still: its lock on a table's row holds up every other client.
    """
    connection.autocommit = True
    idle_ms = str(int(connection.answer_s_max * 1000))
    answer = connection.execute(_CHECK, (idle_ms,)).fetchone()
    in_recovery, synchronous_commit, _ = answer or (True, "off", "")
    connection.autocommit = False
    if in_recovery:
        raise UnsuitableServerError(
            "is a standby, which answers with what was current some time ago: name the primary, or"
            " several hosts with `target_session_attrs=read-write`"
        )
    if synchronous_commit == "off":
        raise UnsuitableServerError(
            "confirms commits that a crash would take back (`synchronous_commit` is off): set it to"
            " `on` for the server, the database or the role"
        )
