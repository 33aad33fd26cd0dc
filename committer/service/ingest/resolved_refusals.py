"""Removes from quarantine the requests that one committer was refused while another landed them.

A catalog's refusal does not depend on the request alone: of two committers with the same request,
one may be refused and the other not. Between the check that the request has not landed and the
write of its quarantine record, the other may land it. So each refused request is checked again.
"""

from __future__ import annotations

from collections.abc import Sequence

from committer.errors import InvalidRequestError, NoSuchTableError, NotFoundError
from committer.plan.ledger.state import TableState
from committer.ports.catalog import Catalog
from committer.ports.storage import Storage
from committer.request.request_format import EncodedRequest, read_request
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.evidence_reader import EvidenceReader
from committer.service.telemetry.log import log
from committer.storage.inbox.inbox import Quarantine


class ResolvedRefusals:
    """Looks at records of refusals. Costs a load for each table that has some, and nothing else
    where the ledger tells.
    """

    def __init__(self, catalog: Catalog, storage: Storage, quarantine: Quarantine) -> None:
        self._catalog = catalog
        self._storage = storage
        self._quarantine = quarantine

    async def take_out(self, keys: Sequence[str]) -> None:
        """Remove of these records those whose very attempts have landed. May be repeated.

        Errors: those of the catalog and of the storage.
        """
        by_table: dict[TableIdentifier, list[EncodedRequest]] = {}
        for key in keys:
            sealed = await self._request(key)
            if sealed is not None:
                by_table.setdefault(sealed.request.identifier, []).append(sealed)
        for identifier, refused in by_table.items():
            await self._look(identifier, refused)

    async def _request(self, key: str) -> EncodedRequest | None:
        """Return the request; None if it cannot be read or has left the quarantine."""
        try:
            _, content = await self._quarantine.get(key)
            return read_request(content, key=key)
        except (NotFoundError, InvalidRequestError):
            return None

    async def _look(self, identifier: TableIdentifier, refused: Sequence[EncodedRequest]) -> None:
        try:
            state = TableState.of(await self._catalog.load(identifier))
        except NoSuchTableError:
            return
        reader = EvidenceReader(self._storage)
        for sealed in refused:
            request = sealed.request
            if request.table_uuid != state.metadata.table_uuid:
                continue
            landed = await reader.landed_in(state, request)
            if landed is not None:
                await self._quarantine.delete((sealed.key,))
                log.info("quarantine.resolved", key=sealed.key, snapshot_id=landed)
