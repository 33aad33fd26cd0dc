"""Removes what requests that have ended have left in the inbox and in quarantine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from committer.errors import FrazilError
from committer.request.request_key import published_key
from committer.storage.inbox.inbox import Inbox, Quarantine


class EndedRequests:
    """The objects of requests that have ended, of one inbox and its quarantine."""

    def __init__(self, inbox: Inbox, quarantine: Quarantine) -> None:
        self._inbox = inbox
        self._quarantine = quarantine

    async def delete(self, keys: Sequence[str], landed: Iterable[str]) -> Mapping[str, FrazilError]:
        """Remove requests from the inbox. `landed`: those of them that have landed, as is durable.
        Return why those that remain could not be removed, by key. Errors: those of the inbox's
        storage as a whole.

        Of a replay that has landed, the quarantine records go first: an operator that was cut off
        leaves one, and so does a server that applies the write of one once more. Costs a listing
        for each replay. May be repeated.
        """
        replayed = [key for key in landed if published_key(key) != key]
        failures = await self._delete_records(replayed) if replayed else {}
        removed = [key for key in keys if key not in failures]
        return {**failures, **await self._inbox.delete_each(removed)} if removed else failures

    async def _delete_records(self, replayed: Sequence[str]) -> Mapping[str, FrazilError]:
        """Remove the quarantine records of replays. Return why some may remain, by inbox key."""
        records: dict[str, list[str]] = {}
        failures: dict[str, FrazilError] = {}
        for key in replayed:
            try:
                for record in await self._quarantine.keys_of(published_key(key)):
                    records.setdefault(record, []).append(key)
            except FrazilError as error:
                failures[key] = error
        if records:
            for record, why in (await self._quarantine.delete_each([*records])).items():
                failures.update(dict.fromkeys(records[record], why))
        return failures
