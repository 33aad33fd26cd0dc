"""Looks for requests that the ledger cannot answer for: in the inbox, in quarantine, or nowhere.
Reads those that wait in the inbox alone, for the upkeep. No request ends here.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from enum import Enum, auto
from typing import Self
from uuid import UUID

from committer.errors import (
    AccessError,
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    TransientError,
)
from committer.plan.cleanup.reachability import batches
from committer.ports.skips import Skips
from committer.request.commit_request import REQUEST_BYTES_MAX, CommitRequest
from committer.request.request_format import parse_line
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.pending import Pending, Waiting
from committer.storage.inbox.inbox import Inbox, Outstanding, Quarantine, list_durable, skips_of

LOOKUPS_AT_ONCE = 32
LISTED_MIN = 64
# About half a page of a listing: so many requests of one producer are listed apart, in its folder.
LISTED_APART_MIN = 500
# A listing ends after so many keys for each request that it looks for: then it has taken about as
# long as looking each of them up. The inbox may have far more, of producers with long queues.
LISTED_PER_REQUEST = 8
# Bounds what one look reads of a backlog: some seconds of reads and of parsing.
LINES_MAX = 10_000


class Place(Enum):
    """The place in which a request was found. `QUARANTINED`: in quarantine, and not gone from the
    inbox yet.
    """

    INBOX = auto()
    QUARANTINED = auto()
    NOWHERE = auto()


@dataclass(frozen=True, slots=True, order=True)
class OutstandingEpoch:
    """A request of an ordered producer in the inbox, or in quarantine."""

    epoch: int
    key: str
    is_quarantined: bool


class InboxLookup:
    """Looks for the waiting requests of one table. `ended`: keys that are about to be deleted."""

    def __init__(
        self, inbox: Inbox, quarantine: Quarantine, waiting: Waiting, ended: Container[str]
    ) -> None:
        self._inbox = inbox
        self._quarantine = quarantine
        self._waiting = waiting
        self._ended = ended

    async def find_all(
        self, waiting: Sequence[Pending], table_uuid: UUID, generation: int
    ) -> Sequence[Place | FrazilError]:
        """Return where each is, or the error that hides it. `generation` counts the loads of the
        table's state: a request that is seen in the inbox was there after that load.
        """
        places: dict[str, Place | FrazilError] = {}
        for producer, requests in _listed_together(waiting):
            places |= await self._list_all(requests, table_uuid, producer, generation)
        rest = [pending for pending in waiting if pending.key not in places]
        limit = asyncio.Semaphore(LOOKUPS_AT_ONCE)

        async def find(pending: Pending) -> Place | FrazilError:
            async with limit:
                try:
                    return await self._find(pending)
                except FrazilError as error:
                    return error

        found = await asyncio.gather(*map(find, rest))
        places |= {pending.key: place for pending, place in zip(rest, found, strict=True)}
        return [places[pending.key] for pending in waiting]

    async def outstanding(self, table_uuid: UUID, producer: str) -> list[OutstandingEpoch]:
        """Return what a producer has in inbox and quarantine, by epoch. Errors: those of the
        storage.
        """
        found: dict[str, OutstandingEpoch] = {}
        async for place, one in list_durable(self._inbox, self._quarantine, table_uuid, producer):
            parts = InboxKey(one.key).parts
            if parts is None or one.key in found:
                continue
            if place is self._quarantine and await self._quarantine.is_told_only(one):
                continue
            found[one.key] = OutstandingEpoch(parts.epoch, one.key, place is self._quarantine)
        return sorted(found.values())

    async def branch_of(self, one: OutstandingEpoch) -> str | None:
        """Return the branch of a request; None of an object that does not say, or is gone. One that
        waits here is not read. Errors: those of the storage.
        """
        pending = self._waiting.find(one.key)
        if pending is not None:
            return pending.sealed.request.branch
        place = self._quarantine if one.is_quarantined else self._inbox
        request = await read_stored(place, one.key)
        return None if request is None else request.branch

    # --- Requests that wait, for the upkeep ---

    async def durable(self, table_uuid: UUID) -> tuple[list[Outstanding], list[Outstanding]]:
        """List the inbox and the quarantine of the table. Errors: those of the storage."""
        inbox, quarantined = list[Outstanding](), list[Outstanding]()
        async for place, one in list_durable(self._inbox, self._quarantine, table_uuid):
            (quarantined if place is self._quarantine else inbox).append(one)
        return inbox, quarantined

    async def not_ended(self, table_uuid: UUID) -> AsyncIterator[CommitRequest]:
        """Yield the requests in the inbox of the table that have no verdict of this process.

        Errors: as `requests`.
        """
        listed = [one async for one in self._inbox.list(table_uuid) if one.key not in self._ended]
        async for request in self.requests(listed):
            yield request

    async def requests(self, listed: Iterable[Outstanding]) -> AsyncIterator[CommitRequest]:
        """Yield the requests of a listing of the inbox. The lines of those that do not wait here
        are read. One that has left the inbox since, or that can never land, is left out.

        Errors: those of the storage, and `TransientError` for a long backlog: what its requests
        need is unknown.
        """
        unread = []
        for key, size_bytes in {one.key: one.size_bytes for one in listed}.items():
            pending = self._waiting.find(key)
            if pending is not None:
                yield pending.sealed.request
            elif size_bytes <= REQUEST_BYTES_MAX:
                unread.append(key)
        if len(unread) > LINES_MAX:
            raise TransientError(
                f"{len(unread)} requests wait in the inbox alone, and at most {LINES_MAX} are read"
                " to learn what they need: snapshots expire again when there are fewer"
            )
        for keys in batches(unread):
            lines = await asyncio.gather(*(_line(self._inbox, key) for key in keys))
            # One after the other: the objects of a long line take many times its bytes.
            for key, line in zip(keys, lines, strict=True):
                request = await _parsed(key, line)
                if request is not None:
                    yield request

    # --- One request ---

    async def _find(self, pending: Pending) -> Place:
        """Look for one request. Quarantine is asked only for a shared one: another committer may
        have written its record and stopped before the delete.
        """
        if not await self._inbox.contains(pending.key):
            return Place.NOWHERE
        if pending.is_shared and await self._quarantine.contains(pending.key):
            return Place.QUARANTINED
        return Place.INBOX

    async def _list_all(
        self,
        requests: Sequence[Pending],
        table_uuid: UUID,
        producer: str | None,
        generation: int,
    ) -> Mapping[str, Place | FrazilError]:
        """List the inbox and the quarantine of a table, or of one of its producers, once: one call
        shows a thousand requests, and all that wait, so a backlog is listed once and not for each
        of its batches. Return the places that this shows: all, unless many others are there.
        """
        folder = f"{table_uuid}/" if producer is None else f"{requests[0].key.folder}/"
        waiting = [pending for pending in self._waiting.all() if pending.key.startswith(folder)]
        sought = {pending.key for pending in (*waiting, *requests)}
        keys_max = LISTED_PER_REQUEST * len(requests)
        try:
            listed = await _Listed.of(self._inbox, table_uuid, producer, keys_max, sought)
            quarantined = await _Listed.of(self._quarantine, table_uuid, producer, keys_max)
        except FrazilError as error:
            return {pending.key: error for pending in requests}
        for pending in waiting:
            if pending.key in listed.keys and quarantined.lacks(pending.key):
                self._waiting.present(pending, generation)
        places = {pending.key: _place(pending.key, listed, quarantined) for pending in requests}
        return {key: place for key, place in places.items() if place is not None}


def _listed_together(
    waiting: Sequence[Pending],
) -> Iterator[tuple[str | None, Sequence[Pending]]]:
    """Yield the requests that are to be looked for by one listing of their producer's folder, then
    those by one of the table's folder (None), if they are many.
    """
    by_producer: dict[str | None, list[Pending]] = {None: []}
    for pending in waiting:
        producer = None if pending.key.parts is None else pending.key.parts.producer
        by_producer.setdefault(producer, []).append(pending)
    others = by_producer.pop(None)
    for producer, requests in by_producer.items():
        if len(requests) >= LISTED_APART_MIN:
            yield producer, requests
        else:
            others += requests
    if len(others) >= LISTED_MIN:
        yield None, others


async def read_stored(place: Inbox | Quarantine, key: str) -> CommitRequest | None:
    """Read the request of an object by its line alone; None where it is gone or cannot be read.
    Errors: those of the storage.
    """
    return await _parsed(key, await _line(place, key))


async def _line(place: Inbox | Quarantine, key: str) -> bytes | None:
    """Read the line of a request; None where it is gone, or has no readable record."""
    try:
        return await place.line(key)
    except (NotFoundError, InvalidRequestError):
        return None


async def _parsed(key: str, line: bytes | None) -> CommitRequest | None:
    """Parse the line of a request, off the loop; None where there is none."""
    if line is None:
        return None
    try:
        return (await asyncio.to_thread(parse_line, line, key=key)).request
    except InvalidRequestError:
        return None


@dataclass(frozen=True, slots=True)
class _Listed:
    """The keys that a listing has shown of a place, and where it could not look. `is_whole`: it did
    not end before its last key.
    """

    place: Inbox | Quarantine
    keys: frozenset[str]
    skips: Skips
    is_whole: bool

    @classmethod
    async def of(
        cls,
        place: Inbox | Quarantine,
        table_uuid: UUID,
        producer: str | None,
        keys_max: int,
        sought: Collection[str] = (),
    ) -> Self:
        """List until all sought keys have been shown, `keys_max` at most; all, if none is."""
        skips, keys = skips_of(table_uuid, producer), set[str]()
        unshown_count = len(sought) or -1
        async for listed in place.list(table_uuid, producer, skips=skips):
            if len(keys) == keys_max or not unshown_count:
                return cls(place, frozenset(keys), skips, is_whole=False)
            keys.add(listed.key)
            unshown_count -= listed.key in sought
        return cls(place, frozenset(keys), skips, is_whole=True)

    def lacks(self, key: str) -> bool:
        """Return whether the key surely is not there."""
        is_hidden = self.skips.may_hide(self.place.location(key))
        return self.is_whole and key not in self.keys and not is_hidden

    def unseen(self, key: str) -> AccessError:
        return AccessError(f"whether `{self.place.location(key)}` exists cannot be seen")


def _place(key: str, listed: _Listed, quarantined: _Listed) -> Place | AccessError | None:
    """Return where a request is; None if the listings ended before they could show it."""
    if key not in listed.keys:
        if listed.lacks(key):
            return Place.NOWHERE
        return listed.unseen(key) if listed.is_whole else None
    if key in quarantined.keys:
        return Place.QUARANTINED
    if quarantined.lacks(key):
        return Place.INBOX
    return quarantined.unseen(key) if quarantined.is_whole else None
