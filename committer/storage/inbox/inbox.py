"""The inbox and the quarantine: durable requests, on any `Storage`, outside every table location.

    <root>/inbox/<table uuid>/<producer>/<epoch>/<attempt>        what is outstanding, nothing else
    <root>/quarantine/<table uuid>/<producer>/<epoch>/<attempt>   what cannot land, with the reason

Producers create, the committer reads and deletes. When to delete is not decided here.

An object whose name is no inbox key is foreign. It is quarantined as `stray/<digest of its
name>`, so that no name can take a place that a request may need, or be too long for one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from committer.errors import (
    AlreadyExistsError,
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    PublishError,
)
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, Storage, create_or_equal, undeleted
from committer.reason import Reason
from committer.request.commit_request import REQUEST_BYTES_MAX, CommitRequest
from committer.request.request_format import LINE_BYTES_MAX, EncodedRequest
from committer.request.request_key import is_inbox_key, producer_prefix, published_key

# Of an inbox key: table, producer, epoch, attempt.
KEY_LEVELS = 4
_STRAY = re.compile(r"stray/[0-9a-f]{32}")
# More than any record has; a request behind it may have hundreds of megabytes.
RECORD_BYTES_MAX = 16 * 1024
# A committer removes a record that keeps no request, only its answer, once it is older.
ANSWER_KEPT_MS = 86_400_000
ANSWERS_KNOWN_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Outstanding:
    """A request that waits in the inbox, as a listing shows it."""

    key: str
    size_bytes: int
    modified_ms: int


class _Keyed:
    """Objects below `<root>/<folder>/`, named by their inbox key. `folder`: where that is."""

    def __init__(self, storage: Storage, root: str, folder: str) -> None:
        self._storage = storage
        self.folder = f"{root.rstrip('/')}/{folder}/"

    def location(self, key: str) -> str:
        return self.folder + key

    def key_of(self, location: str) -> str:
        """Return the key of a listed location."""
        return location[len(self.folder) :]

    async def _list(self, prefix: str, skips: Skips | None) -> AsyncIterator[Outstanding]:
        async for found in self._storage.list(self.folder + prefix, skips=skips):
            yield Outstanding(self.key_of(found.location), found.size_bytes, found.modified_ms)

    async def contains(self, key: str) -> bool:
        """Return whether there is an object of this key."""
        try:
            await self._storage.head(self.location(key))
        except NotFoundError:
            return False
        return True

    async def _start(self, key: str, length: int) -> bytes:
        return await self._storage.get(self.location(key), length=length)

    async def holds(self, published: str) -> bool:
        """Return whether the request published under this key has an object, replayed or not."""
        return bool(await self.keys_of(published))

    async def keys_of(self, published: str) -> Sequence[str]:
        """Return the keys of the request published under this key, as published and as replayed."""
        epoch, _, _ = published.rpartition("/")
        found = [one.key async for one in self._list(f"{epoch}/", None)]
        return [key for key in found if published_key(key) == published]

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove the objects of these keys; absent ones count as removed. Errors: as of
        `Storage.delete`, which names locations.
        """
        await self._storage.delete([self.location(key) for key in keys])

    async def delete_each(self, keys: Sequence[str]) -> Mapping[str, FrazilError]:
        """Remove the objects of these keys. Return why those that remain could not be removed, by
        key. Errors: those of the call as a whole.
        """
        by_location = {self.location(key): key for key in keys}
        try:
            await self._storage.delete([*by_location])
        except FrazilError as error:
            remaining = undeleted(error, by_location)
            return {by_location[location]: why for location, why in remaining.items()}
        return {}

    def list(
        self,
        table_uuid: UUID | None = None,
        producer: str | None = None,
        *,
        skips: Skips | None = None,
    ) -> AsyncIterator[Outstanding]:
        """List all keys in ascending order: of everything, of one table, or of one of its
        producers. `skips`: as of `Storage.list`; made by `skips_of`.
        """
        if table_uuid is None:
            return self._list("", skips)
        if producer is None:
            return self._list(f"{table_uuid}/", skips)
        return self._list(producer_prefix(table_uuid, producer) + "/", skips)


def skips_of(table_uuid: UUID | None = None, producer: str | None = None) -> Skips:
    """Return the `Skips` for a listing of everything, of one table, or of one of its producers.
    A folder in the place of a request is no request.
    """
    return Skips(levels_max=KEY_LEVELS - (table_uuid is not None) - (producer is not None))


class Inbox(_Keyed):
    """Requests that are durable and not yet proven committed."""

    def __init__(self, storage: Storage, root: str) -> None:
        super().__init__(storage, root, "inbox")

    async def put(self, sealed: EncodedRequest) -> bool:
        """Make a request durable. False if the very same request was durable already.

        Errors: `PublishError` where another content has the same table, producer, epoch and
        attempt.
        """
        created = NewObject(self.location(sealed.key), sealed.content)
        try:
            return await create_or_equal(self._storage, created)
        except AlreadyExistsError:
            raise written_twice(sealed.request) from None

    async def get(self, key: str, *, size_bytes_max: int = REQUEST_BYTES_MAX) -> bytes:
        """Read a request's bytes. Absent: `NotFoundError`.

        Errors: `ObjectTooLargeError` for one that has more, before its first byte is read.
        """
        return await self._storage.get(self.location(key), size_bytes_max=size_bytes_max)

    async def line(self, key: str) -> bytes:
        """Read the first bytes of a request, its line among them. Absent: `NotFoundError`."""
        return await self._start(key, LINE_BYTES_MAX + 1)

    async def size_bytes(self, key: str) -> int:
        """Return the size of a request, without reading it. Absent: `NotFoundError`."""
        return (await self._storage.head(self.location(key))).size_bytes

    async def modified_ms(self, key: str) -> int:
        """Return when a request became durable, by the storage's clock. Absent: `NotFoundError`."""
        return (await self._storage.head(self.location(key))).modified_ms


