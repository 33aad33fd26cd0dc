"""Connects to MariaDB: to a server that keeps what it confirms, and no longer than it answers.

Each new connection is checked, not the first one alone: after a fail-over, the same address may be
that of a replica. Tables are InnoDB's, with a collation that tells all names apart: `T` from `t`,
and `t` from `t ` (a name with a space behind it).
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pymysql
from pymysql.constants import CLIENT
from sqlalchemy import Connection, text

from committer.catalog.sql.sql_errors import UnsuitableServerError
from committer.catalog.sql.sql_layout import MARIADB_COLLATION, NAMESPACES, TABLES

_CONNECT_S_MAX = 10
_SETTINGS = """
SELECT @@read_only, @@innodb_flush_log_at_trx_commit, @@log_bin AND @@sync_binlog <> 1,
  (SELECT COUNT(*) FROM information_schema.global_variables
   WHERE variable_name = 'WSREP_ON' AND variable_value = 'ON')
"""
# Too long a value is refused, not cut. A process that stands still in a transaction would hold up
# every other client by its lock: the server ends it.
_SESSION = """
SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',
  SESSION innodb_lock_wait_timeout = %(wait_s)s, SESSION idle_transaction_timeout = %(wait_s)s
"""
_UNFIT_COLUMNS = """
SELECT columns.table_name, columns.column_name, columns.collation_name, tables.engine
FROM information_schema.columns
JOIN information_schema.tables USING (table_schema, table_name)
WHERE columns.table_schema = DATABASE() AND columns.table_name IN (:tables, :namespaces)
  AND columns.collation_name IS NOT NULL AND columns.column_name NOT LIKE '%\\_value'
  AND (columns.collation_name NOT LIKE '%\\_nopad\\_bin' OR tables.engine <> 'InnoDB')
"""


def connect(
    arguments: list[Any], options: dict[str, Any], answer_s_max: float
) -> pymysql.Connection[Any]:
    """Connect, by what SQLAlchemy makes of the URL.

    Errors: those of the driver; `UnsuitableServerError`.
    """
    settings = {
        "connect_timeout": _CONNECT_S_MAX,
        **options,
        "charset": "utf8mb4",
        # An UPDATE counts the rows that its condition has found, changed or not.
        "client_flag": options.get("client_flag", 0) | CLIENT.FOUND_ROWS,
        "read_timeout": answer_s_max,
        "write_timeout": answer_s_max,
    }
    connection = pymysql.connect(*arguments, **settings)
    try:
        _prepare(connection, max(1, int(answer_s_max)))
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: pymysql.Connection[Any], wait_s: int) -> None:
    """Require a primary that keeps what it confirms, and set the session up."""
    with closing(connection.cursor()) as cursor:
        cursor.execute("SELECT VERSION()")
        (version,) = cursor.fetchone() or ("",)
        if "MariaDB" not in version:
            raise UnsuitableServerError(
                f"is MySQL ({version}), which is not supported: that it keeps concurrent commits"
                " apart has not been shown; expected MariaDB"
            )
        cursor.execute(_SETTINGS)
        _require_fit(*(cursor.fetchone() or (1, 0, 0, 0)))
        cursor.execute(_SESSION, {"wait_s": wait_s})
    connection.commit()


def _require_fit(read_only: int, flush: int, loses_by_binlog: int | None, galera: int) -> None:
    if read_only:
        raise UnsuitableServerError(
            "is read-only (`read_only`), as a replica is, which answers with what was current some"
            " time ago: name the primary"
        )
    if flush != 1:
        raise UnsuitableServerError(
            "confirms commits that a crash would take back (`innodb_flush_log_at_trx_commit` is"
            f" {flush}): set it to 1"
        )
    if loses_by_binlog:
        raise UnsuitableServerError(
            "confirms commits that a crash would take back (`sync_binlog` is not 1): set it to 1"
        )
    if galera:
        raise UnsuitableServerError(
            "is a node of a Galera cluster (`wsrep_on`), which is not supported: that it keeps"
            " concurrent commits apart has not been shown"
        )


def check_tables(connection: Connection) -> None:
    """Require tables that tell names apart and have transactions.

    Errors: `UnsuitableServerError`, with the statement that mends them.
    """
    found = connection.execute(
        text(_UNFIT_COLUMNS), {"tables": TABLES, "namespaces": NAMESPACES}
    ).first()
    if found is not None:
        table, column, collation, storage_engine = found
        raise UnsuitableServerError(
            f"has a table `{table}` of {storage_engine} whose column `{column}` has the collation"
            f" {collation}, so that names which differ are one, or a swap has no transaction: run"
            f" `ALTER TABLE {table} ENGINE InnoDB, CONVERT TO CHARACTER SET utf8mb4 COLLATE"
            f" {MARIADB_COLLATION}`"
        )
