"""The inbox and the quarantine: durable requests, on any `Storage`, outside every table location.

    <root>/inbox/<table uuid>/<producer>/<epoch>/<attempt>        what is outstanding, nothing else
    <root>/quarantine/<table uuid>/<producer>/<epoch>/<attempt>   what cannot land, with the reason

Producers create, the committer reads and deletes. When to delete is not decided here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from committer.errors import AlreadyExistsError, InvalidRequestError, NotFoundError, PublishError
from committer.ports import NewObject, Storage, create_or_equal
from committer.reason import Reason
from committer.request import (
    REQUEST_BYTES_MAX,
    CommitRequest,
    SealedRequest,
    producer_prefix,
)

# More than any record has; a request behind it may have hundreds of megabytes.
_RECORD_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Outstanding:
    """A request that waits in the inbox, as a listing shows it."""

    key: str
    size_bytes: int
    modified_ms: int


class _Keyed:
    """Objects below `<root>/<folder>/`, named by their inbox key."""

    def __init__(self, storage: Storage, root: str, folder: str) -> None:
        self._storage = storage
        self._folder = f"{root.rstrip('/')}/{folder}/"

    def location(self, key: str) -> str:
        return self._folder + key

    async def _list(self, prefix: str) -> AsyncIterator[Outstanding]:
        async for found in self._storage.list(self._folder + prefix):
            key = found.location[len(self._folder) :]
            yield Outstanding(key, found.size_bytes, found.modified_ms)

    async def contains(self, key: str) -> bool:
        """Whether there is an object of this key."""
        try:
            await self._storage.head(self.location(key))
        except NotFoundError:
            return False
        return True

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove the objects of these keys; absent ones count as removed."""
        await self._storage.delete([self.location(key) for key in keys])

    def list(
        self, table_uuid: UUID | None = None, producer: str | None = None
    ) -> AsyncIterator[Outstanding]:
        """All keys in ascending order: of everything, of one table, or of one of its producers."""
        if table_uuid is None:
            return self._list("")
        if producer is None:
            return self._list(f"{table_uuid}/")
        return self._list(producer_prefix(table_uuid, producer) + "/")


class Inbox(_Keyed):
    """Requests that are durable and not yet proven committed."""

    def __init__(self, storage: Storage, root: str) -> None:
        super().__init__(storage, root, "inbox")

    async def put(self, sealed: SealedRequest) -> bool:
        """Make a request durable. False if the very same request was durable already.

        Errors: `PublishError` where another content has the same table, producer, epoch and
        attempt.
        """
        request = sealed.request
        created = NewObject(self.location(request.inbox_key), sealed.content)
        try:
            return await create_or_equal(self._storage, created)
        except AlreadyExistsError:
            raise written_twice(request) from None

    async def put_back(self, key: str, content: bytes) -> None:
        """Put a request where it was. Another one that stands there by now stays."""
        with suppress(AlreadyExistsError):
            await create_or_equal(self._storage, NewObject(self.location(key), content))

    async def get(self, key: str, *, size_bytes_max: int = REQUEST_BYTES_MAX) -> bytes:
        """Read a request's bytes. Absent: `NotFoundError`.

        Errors: `ObjectTooLargeError` for one that has more, before its first byte is read.
        """
        return await self._storage.get(self.location(key), size_bytes_max=size_bytes_max)

    async def size_bytes(self, key: str) -> int:
        """The size of a request, without reading it. Absent: `NotFoundError`."""
        return (await self._storage.head(self.location(key))).size_bytes

    async def modified_ms(self, key: str) -> int:
        """When it became durable, by the storage's clock. Absent: `NotFoundError`."""
        return (await self._storage.head(self.location(key))).modified_ms


def written_twice(request: CommitRequest) -> PublishError:
    """The error of a second, different write under one attempt."""
    return PublishError(
        f"epoch {request.epoch} of producer `{request.producer.id}` was published twice by"
        f" one attempt with different content, to table `{request.identifier}`: two writes"
        " of one micro-batch need two sink names (give each write its own `sink` option)"
    )


class QuarantineRecord(BaseModel):
    """Why a request is in quarantine: the first line of its quarantine object."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    key: str
    reason: str
    message: str
    quarantined_at_ms: int
    table: str | None = None
    record_version: int = 1


class Quarantine(_Keyed):
    """Requests that cannot land, each behind one line that says why."""

    def __init__(self, storage: Storage, root: str, *, folder: str = "quarantine") -> None:
        super().__init__(storage, root, folder)

    async def put(self, record: QuarantineRecord, content: bytes) -> None:
        """Keep a request with its reason. A record that is there already stays as it is."""
        line = record.model_dump_json().encode()
        created = NewObject(self.location(record.key), line + b"\n" + content)
        try:
            await self._storage.create((created,))
        except AlreadyExistsError:
            # An earlier copy of this delivery got here first; its reason is as good.
            return

    async def get(self, key: str) -> tuple[QuarantineRecord, bytes]:
        """Read the record and the request. Absent: `NotFoundError`."""
        return read_quarantined(await self._storage.get(self.location(key)), key)

    async def record(self, key: str) -> QuarantineRecord:
        """Read the record alone. Absent: `NotFoundError`."""
        start = await self._storage.get(self.location(key), length=_RECORD_BYTES)
        if b"\n" not in start:
            return (await self.get(key))[0]
        return read_quarantined(start, key)[0]


def read_quarantined(content: bytes, key: str) -> tuple[QuarantineRecord, bytes]:
    """The record and the request of a quarantine object.

    Errors: `InvalidRequestError` where it does not start with a record.
    """
    line, _, request = content.partition(b"\n")
    try:
        return QuarantineRecord.model_validate_json(line), request
    except ValidationError:
        raise InvalidRequestError(
            Reason.REQUEST_MALFORMED, f"the quarantine object of `{key}` has no readable record"
        ) from None
