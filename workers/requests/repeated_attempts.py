"""Rejects a second, different write under one attempt: two writes in one `foreachBatch`.

The publisher that made the first write durable remembers it. Another publisher rejects the second
write as long as inbox, quarantine or ledger know the first.
"""

from __future__ import annotations

from uuid import UUID

from committer.errors import InvalidRequestError, NotFoundError, PublishError
from committer.ledger_entry import parse_entry, property_key
from committer.request.commit_request import CommitRequest
from committer.request.request_format import EncodedRequest, read_request
from committer.storage.inbox.inbox import Inbox, Quarantine, written_twice
from workers.requests.table_cache import TableCache

_PRODUCERS_MAX = 10_000


class RepeatedAttempts:
    """The attempts that may publish again: the newest durable request by table and producer."""

    def __init__(self, tables: TableCache, inbox: Inbox, quarantine: Quarantine) -> None:
        self._tables = tables
        self._inbox = inbox
        self._quarantine = quarantine
        self._durable: dict[tuple[UUID, str], CommitRequest] = {}

    async def find(self, request: CommitRequest) -> EncodedRequest | None:
        """Return the attempt's request in the inbox; None if the attempt is not known to have
        published.

        Errors: `PublishError` if it has published another write, or one that left the inbox.
        """
        self._check_memory(request)
        standing = await self._standing(request)
        if standing is None:
            await self._check_ended(request)
        return standing

    def remember(self, request: CommitRequest) -> None:
        """Remember a durable request."""
        if len(self._durable) >= _PRODUCERS_MAX:
            self._durable.clear()
        self._durable[request.table_uuid, request.producer.id] = request

    def _check_memory(self, request: CommitRequest) -> None:
        """Reject another write than the remembered one. Inbox, quarantine and ledger may not know
        the first write any more: another attempt had landed the epoch, another engine removed the
        ledger, or a replay made a fresh key.
        """
        known = self._durable.get((request.table_uuid, request.producer.id))
        if known is None or known.attempt != request.attempt:
            return
        if not is_same_write(known, request):
            raise written_twice(request)

    async def _standing(self, request: CommitRequest) -> EncodedRequest | None:
        """Return the attempt's request in the inbox. Errors: `PublishError` for another write.

        Compared at once: the request may land and leave the inbox at any moment, and then a second
        write would pass for a copy of the first.
        """
        key = request.inbox_key
        try:
            found = read_request(await self._inbox.get(key), key=key)
        except NotFoundError:
            return None
        except InvalidRequestError:
            raise written_twice(request) from None
        if not is_same_write(found.request, request):
            raise written_twice(request)
        return found

    async def _check_ended(self, request: CommitRequest) -> None:
        """Reject a write if the first one of this attempt has landed and left the inbox already.

        Asked in this order: a request that leaves the inbox has landed before that (or is in
        quarantine), so the table that is read afterwards says so.
        """
        current = await self._tables.current(request.identifier)
        text = current.metadata.properties.get(property_key(request.producer.id, request.branch))
        landed = parse_entry(text).landed(request.epoch) if text else None
        has_landed = landed is not None and landed.attempt == request.attempt
        if has_landed or await self._is_quarantined(request.inbox_key):
            raise PublishError(
                f"epoch {request.epoch} of producer `{request.producer.id}` was published to table"
                f" `{request.identifier}` before, by the same attempt: two writes of one"
                " micro-batch need two sink names (give each write its own `sink` option)"
            )

    async def _is_quarantined(self, key: str) -> bool:
        try:
            await self._quarantine.get(key)
        except NotFoundError:
            return False
        except InvalidRequestError:
            return True  # there, with a record that cannot be read
        return True


def is_same_write(one: CommitRequest, other: CommitRequest) -> bool:
    """Return whether they differ in their times at most, and so in their signatures:
    a commit repeated.

    Whether the signature of the first is good is for the committer to say.
    """
    return _bare(one) == _bare(other)


def _bare(request: CommitRequest) -> CommitRequest:
    times = {"published_at_ms": 0, "not_after_ms": None}
    return request.model_copy(update={**times, "signature": None, "key_id": None})
