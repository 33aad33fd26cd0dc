"""Removes what requests that have ended have left in the inbox and in quarantine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from committer.request.request_key import published_key
from committer.storage.inbox.inbox import Inbox, Quarantine


class EndedRequests:
    """The objects of requests that have ended, of one inbox and its quarantine."""

    def __init__(self, inbox: Inbox, quarantine: Quarantine) -> None:
        self._inbox = inbox
        self._quarantine = quarantine

    async def delete(self, keys: Sequence[str], landed: Iterable[str]) -> None:
        """Remove requests from the inbox. `landed`: those of them that have landed, as is durable.

        Of a replay that has landed, the quarantine records go first: an operator that was cut off
        leaves one, and so does a server that applies the write of one once more. Costs a listing
        for each replay. May be repeated.
        """
        replayed = {one for key in landed if (one := published_key(key)) != key}
        records = [key for one in replayed for key in await self._quarantine.keys_of(one)]
        if records:
            await self._quarantine.delete(records)
        await self._inbox.delete(keys)