def written_twice(request: CommitRequest) -> PublishError:
    """Make the error of a second, different write under one attempt."""
    return PublishError(
        f"epoch {request.epoch} of producer `{request.producer.id}` was published twice by"
        f" one attempt with different content, to table `{request.identifier}`: two writes"
        " of one micro-batch need two sink names (give each write its own `sink` option)"
    )


class QuarantineRecord(BaseModel):
    """The first line of a quarantine object: the reason for which the request is there."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    key: str
    reason: str
    message: str
    quarantined_at_ms: int
    table: str | None = None
    by_reference: bool = False
    """No request follows: what is wrong stands in the inbox still, under `key`."""
    conflict: str | None = None
    """The kind of the conflict, by its code."""
    is_told_only: bool = False
    """No request follows: its client runs again, and only has to find out. Removed after a day."""
    record_version: int = 1

    @property
    def kept_until_ms(self) -> int | None:
        """Until when it is kept; None: until an operator decides."""
        return self.quarantined_at_ms + ANSWER_KEPT_MS if self.is_told_only else None


class Quarantine(_Keyed):
    """Requests that cannot land, each behind one line that says why."""

    def __init__(self, storage: Storage, root: str) -> None:
        super().__init__(storage, root, "quarantine")
        self._told_only: set[Outstanding] = set()

    def location(self, key: str) -> str:
        return self.folder + _quarantine_name(key)

    async def put(self, record: QuarantineRecord, content: bytes) -> None:
        """Keep a request with its reason. An existing record stays, unless it is only a reference
        to an earlier entry and holds nothing.
        """
        if await self._create(record, content):
            return
        # An earlier copy of this delivery got here first, as a rule; its reason is as good.
        earlier = await self.readable_record(record.key)
        if earlier is not None and earlier.by_reference:
            await self.delete((record.key,))
            await self._create(record, content)

    async def refer(self, record: QuarantineRecord) -> bool:
        """Keep a reason for what stays in the inbox, and is not read.
        False if there is a record already.
        """
        return await self._create(record.model_copy(update={"by_reference": True}), b"")

    async def _create(self, record: QuarantineRecord, content: bytes) -> bool:
        line = record.model_dump_json().encode()
        created = NewObject(self.location(record.key), line + b"\n" + content)
        try:
            await self._storage.create((created,))
        except AlreadyExistsError:
            return False
        return True

    async def get(self, key: str) -> tuple[QuarantineRecord, bytes]:
        """Read the record and the request. Absent: `NotFoundError`."""
        return read_quarantined(await self._storage.get(self.location(key)), key)

    async def record(self, key: str) -> QuarantineRecord:
        """Read the record alone. Absent: `NotFoundError`."""
        start = await self._start(key, RECORD_BYTES_MAX)
        if b"\n" not in start:
            return (await self.get(key))[0]
        return read_quarantined(start, key)[0]

    async def line(self, key: str) -> bytes:
        """Read the first bytes of the request, its line among them: none where no request follows.

        Absent: `NotFoundError`. Errors: `InvalidRequestError` where it has no readable record.
        """
        start = await self._start(key, RECORD_BYTES_MAX + LINE_BYTES_MAX + 1)
        return read_quarantined(start, key)[1]

    async def readable_record(self, key: str) -> QuarantineRecord | None:
        """Read the record alone; None where there is none, or none that can be read."""
        try:
            return await self.record(key)
        except (NotFoundError, InvalidRequestError):
            return None

    async def is_told_only(self, found: Outstanding) -> bool:
        """Return whether a listed record keeps no request: its client has to run again, and may.

        Such a record is read once: a producer may have many, and is looked at again and again.
        """
        if found in self._told_only:
            return True
        record = await self.readable_record(found.key)
        if record is None or not record.is_told_only:
            return False
        if len(self._told_only) >= ANSWERS_KNOWN_MAX:
            self._told_only.clear()
        self._told_only.add(found)
        return True


async def list_durable(
    inbox: Inbox,
    quarantine: Quarantine,
    table_uuid: UUID | None = None,
    producer: str | None = None,
) -> AsyncIterator[tuple[Inbox | Quarantine, Outstanding]]:
    """Yield every request (of a table, or of one of its producers) that has not ended for good, and
    where it is. Some are listed twice.

    The inbox once more in the end: a replay moves a request there.
    """
    for place in (inbox, quarantine, inbox):
        async for one in place.list(table_uuid, producer):
            yield place, one


def read_quarantined(content: bytes, key: str) -> tuple[QuarantineRecord, bytes]:
    """Read the record and the request of a quarantine object.

    Errors: `InvalidRequestError` where it does not start with a record.
    """
    line, _, request = content.partition(b"\n")
    try:
        return QuarantineRecord.model_validate_json(line), request
    except ValidationError:
        raise InvalidRequestError(
            Reason.REQUEST_MALFORMED, f"the quarantine object of `{key}` has no readable record"
        ) from None


def _quarantine_name(key: str) -> str:
    """Return a key's name in quarantine: an inbox key is its own name,
    and so is the name of a stray."""
    if is_inbox_key(key) or _STRAY.fullmatch(key):
        return key
    return f"stray/{blake2b(key.encode(), digest_size=16).hexdigest()}"
