"""Returns quarantined requests to the inbox, on any `Storage`.

A replay creates the request in the inbox under a fresh key, and then deletes what an interrupted
quarantine has left of the old key in the inbox, and the quarantine object.
The request is durable at every moment, so a crash loses nothing and the replay can be repeated: of
two objects of one request, one lands and the ledger answers the other.

Fresh, because a committer that paused before it deleted the old key may delete it at any time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from committer.errors import InvalidRequestError, NotFoundError
from committer.ports.storage import Storage
from committer.reason import Reason
from committer.request.commit_request import REQUEST_BYTES_MAX
from committer.request.request_format import EncodedRequest, read_request
from committer.storage.inbox.inbox import Inbox, Quarantine, list_durable, read_quarantined


class Replays:
    """Replays of one inbox and its quarantine."""

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage = storage
        self._inbox = Inbox(storage, root)
        self._quarantine = Quarantine(storage, root)

    async def all_durable(
        self, table_uuid: UUID | None = None, producer: str | None = None
    ) -> AsyncIterator[tuple[Inbox | Quarantine, str]]:
        """Yield every request as `list_durable` does: where it is, and its key."""
        async for place, one in list_durable(self._inbox, self._quarantine, table_uuid, producer):
            yield place, one.key

    async def get(self, key: str) -> tuple[EncodedRequest, bytes]:
        """Return the request that would be replayed, and its quarantine object.

        Errors: `NotFoundError`; `InvalidRequestError` where the request cannot be read, so that a
        replay would only bring it back.
        """
        kept = await self._storage.get(self._quarantine.location(key))
        _, _, content = kept.partition(b"\n")
        if not content:
            raise InvalidRequestError(Reason.REQUEST_TRUNCATED, _why_empty(kept, key))
        return read_request(content, key=key), kept

    async def replay(self, key: str, replay: UUID) -> EncodedRequest:
        """Return a request to the inbox, under a key that `replay`, a random uuid, makes fresh. May
        be repeated with another one.

        Errors: as `get`.
        """
        sealed = (await self.get(key))[0].replayed(replay)
        await self._inbox.put(sealed)
        # A committer that crashed behind the quarantine has left the old object: another one might
        # quarantine it anew, beside a replay that lands.
        await self._inbox.delete((key,))
        await self._quarantine.delete((key,))
        return sealed

    async def discard(self, key: str) -> None:
        """Remove a quarantined request for good; and what a record refers to, unless a request has
        taken its place. (A folder is removed if it is empty.)
        """
        if (entry := await self._referred(key)) is not None:
            await self._inbox.delete((entry,))
        await self._quarantine.delete((key,))

    async def _referred(self, key: str) -> str | None:
        """Return the inbox key to which a record refers, while its object is no request."""
        record = await self._quarantine.readable_record(key)
        if record is None or not record.by_reference:
            return None
        try:
            is_request = await self._inbox.size_bytes(record.key) <= REQUEST_BYTES_MAX
        except NotFoundError:
            is_request = False
        return None if is_request else record.key


def _why_empty(kept: bytes, key: str) -> str:
    """Say why no request follows a record."""
    if read_quarantined(kept, key)[0].is_told_only:
        return "there is nothing to replay: only the answer is kept, and its client runs again"
    return (
        "its record tells of an entry of the inbox that was never read: put it right there and"
        " discard the record, or discard both"
    )
