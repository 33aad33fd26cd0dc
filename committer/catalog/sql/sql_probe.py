"""Asks a database, before it holds a catalog, whether the tables are there and a swap holds."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import SQLAlchemyError

from committer.catalog.sql.sql_engine import connected, reading, writing
from committer.catalog.sql.sql_errors import frazil_error, no_catalog, open_error
from committer.catalog.sql.sql_layout import (
    NAMESPACES,
    TABLES,
    TYPE_COLUMN,
    Statements,
    create_layout,
)
from committer.errors import SettingsError

_PROBE = "frazil-probe"
_ROW = {"namespace_text": _PROBE, "name_text": _PROBE}


def check_layout(engine: Engine, *, create: bool, with_type: bool) -> bool:
    """Make the tables if they are missing, `with_type` or as older clients make them; say whether
    rows have a type (schema V1).
    """
    try:
        if not _has_layout(engine):
            if not create:
                raise no_catalog(engine)
            _create_layout(engine, with_type=with_type)
        if engine.dialect.name == "mariadb":
            from committer.catalog.sql.mariadb import check_tables

            with connected(reading(engine)) as connection:
                check_tables(connection)
        return any(column["name"] == TYPE_COLUMN for column in inspect(engine).get_columns(TABLES))
    except SQLAlchemyError as error:
        raise open_error(error, engine) from error


def _has_layout(engine: Engine) -> bool:
    inspector = inspect(engine)
    return inspector.has_table(TABLES) and inspector.has_table(NAMESPACES)


def _create_layout(engine: Engine, *, with_type: bool) -> None:
    try:
        with writing(engine).begin() as connection:
            for statement in create_layout(with_type=with_type):
                connection.execute(statement)
    except SQLAlchemyError:
        # IF NOT EXISTS does not keep two creators apart on every server.
        if not _has_layout(engine):
            raise


def probe_swap(engine: Engine) -> None:
    """Swap a row under a probe's catalog name twice, in a transaction that is rolled back.

    Errors: `SettingsError` where the condition or the transaction does not hold.
    """
    statements = Statements(_PROBE, has_type=False)
    try:
        with writing(engine).connect() as connection:
            stale, current = _swap_twice(connection, statements)
        with connected(reading(engine)) as connection:
            left = connection.execute(statements.location, _ROW).first()
        if left is not None:
            with writing(engine).begin() as connection:
                connection.execute(statements.drop, _ROW)
    except SQLAlchemyError as error:
        raise frazil_error(error) from error
    if left is not None:
        raise SettingsError(
            "catalog uri: the rows of a transaction stay although it was rolled back. A pooler"
            " between here and the database gives each statement another connection: set"
            " `pool_mode` of PgBouncer to `transaction` or `session`"
        )
    if current != 1:
        raise SettingsError(
            "catalog uri: this database or its driver does not count the rows that an UPDATE "
            "changed, so a swap that lost could not be told from one that won"
        )
    if stale != 0:
        raise SettingsError(
            "catalog uri: this database changes a row although the condition on its "
            "`metadata_location` does not hold, so concurrent commits would be lost"
        )


def _swap_twice(connection: Connection, statements: Statements) -> tuple[int, int]:
    connection.execute(statements.create, _ROW | {"location": "first"})
    swap = _ROW | {"location": "second"}
    stale = connection.execute(statements.swap, swap | {"base": "stale"}).rowcount
    current = connection.execute(statements.swap, swap | {"base": "first"}).rowcount
    return stale, current
