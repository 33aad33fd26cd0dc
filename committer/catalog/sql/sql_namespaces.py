"""Namespaces of a SQL catalog: rows that mention them, and rows of their properties.

Every function runs within a transaction of its caller. A namespace that has a row of its own always
keeps the one by which PyIceberg and Java mark it, so it does not vanish with its last property.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection

from committer.catalog.namespaces import (
    Namespace,
    check_property_names,
    has_below,
    join_namespace,
    no_namespace,
    not_empty,
    with_parents,
)
from committer.catalog.sql.sql_layout import EXISTS_KEY, Statements
from committer.errors import UnsupportedError

_VALUE_CHARS_MAX = 1000
_KEY_CHARS_MAX = 255


class SqlNamespaces:
    """The namespaces of one catalog name."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def all(self, connection: Connection) -> list[Namespace]:
        texts: list[str] = list(connection.scalars(self._statements.list_namespaces))
        # Java allows tables without a namespace; their empty text names none.
        return with_parents(tuple(text.split(".")) for text in texts if text)

    def require(self, connection: Connection, namespace: Namespace) -> None:
        if namespace not in self.all(connection):
            raise no_namespace(namespace)

    def create(self, connection: Connection, namespace: Namespace) -> None:
        if namespace not in self.all(connection):
            connection.execute(self._statements.create_namespace, _text(namespace))

    def drop(self, connection: Connection, namespace: Namespace) -> None:
        standing = self.all(connection)
        if namespace not in standing:
            raise no_namespace(namespace)
        held = connection.scalars(self._statements.any_in_namespace, _text(namespace)).first()
        if held is not None or has_below(namespace, standing):
            raise not_empty(namespace)
        connection.execute(self._statements.drop_namespace, _text(namespace))

    def properties(self, connection: Connection, namespace: Namespace) -> dict[str, str]:
        self.require(connection, namespace)
        rows = connection.execute(self._statements.properties, _text(namespace))
        return {row.property_key: row.property_value or "" for row in rows}

    def change(
        self,
        connection: Connection,
        namespace: Namespace,
        properties: Mapping[str, str],
        removed: Collection[str],
    ) -> None:
        _check(properties, removed)
        self.require(connection, namespace)
        for key in (EXISTS_KEY, *properties, *removed):
            row = _text(namespace) | {"key": key}
            connection.execute(self._statements.remove_property, row)
        for key, value in {EXISTS_KEY: "true", **properties}.items():
            row = _text(namespace) | {"key": key, "value": value}
            connection.execute(self._statements.set_property, row)


def _check(properties: Mapping[str, str], removed: Collection[str]) -> None:
    """Refuse what the layout cannot hold. Errors: `UnsupportedError`."""
    check_property_names((*properties, *removed))
    for key in (*properties, *removed):
        if key == EXISTS_KEY or len(key) > _KEY_CHARS_MAX:
            raise UnsupportedError(
                f"namespace property `{key}`: this catalog takes names of at most {_KEY_CHARS_MAX}"
                f" characters, and keeps `{EXISTS_KEY}` for itself"
            )
    for key, value in properties.items():
        if len(value) > _VALUE_CHARS_MAX:
            raise UnsupportedError(
                f"namespace property `{key}`: its value has {len(value)} characters, and this"
                f" catalog takes {_VALUE_CHARS_MAX}"
            )


def _text(namespace: Namespace) -> dict[str, str]:
    return {"namespace_text": join_namespace(namespace)}
