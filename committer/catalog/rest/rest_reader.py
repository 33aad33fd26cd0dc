"""Reads the tables of a REST catalog, and keeps of each the ETag and the credentials that come."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from committer.catalog.namespaces import absent_if_unsupported, join_namespace, no_table
from committer.catalog.rest.client.rest_answer import Answer
from committer.catalog.rest.client.rest_client import RestClient
from committer.catalog.rest.client.rest_paths import is_addressable
from committer.catalog.rest.rest_credentials import RestCredentials
from committer.catalog.rest.rest_table import TableAnswer, etag_in, read_location, read_table_answer
from committer.errors import InvalidMetadataError
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier

# Tables whose ETag is kept: a question "did it move?" is answered without a body then.
_ETAGS_MAX = 10_000
# A name that a server refuses to look up is that of no table.
_NO_SUCH_NAME = frozenset((400, 414, 431))


@dataclass(frozen=True, slots=True)
class _Seen:
    """A table's location as it was last seen, and the ETag that says whether it still holds."""

    location: str
    etag: str


class RestReader:
    """The tables of one catalog, as they were last seen."""

    def __init__(self, client: RestClient, credentials: RestCredentials) -> None:
        self._client = client
        self._credentials = credentials
        self._seen: OrderedDict[TableIdentifier, _Seen] = OrderedDict()
        self._has_etags = True

    # --- Asking ---

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        """Load a table. Errors: as `Catalog.load`."""
        found = await read_table_answer(await self._ask(identifier), identifier)
        self._has_etags = bool(found.etag)
        return self.keep(found)

    async def current_location(self, identifier: TableIdentifier) -> str:
        """Return where a table's pointer points, by its ETag if that is known."""
        seen = self._seen.get(identifier)
        if seen is None and not self._has_etags and not self._credentials.are_wanted:
            return await self._location_by_refs(identifier)
        if seen is None:
            return (await self.load(identifier)).metadata_location
        answer = await self._ask(identifier, {"If-None-Match": seen.etag})
        if answer.status == 304:
            return seen.location
        location = await read_location(answer)
        if location is None or self._credentials.are_wanted:
            found = await read_table_answer(answer, identifier)
            location = found.table.metadata_location
            self._credentials.note(found)
        self._note(identifier, _Seen(location, etag_in(answer)))
        return location

    async def _location_by_refs(self, identifier: TableIdentifier) -> str:
        """Ask a server without ETags, which then need not send every snapshot."""
        answer = await self._ask(identifier, query={"snapshots": "refs"})
        location = await read_location(answer)
        return location or (await self.load(identifier)).metadata_location

    async def _ask(
        self,
        identifier: TableIdentifier,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask for a table. Errors: `NoSuchTableError`; those of the answer."""
        with absent_if_unsupported():
            join_namespace(identifier.namespace)
        if not is_addressable(identifier):
            raise no_table(identifier)
        path = self._client.paths.table(identifier)
        answer = await self._client.read_table(path, query, headers)
        if answer.is_success or answer.status == 304:
            return answer
        if answer.is_error(404, "NotFoundException"):
            # Of a file: the table is there, and a request for it is not to blame.
            raise InvalidMetadataError(f"table {identifier}: its metadata file is gone: {answer}")
        if answer.status in _NO_SUCH_NAME or (answer.status == 404 and answer.error is not None):
            self._seen.pop(identifier, None)
            raise no_table(identifier)
        raise answer.as_error()

    # --- Keeping ---

    def keep(self, found: TableAnswer) -> LoadedTable:
        """Keep what came with a table. Errors: `AccessError` for its credentials."""
        # First, as they may be refused: an ETag would answer for a table that cannot be read.
        self._credentials.note(found)
        return self.keep_swapped(found)

    def keep_swapped(self, found: TableAnswer) -> LoadedTable:
        """Keep the ETag of a table that came back from a swap, which vends no credentials."""
        self._note(found.table.identifier, _Seen(found.table.metadata_location, found.etag))
        return found.table

    def _note(self, identifier: TableIdentifier, seen: _Seen) -> None:
        self._seen.pop(identifier, None)
        if seen.etag:
            self._seen[identifier] = seen
            if len(self._seen) > _ETAGS_MAX:
                self._seen.popitem(last=False)

    def forget_location(self, identifier: TableIdentifier) -> None:
        """Forget where a table is. Vended credentials stay in use until they end."""
        self._seen.pop(identifier, None)

    def forget(self, identifier: TableIdentifier) -> None:
        """Keep nothing for a name that is no table's any more."""
        self.forget_location(identifier)
        self._credentials.forget(identifier)
