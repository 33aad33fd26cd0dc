"""Keeps the requests of a table that has moved to another catalog.

Without the note that `frazil table migrate` leaves, a table that is not in the catalog is unknown,
and its requests go to quarantine. The note is read only then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from committer.errors import TransientError
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.inbox_lookup import InboxLookup, Place
from committer.service.requests.pending import Pending
from committer.storage.inbox.moves import Moves


@dataclass(eq=False)
class MovedTable:
    """Tells of one table whether it has moved. `catalog_name`: of the catalog that lacks it."""

    identifier: TableIdentifier
    table_uuid: UUID
    catalog_name: str
    moves: Moves
    inbox_lookup: InboxLookup

    async def left(self, waiting: Sequence[Pending], generation: int) -> list[Pending] | None:
        """Return the requests that have left the inbox since; None for a table that never moved.

        Errors: `TransientError` while others wait in the inbox; those of the storage.
        """
        move = await self.moves.find(self.table_uuid)
        if move is None or move.to == self.catalog_name:
            return None
        found = await self.inbox_lookup.find_all(waiting, self.table_uuid, generation)
        left = [one for one, place in zip(waiting, found, strict=True) if place is Place.NOWHERE]
        if len(left) < len(waiting):
            raise TransientError(
                f"table `{self.identifier}` has moved to catalog `{move.to}`: its requests wait in"
                " the inbox; point its writers to the new catalog and the inbox"
                f" `{move.inbox}`, then carry the requests over: `frazil table migrate"
                f" {self.identifier} --to {move.to}`"
            )
        return left
