"""Namespaces as catalogs without a tree of them see them: dotted names that rows mention; and the
errors about names.

A namespace exists if it, or one below it, was created or holds a table
(docs/reference/iceberg-notes.md 9.2). Pure; nothing here knows a back end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from committer.errors import (
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.request.table_identifier import TableIdentifier

Namespace = tuple[str, ...]
_T = TypeVar("_T")


def join_namespace(namespace: Namespace) -> str:
    """Join levels: `("a", "b")` → `a.b`.

    Errors: `UnsupportedError` for a name that could not be split again.
    """
    if not namespace or any(not level or "." in level for level in namespace):
        raise UnsupportedError(
            f"namespace {list(namespace)}: this catalog needs at least one level, and levels that "
            "are neither empty nor contain a dot"
        )
    return ".".join(namespace)


@contextmanager
def absent_if_unsupported() -> Iterator[None]:
    """Turn a name that no table can have into that of an absent table:
    its callers need not wait."""
    try:
        yield
    except UnsupportedError as error:
        raise NoSuchTableError(str(error)) from error


def with_parents(namespaces: Iterable[Namespace]) -> list[Namespace]:
    """Add the namespaces that exist because others lie below them; sorted."""
    return sorted({levels[:depth] for levels in namespaces for depth in range(1, len(levels) + 1)})


def has_below(namespace: Namespace, namespaces: Iterable[Namespace]) -> bool:
    """Return whether one of `namespaces` lies below the namespace."""
    depth = len(namespace)
    return any(len(one) > depth and one[:depth] == namespace for one in namespaces)


async def found_or_none(asked: Awaitable[_T]) -> _T | None:
    """Await what is asked of a table; None where there is no such table."""
    try:
        return await asked
    except NoSuchTableError:
        return None


def no_table(identifier: TableIdentifier) -> NoSuchTableError:
    """Return the error for a table that is not there."""
    return NoSuchTableError(f"no table {identifier}")


def name_taken(identifier: TableIdentifier) -> TableAlreadyExistsError:
    """Return the error for a name that another table has."""
    return TableAlreadyExistsError(f"the name {identifier} is taken")


def no_namespace(namespace: Namespace) -> NoSuchNamespaceError:
    """Return the error for a namespace that is not there."""
    return NoSuchNamespaceError(f"no namespace {join_namespace(namespace)}")


def existing_name(namespace: Namespace, is_name: Callable[[str], bool]) -> str:
    """Return the name of a namespace. One that none can have is that of an absent one."""
    text = join_namespace(namespace)
    if not is_name(text):
        raise no_namespace(namespace)
    return text


def not_empty(namespace: Namespace) -> NamespaceNotEmptyError:
    """Return the error to raise where a namespace that holds something is to be dropped."""
    return NamespaceNotEmptyError(
        f"namespace {join_namespace(namespace)} is not empty: drop or rename its tables and views,"
        " and drop the namespaces below it, first"
    )


def check_property_names(properties: Iterable[str]) -> None:
    """Refuse a namespace's property without a name, or with one that a line cannot carry."""
    for name in properties:
        if not name or not name.isprintable():
            raise UnsupportedError(
                f"namespace property `{name}`: expected a name of printable characters"
            )
