"""The two tables of the Iceberg JDBC catalog layout, and every statement on them.

Source: docs/reference/iceberg-notes.md 9.2. Schema V1 has the column `iceberg_type`; V0 databases,
which older clients made, lack it and are used as they are. Standard SQL only; nothing is executed
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    MetaData,
    String,
    Table,
    and_,
    bindparam,
    delete,
    insert,
    or_,
    select,
    true,
    union,
    update,
)
from sqlalchemy.schema import CreateTable

from committer.errors import UnsupportedError

TABLES = "iceberg_tables"
NAMESPACES = "iceberg_namespace_properties"
TYPE_COLUMN = "iceberg_type"
TYPE_TABLE = "TABLE"
# Where PyIceberg puts the tables of a namespace that has it.
LOCATION_PROPERTY = "location"
# PyIceberg and Java mark a namespace by this one; its value is `true`.
EXISTS_KEY = "exists"


_NAME_CHARS_MAX = 255
_LOCATION_CHARS_MAX = 1000
# Byte by byte, and a space at the end counts. The three names of a key take 3,060 of the 3,072
# bytes that an index may have.
MARIADB_COLLATION = "utf8mb4_nopad_bin"
_ON_MARIADB: dict[str, Any] = {
    "mariadb_engine": "InnoDB",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": MARIADB_COLLATION,
}


def require_names_fit(names: Mapping[str, str], location: str = "") -> None:
    """Refuse a table that the columns cannot hold. SQLite would store it all the same, and other
    databases or clients could not.

    Errors: `UnsupportedError`.
    """
    for name in names.values():
        if len(name) > _NAME_CHARS_MAX:
            raise UnsupportedError(
                f"`{name[:40]}…` has {len(name)} characters: a SQL catalog takes at most"
                f" {_NAME_CHARS_MAX} for the name of a table, and for all levels of a namespace"
            )
    if len(location) > _LOCATION_CHARS_MAX:
        raise UnsupportedError(
            f"`{location[:80]}…` has {len(location)} characters: a SQL catalog takes at most"
            f" {_LOCATION_CHARS_MAX} for the location of a metadata file"
        )


def _tables(*, has_type: bool, **options: Any) -> Table:
    columns = [
        Column("catalog_name", String(_NAME_CHARS_MAX), primary_key=True),
        Column("table_namespace", String(_NAME_CHARS_MAX), primary_key=True),
        Column("table_name", String(_NAME_CHARS_MAX), primary_key=True),
        Column("metadata_location", String(_LOCATION_CHARS_MAX)),
        Column("previous_metadata_location", String(_LOCATION_CHARS_MAX)),
    ]
    if has_type:
        columns.append(Column(TYPE_COLUMN, String(5)))
    return Table(TABLES, MetaData(), *columns, **options)


def _namespaces(**options: Any) -> Table:
    return Table(
        NAMESPACES,
        MetaData(),
        Column("catalog_name", String(_NAME_CHARS_MAX), primary_key=True),
        Column("namespace", String(_NAME_CHARS_MAX), primary_key=True),
        Column("property_key", String(_NAME_CHARS_MAX), primary_key=True),
        Column("property_value", String(1000)),
        **options,
    )


def create_layout(*, with_type: bool) -> tuple[CreateTable, CreateTable]:
    """Return the statements that make the tables where they are missing: schema V1, else V0."""
    return (
        CreateTable(_tables(has_type=with_type, **_ON_MARIADB), if_not_exists=True),
        CreateTable(_namespaces(**_ON_MARIADB), if_not_exists=True),
    )


def _parameter(name: str) -> BindParameter[str]:
    return bindparam(name, type_=String())


class Statements:
    """The statements of one catalog name, built once so that each is compiled once.

    Parameters: `namespace_text`, `name_text`, `base`, `location`, and for a rename
    `new_namespace_text`, `new_name_text`; a namespace statement takes `namespace_text`, one on a
    property also `key` and `value`.
    """

    def __init__(self, catalog_name: str, *, has_type: bool) -> None:
        tables, namespaces = _tables(has_type=has_type), _namespaces()
        of_catalog = tables.c.catalog_name == catalog_name
        # Rows of clients that know no types have none; views are of another type.
        is_table: ColumnElement[bool] = true()
        if has_type:
            kind = tables.c.iceberg_type
            is_table = or_(kind == TYPE_TABLE, kind.is_(None))
        namespace, name = _parameter("namespace_text"), _parameter("name_text")
        base, location = _parameter("base"), _parameter("location")
        row = and_(
            of_catalog,
            tables.c.table_namespace == namespace,
            tables.c.table_name == name,
            is_table,
        )
        type_value = {TYPE_COLUMN: TYPE_TABLE} if has_type else {}

        self.location = select(tables.c.metadata_location).where(row)
        self.swap = (
            update(tables)
            .where(row, tables.c.metadata_location == base)
            .values(metadata_location=location, previous_metadata_location=base)
        )
        self.create = insert(tables).values(
            catalog_name=catalog_name,
            table_namespace=namespace,
            table_name=name,
            metadata_location=location,
            previous_metadata_location=None,
            **type_value,
        )
        self.rename = (
            update(tables)
            .where(row)
            .values(
                table_namespace=_parameter("new_namespace_text"),
                table_name=_parameter("new_name_text"),
            )
        )
        self.drop = delete(tables).where(row)
        self.list_tables = (
            select(tables.c.table_name)
            .where(of_catalog, tables.c.table_namespace == namespace, is_table)
            .order_by(tables.c.table_name)
        )
        self.list_namespaces = union(
            select(tables.c.table_namespace).where(of_catalog),
            select(namespaces.c.namespace).where(namespaces.c.catalog_name == catalog_name),
        )
        self.default_location = select(namespaces.c.property_value).where(
            namespaces.c.catalog_name == catalog_name,
            namespaces.c.namespace == namespace,
            namespaces.c.property_key == LOCATION_PROPERTY,
        )
        self._add_namespace_statements(tables, namespaces, catalog_name)

    def _add_namespace_statements(
        self, tables: Table, namespaces: Table, catalog_name: str
    ) -> None:
        namespace, key = _parameter("namespace_text"), _parameter("key")
        of_namespace = and_(
            namespaces.c.catalog_name == catalog_name, namespaces.c.namespace == namespace
        )
        row = {"catalog_name": catalog_name, "namespace": namespace}
        # Of every type: a view lives in its namespace, too.
        self.any_in_namespace = select(tables.c.table_name).where(
            tables.c.catalog_name == catalog_name, tables.c.table_namespace == namespace
        )
        self.create_namespace = insert(namespaces).values(
            **row, property_key=EXISTS_KEY, property_value="true"
        )
        self.drop_namespace = delete(namespaces).where(of_namespace)
        self.properties = select(namespaces.c.property_key, namespaces.c.property_value).where(
            of_namespace, namespaces.c.property_key != EXISTS_KEY
        )
        self.remove_property = delete(namespaces).where(
            of_namespace, namespaces.c.property_key == key
        )
        self.set_property = insert(namespaces).values(
            **row, property_key=key, property_value=_parameter("value")
        )
