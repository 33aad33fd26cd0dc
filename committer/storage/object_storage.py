"""The port `Storage` on an object store: what S3, Google Cloud Storage and Azure share.

A store's own protocol is an `ObjectApi`. Create-only and replacement are conditions of the write
itself; after a condition that failed the object's mark tells whose it is (`failed_condition`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from committer.errors import AlreadyExistsError
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, require_size
from committer.ports.world import World
from committer.storage.failed_condition import Marked, RefusedWrite, settle_failed_condition
from committer.storage.object_location import LocationForm, ObjectLocation
from committer.storage.probe import prove_conditions
from committer.storage.repeated_calls import Tries, for_each


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as a store describes it; listings need not tell the mark."""

    key: str
    size_bytes: int
    modified_ms: int
    etag: str
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """An object to be written if its etag is still `etag`, or (None) if it is absent."""

    at: ObjectLocation
    content: bytes
    etag: str | None
    mark: str


@dataclass(frozen=True, slots=True)
class ReadRange:
    """The bytes from `offset` on, all or `length` (not 0) of them, of an object that is not larger
    than `size_bytes_max`."""

    offset: int
    length: int | None
    size_bytes_max: int | None

    @property
    def is_whole(self) -> bool:
        return self.offset == 0 and self.length is None

    @property
    def header(self) -> str:
        last = "" if self.length is None else str(self.offset + self.length - 1)
        return f"bytes={self.offset}-{last}"


class ObjectApi(Protocol):
    """The calls of one store. `what` is the location as the caller spelled it, for errors.

    Errors of every method are those of the port. Each call is sent again while that may help.
    """

    @property
    def locations(self) -> LocationForm: ...

    def can_be_etag(self, etag: str) -> bool:
        """Return whether the store could have given an object this etag."""

    async def read(self, what: str, at: ObjectLocation, part: ReadRange) -> bytes:
        """Return the bytes; none for a range that begins behind the object's end."""

    async def describe(self, what: str, at: ObjectLocation) -> StoredObject: ...

    async def write(self, what: str, write: Write, tries: Tries) -> str | None:
        """Write, and return the new etag; None if the condition has failed."""

    async def delete(self, places: Mapping[ObjectLocation, str]) -> None:
        """Delete objects, which may be absent. A place comes with its `what`, which names it in
        `UndeletedError`.
        """

    def list(self, what: str, folder: ObjectLocation) -> AsyncIterator[StoredObject]:
        """Yield what is below the folder, in ascending order of keys."""

    async def names(self, what: str, start: ObjectLocation) -> Sequence[str]:
        """Return the keys that begin with `start.key`, each cut behind its next slash, once."""


class Calls(Protocol):
    """The calls that an `ObjectApi` sends."""

    @property
    def at_once_max(self) -> int: ...

    async def close(self) -> None: ...


class ObjectStorage:
    """Serves the locations of one `ObjectApi`, which sends `calls`. No I/O before the first."""

    def __init__(self, api: ObjectApi, calls: Calls, world: World) -> None:
        self._api = api
        self._calls = calls
        self._world = world

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        at = self._api.locations.parse_existing(location)
        if length == 0:
            found = await self._api.describe(location, at)
            require_size(location, found.size_bytes, size_bytes_max)
            return b""
        return await self._api.read(location, at, ReadRange(offset, length, size_bytes_max))

    async def head(self, location: str) -> ObjectInfo:
        found = await self._api.describe(location, self._api.locations.parse_existing(location))
        return ObjectInfo(location, found.size_bytes, found.modified_ms, found.etag)

    async def create(self, objects: Sequence[NewObject]) -> None:
        parse = self._api.locations.parse_object
        places = [(created, parse(created.location)) for created in objects]

        async def create(place: tuple[NewObject, ObjectLocation]) -> None:
            created, at = place
            await self._write(created.location, at, created.content, None)

        await for_each(places, create, at_once_max=self._calls.at_once_max)

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        at = self._api.locations.parse_object(location)
        if etag is not None and not self._api.can_be_etag(etag):
            raise AlreadyExistsError(f"`{location}` is not `{etag}`, which no object can be")
        return await self._write(location, at, content, etag)

    async def delete(self, locations: Sequence[str]) -> None:
        parse = self._api.locations.parse_object
        await self._api.delete({parse(location): location for location in locations})

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        folder = self._api.locations.parse_folder(prefix)
        base = prefix if prefix.endswith("/") else f"{prefix}/"
        async for found in self._api.list(prefix, folder):
            # Other tools mark folders by empty objects whose keys end with a slash.
            if not found.key.endswith("/"):
                location = base + found.key[len(folder.key) :]
                yield ObjectInfo(location, found.size_bytes, found.modified_ms, found.etag)

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        at = self._api.locations.parse_folder(folder)
        start = ObjectLocation(at.bucket, at.key + starts_with)
        found = {key[len(at.key) :] for key in await self._api.names(folder, start)}
        return sorted(found - {""})

    async def probe(self, prefix: str) -> None:
        location = f"{prefix.removesuffix('/')}/frazil-probe-{self._world.uuid()}"
        self._api.locations.parse_object(location)
        await prove_conditions(self, location)

    async def close(self) -> None:
        await self._calls.close()

    async def _write(
        self, location: str, at: ObjectLocation, content: bytes, etag: str | None
    ) -> str:
        write = Write(at, content, etag, str(self._world.uuid()))
        tries = Tries()
        written = await self._api.write(location, write, tries)
        if written is not None:
            return written
        refused = RefusedWrite(location, etag, write.mark, tries.in_doubt)

        async def look() -> Marked:
            found = await self._api.describe(location, at)
            return Marked(found.etag, found.mark)

        return await settle_failed_condition(refused, look)
