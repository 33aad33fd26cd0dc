"""Puts quarantined requests back into the inbox, on any `Storage`.

    <root>/replaying/<table uuid>/<producer>/<epoch>/<attempt>    a replay that has not ended

The way is: copy under `replaying/`, quarantine object away, inbox, copy away. The request is
durable somewhere at every moment, so that a crash loses nothing and the replay can be repeated.
The quarantine object goes before the inbox object comes: a committer that quarantines the request
once more would leave an older record as it is, and a later removal would take its last copy away.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from committer.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    NotFoundError,
    PublishError,
)
from committer.ports.storage import NewObject, Storage, create_or_equal
from committer.reason import Reason
from committer.request.commit_request import REQUEST_BYTES_MAX
from committer.request.request_format import EncodedRequest, read_request
from committer.storage.inbox import Inbox, Outstanding, Quarantine


class Replays:
    """Replays of one inbox and its quarantine."""

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage = storage
        self._inbox = Inbox(storage, root)
        self._quarantine = Quarantine(storage, root)
        self.copies = Quarantine(storage, root, folder="replaying")

    def interrupted(self) -> AsyncIterator[Outstanding]:
        """Replays that a crash has ended half way; `replay` takes them up again."""
        return self.copies.list()

    async def all_durable(
        self, table_uuid: UUID | None = None, producer: str | None = None
    ) -> AsyncIterator[tuple[Inbox | Quarantine, str]]:
        """Every request (of a table, or of one of its producers) that has not ended for good: where
        it is, and its key. Some are told twice.

        The inbox once more in the end: a replay puts back what was not in quarantine any more.
        """
        for place in (self._inbox, self._quarantine, self.copies, self._inbox):
            async for one in place.list(table_uuid, producer):
                yield place, one.key

    async def get(self, key: str) -> tuple[EncodedRequest, bytes]:
        """The request that would be replayed, and its quarantine object.

        Errors: `NotFoundError`; `InvalidRequestError` where the request cannot be read, so that a
        replay would only bring it back.
        """
        try:
            kept = await self._storage.get(self._quarantine.location(key))
        except NotFoundError:
            kept = await self._storage.get(self.copies.location(key))
        _, _, content = kept.partition(b"\n")
        if not content:
            raise InvalidRequestError(
                Reason.REQUEST_TRUNCATED,
                "its record tells of an entry of the inbox that was never read: put it right there"
                " and discard the record, or discard both",
            )
        return read_request(content, key=key), kept

    async def replay(self, key: str) -> EncodedRequest:
        """Put a request back into the inbox. May be repeated.

        Errors: as `get`; `PublishError` where the committer that quarantined it has not removed it
        from the inbox yet: that removal would take what is put back.
        """
        sealed, kept = await self.get(key)
        await self._require_absent(key)
        await self._keep_copy(key, kept)
        await self._quarantine.delete((key,))
        await self._inbox.put(sealed)
        await self.copies.delete((key,))
        return sealed

    async def _require_absent(self, key: str) -> None:
        """An inbox object beside the quarantine object is the old one; alone it was put back."""
        if await self._inbox.contains(key) and await self._quarantine.contains(key):
            raise PublishError(f"`{key}` is still in the inbox: try again when it has left")

    async def _keep_copy(self, key: str, kept: bytes) -> None:
        """A copy that an interrupted replay left may have another record, never another request."""
        copy = NewObject(self.copies.location(key), kept)
        try:
            await create_or_equal(self._storage, copy)
        except AlreadyExistsError:
            there = await self._storage.get(copy.location)
            if there.partition(b"\n")[2] != kept.partition(b"\n")[2]:
                raise

    async def discard(self, key: str) -> None:
        """Remove a quarantined request for good, an interrupted replay of it too; and what a record
        refers to, unless a request has taken its place. (A folder goes if it is empty.)
        """
        await self.copies.delete((key,))
        if (entry := await self._referred(key)) is not None:
            await self._inbox.delete((entry,))
        await self._quarantine.delete((key,))

    async def _referred(self, key: str) -> str | None:
        """The inbox key of what a record refers to, while that is no request."""
        try:
            record = await self._quarantine.record(key)
        except (InvalidRequestError, NotFoundError):
            return None
        if not record.by_reference:
            return None
        try:
            is_request = await self._inbox.size_bytes(record.key) <= REQUEST_BYTES_MAX
        except NotFoundError:
            is_request = False
        return None if is_request else record.key
