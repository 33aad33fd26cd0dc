"""Where requests are that the ledger cannot tell of: in the inbox still, or nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable, Sequence
from enum import Enum, auto
from uuid import UUID

from committer.errors import FrazilError
from committer.service.pending import Pending
from committer.storage.inbox import Inbox, Quarantine

LOOKUPS_AT_ONCE = 32
LISTED_MIN = 64


class Place(Enum):
    """Where a request was found. `JUDGED`: in quarantine, and not gone from the inbox yet."""

    INBOX = auto()
    JUDGED = auto()
    NOWHERE = auto()


class Whereabouts:
    """Looks for the waiting requests of one table."""

    def __init__(
        self, inbox: Inbox, quarantine: Quarantine, everybody: Callable[[], Iterable[Pending]]
    ) -> None:
        """`everybody` who waits for this table, also those who are not looked at yet."""
        self._inbox = inbox
        self._quarantine = quarantine
        self._everybody = everybody

    async def find_all(
        self, waiting: Sequence[Pending], table_uuid: UUID, generation: int
    ) -> Sequence[Place | FrazilError]:
        """Where each is, or why that could not be found out. `generation` counts the loads of the
        table's state: who is seen in the inbox was there after it.
        """
        if len(waiting) >= LISTED_MIN:
            return await self._list_all(waiting, table_uuid, generation)
        limit = asyncio.Semaphore(LOOKUPS_AT_ONCE)

        async def find(pending: Pending) -> Place | FrazilError:
            async with limit:
                try:
                    return await self._find(pending)
                except FrazilError as error:
                    return error

        return await asyncio.gather(*(find(pending) for pending in waiting))

    async def _find(self, pending: Pending) -> Place:
        """Only of what others were handed too may one have begun to put it into quarantine, and not
        ended.
        """
        if not await self._inbox.contains(pending.key):
            return Place.NOWHERE
        if pending.is_shared and await self._quarantine.contains(pending.key):
            return Place.JUDGED
        return Place.INBOX

    async def _list_all(
        self, waiting: Sequence[Pending], table_uuid: UUID, generation: int
    ) -> Sequence[Place | FrazilError]:
        """One listing tells of a thousand requests, a look at each only of one; and it tells of all
        that wait, so that a backlog is listed once and not for each of its batches.
        """
        others = list(self._everybody())
        try:
            listed = {found.key async for found in self._inbox.list(table_uuid)}
            judged = {found.key async for found in self._quarantine.list(table_uuid)}
        except FrazilError as error:
            return [error] * len(waiting)
        for pending in others:
            if pending.key in listed and pending.key not in judged:
                pending.present_in = generation
        return [_place(pending.key, listed, judged) for pending in waiting]


def _place(key: str, listed: Container[str], judged: Container[str]) -> Place:
    if key not in listed:
        return Place.NOWHERE
    return Place.JUDGED if key in judged else Place.INBOX
