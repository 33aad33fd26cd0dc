"""Makes the namespace of a table that is to be created, for as long as that succeeds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from committer.errors import FrazilError, NoSuchNamespaceError
from committer.ports.catalog import Catalog


@asynccontextmanager
async def with_namespace(catalog: Catalog, namespace: tuple[str, ...]) -> AsyncIterator[None]:
    """Create the namespace, and those above it. If the block fails, drop what was not there before;
    one in which something has been created meanwhile stays.
    """
    levels = [namespace[:count] for count in range(1, len(namespace) + 1)]
    new = [level for level in levels if await _is_missing(catalog, level)]
    try:
        await catalog.create_namespace(namespace)
        yield
    except Exception:
        with suppress(FrazilError):  # what failed is the better explanation
            for level in reversed(new):
                await catalog.drop_namespace(level)
        raise


async def _is_missing(catalog: Catalog, namespace: tuple[str, ...]) -> bool:
    """Return whether it surely is not there: creating it says better what hinders."""
    try:
        await catalog.namespace_properties(namespace)
    except FrazilError as error:
        return isinstance(error, NoSuchNamespaceError)
    return False
