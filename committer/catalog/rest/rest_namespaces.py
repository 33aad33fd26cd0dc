"""Namespaces of a REST catalog: each is there by itself, and keeps properties."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from committer.catalog.namespaces import (
    Namespace,
    check_property_names,
    join_namespace,
    no_namespace,
    not_empty,
    with_parents,
)
from committer.catalog.rest.client.rest_answer import Answer
from committer.catalog.rest.client.rest_client import RestClient
from committer.errors import CatalogUnavailableError, NoSuchNamespaceError
from committer.request.table_identifier import TableIdentifier

# By which the server itself keeps a namespace (Java's JDBC catalog), or says where its tables go.
_OF_THE_SERVER = frozenset({"exists"})
# A server that names a namespace below each, for ever, would be asked for ever.
LEVELS_MAX = 64
_NAMESPACES_MAX = 1_000_000


class RestNamespaces:
    """The namespaces that one client sees."""

    def __init__(self, client: RestClient) -> None:
        self._client = client

    async def require(self, namespace: Namespace) -> None:
        """Look the namespace up. Errors: `NoSuchNamespaceError`."""
        await self._loaded(namespace)

    async def _exists(self, namespace: Namespace) -> bool:
        try:
            await self.require(namespace)
        except NoSuchNamespaceError:
            return False
        return True

    async def tables(self, namespace: Namespace) -> list[TableIdentifier]:
        join_namespace(namespace)
        found: set[TableIdentifier] = set()
        async for page in self._client.pages(self._client.paths.tables(namespace)):
            if _is_absent(page) and await self._below(namespace):
                return []  # it is there only because another one is below it
            _require(page, namespace)
            found.update(one for one in _identifiers(page) if one.namespace == namespace)
        return sorted(found)

    async def create(self, namespace: Namespace) -> None:
        """Create the namespace, and those above it, which not every server implies."""
        join_namespace(namespace)
        above = namespace[:-1]
        if above and not await self._exists(above):
            await self.create(above)
        body = {"namespace": list(namespace), "properties": {}}
        answer = await self._client.change("POST", self._client.paths.namespaces(), body)
        if answer.status != 409:  # else it is there
            answer.require_success()

    async def drop(self, namespace: Namespace) -> None:
        join_namespace(namespace)
        answer = await self._client.change("DELETE", self._client.paths.namespace(namespace))
        if answer.status == 409:
            raise not_empty(namespace)
        _require(answer, namespace)

    async def all(self) -> list[Namespace]:
        found: set[Namespace] = set()
        todo: list[Namespace] = [()]
        while todo:
            parent = todo.pop()
            below = await self._below(parent)
            fresh = {one for one in below if one not in found and one[: len(parent)] == parent}
            found |= fresh
            todo += fresh
            if len(parent) >= LEVELS_MAX or len(found) > _NAMESPACES_MAX:
                raise CatalogUnavailableError(
                    f"the catalog's namespaces have no end: more than {LEVELS_MAX} levels or"
                    f" {_NAMESPACES_MAX:,} names came"
                )
        return with_parents(found)

    async def _below(self, parent: Namespace) -> set[Namespace]:
        paths = self._client.paths
        query = f"parent={paths.levels(parent)}" if parent else ""
        found: set[Namespace] = set()
        async for page in self._client.pages(paths.namespaces(), query):
            if page.is_error(404, "NoSuchNamespaceException"):
                return found  # dropped in the meantime
            page.require_success()
            listed = page.json().get("namespaces")
            found |= {tuple(map(str, one)) for one in listed or () if one and isinstance(one, list)}
        return found

    async def properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the namespace's properties. Errors: `NoSuchNamespaceError`."""
        answer = await self._loaded(namespace)
        found = answer.json().get("properties")
        return {
            str(key): str(text)
            for key, text in (found.items() if isinstance(found, dict) else ())
            if key not in _OF_THE_SERVER and text is not None
        }

    async def change(
        self, namespace: Namespace, properties: Mapping[str, str], removed: Collection[str]
    ) -> None:
        join_namespace(namespace)
        check_property_names((*properties, *removed))
        path = f"{self._client.paths.namespace(namespace)}/properties"
        body = {"updates": dict(properties), "removals": [*removed]}
        _require(await self._client.change("POST", path, body), namespace)

    async def _loaded(self, namespace: Namespace) -> Answer:
        join_namespace(namespace)
        answer = await self._client.read(self._client.paths.namespace(namespace))
        _require(answer, namespace)
        return answer


def _require(answer: Answer, namespace: Namespace) -> None:
    """Check the answer. Errors: `NoSuchNamespaceError`; those of the answer."""
    if _is_absent(answer):
        raise no_namespace(namespace)
    answer.require_success()


def _is_absent(answer: Answer) -> bool:
    return answer.status == 404 and answer.error is not None


def _identifiers(page: Answer) -> list[TableIdentifier]:
    """Return the tables of one page; what is none of the protocol's identifiers is left out."""
    listed = page.json().get("identifiers")
    return [
        TableIdentifier(tuple(map(str, one["namespace"])), str(one["name"]))
        for one in listed or ()
        if isinstance(one, dict) and isinstance(one.get("namespace"), list) and one.get("name")
    ]
