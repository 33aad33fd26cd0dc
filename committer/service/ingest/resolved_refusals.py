"""Removes from quarantine the requests that one committer was refused while another landed them.

A catalog's refusal does not depend on the request alone: of two committers with the same request,
one may be refused and the other not. Between the check that the request has not landed and the
write of its quarantine record, the other may land it. So each refused request is checked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from committer.errors import FrazilError, NoSuchTableError, TransientError
from committer.plan.ledger.state import TableState
from committer.ports.catalog import Catalog
from committer.ports.storage import Storage
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.evidence_reader import EvidenceReader
from committer.service.requests.inbox_keys import table_folder_of
from committer.service.requests.inbox_lookup import read_stored
from committer.service.telemetry.log import log
from committer.storage.inbox.inbox import Quarantine

RECORDS_MAX = 100


class ResolvedRefusals:
    """Looks at records of refusals, a hundred at a time and in turn. Costs a read for each, a load
    for each table that has some, and nothing else where the ledger tells.
    """

    def __init__(self, catalog: Catalog, storage: Storage, quarantine: Quarantine) -> None:
        self._catalog = catalog
        self._storage = storage
        self._quarantine = quarantine
        self._last = ""

    async def take_out(self, keys: Sequence[str]) -> None:
        """Remove of these records those whose very attempts have landed. May be repeated.

        Errors: the last of those of the catalog and of the storage. A table with one hides no
        other, but for a server that is away: the next look starts behind that table.
        """
        in_turn = sorted(keys, key=lambda key: (key <= self._last, key))[:RECORDS_MAX]
        failure: FrazilError | None = None
        for _, group in groupby(in_turn, key=table_folder_of):
            of_table = tuple(group)
            self._last = of_table[-1]
            try:
                await self._look(of_table)
            except TransientError:
                raise
            except FrazilError as error:
                failure = error
        if failure is not None:
            raise failure

    async def _look(self, keys: Iterable[str]) -> None:
        """Look at records of one table, which may name it differently."""
        states: dict[TableIdentifier, TableState | None] = {}
        reader = EvidenceReader(self._storage)
        for key in keys:
            request = await read_stored(self._quarantine, key)
            if request is None:
                continue
            if request.identifier not in states:
                states[request.identifier] = await self._state(request.identifier)
            state = states[request.identifier]
            if state is None or request.table_uuid != state.metadata.table_uuid:
                continue
            landed = await reader.landed_in(state, request)
            if landed is not None:
                await self._quarantine.delete((key,))
                log.info("quarantine.resolved", key=key, snapshot_id=landed)

    async def _state(self, identifier: TableIdentifier) -> TableState | None:
        """Load the state of a table; None if there is no such table."""
        try:
            return TableState.of(await self._catalog.load(identifier))
        except NoSuchTableError:
            return None
