"""The port `Storage`: objects by location. Each docstring is a contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from committer.errors import (
    AlreadyExistsError,
    FrazilError,
    NotFoundError,
    ObjectTooLargeError,
    StorageUnavailableError,
    UndeletedError,
)
from committer.ports.skips import Skips


@dataclass(frozen=True, slots=True)
class NewObject:
    """An object to be created: its full location (URI or path) and content."""

    location: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object as a listing or `head` describes it. `etag` changes when other content replaces the
    content; some storages make it of the content alone.
    """

    location: str
    size_bytes: int
    modified_ms: int
    etag: str


class Storage(Protocol):
    """Objects by location. An object appears whole or not at all; no reader sees half of one.

    Obligations of every method: a missing permission is `AccessError`, an unreachable or overloaded
    backend is `StorageUnavailableError`, a location of a foreign scheme is `SettingsError`.
    Locations in answers are spelled as the caller spelled them (a listing: as its prefix was
    spelled).
    """

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        """Return the bytes, or the given range cut to the object's end. Absent: `NotFoundError`.

        An object larger than `size_bytes_max` is `ObjectTooLargeError`, before its first byte is
        read.
        """

    async def head(self, location: str) -> ObjectInfo:
        """Describe one object without reading it. Absent: `NotFoundError`."""

    async def create(self, objects: Sequence[NewObject]) -> None:
        """Create every object, in parallel where that helps, durably (survives a power cut).

        A location that exists raises `AlreadyExistsError` naming it, for any content, and leaves it
        untouched; of two concurrent creates of one location exactly one returns. If the call
        raises, any subset of the other objects may have been created. The caller may repeat the
        call and compare contents (`committer.ports.storage.create_or_equal`).
        """

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        """Write the object if its etag is still `etag` (None: absent) and return the new one.

        A failed condition raises `AlreadyExistsError`. Of two concurrent replaces of one etag
        exactly one returns.
        """

    async def delete(self, locations: Sequence[str]) -> None:
        """Delete all; an absent object counts as deleted. May be repeated.

        An object that cannot be deleted keeps no other from being deleted: once all others are
        deleted, `UndeletedError` names those that remain, each with its error (for a lone location,
        its error is raised itself). Any other error is that of the call as a whole, after which any
        subset may have been deleted.
        """

    def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        """Yield every object below the folder `prefix` in ascending order of location.

        Objects created before the call started and not deleted since are all yielded. A prefix
        with nothing below it, or that does not exist, yields nothing.

        An entry that is no object (a link, a FIFO, …) is not yielded, not opened, and never fails
        the listing; `skips` collects it. Where objects may be hidden (a folder without rights) the
        listing fails, unless `skips` is given to collect that too.
        """

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        """Return the names directly in a folder that start so, sorted: of objects, and, ending with
        a slash, of the folders in it. Strongly consistent with creates and deletes.

        A folder that does not exist has none. What is neither object nor folder is left out.
        """

    async def probe(self, prefix: str) -> None:
        """Prove below `prefix` that create-only and conditional writes are enforced; clean up.

        A backend that does not enforce them raises `SettingsError` saying which condition was
        ignored.
        """

    async def close(self) -> None:
        """Release connections. Idempotent."""


def require_size(location: str, size_bytes: int, size_bytes_max: int | None) -> None:
    """Refuse to read an object that is larger. Errors: `ObjectTooLargeError`."""
    if size_bytes_max is not None and size_bytes > size_bytes_max:
        raise ObjectTooLargeError(location, size_bytes, size_bytes_max)


def require_deleted(failures: Mapping[str, FrazilError], asked: Collection[str]) -> None:
    """Raise what `Storage.delete` raises if some of the locations `asked` could not be deleted."""
    if failures and len(asked) == 1:
        raise next(iter(failures.values()))
    if failures:
        raise UndeletedError(failures)


def undeleted(error: FrazilError, asked: Collection[str]) -> Mapping[str, FrazilError]:
    """Return which of the locations `asked` remain after this error of `Storage.delete`, and why.
    Errors: the error itself if it is that of the call as a whole.
    """
    if isinstance(error, UndeletedError):
        return error.failures
    if len(asked) == 1:
        return dict.fromkeys(asked, error)
    raise error


async def exists(storage: Storage, location: str) -> bool:
    """Return whether there is an object. Errors: those of `Storage.head`."""
    try:
        await storage.head(location)
    except NotFoundError:
        return False
    return True


async def create_or_equal(storage: Storage, created: NewObject) -> bool:
    """Create one object: True if it was written now, False if an equal one existed.

    Errors: `AlreadyExistsError` where another content has the location; `StorageUnavailableError`
    if the existing one was deleted before it could be compared.
    """
    try:
        await storage.create((created,))
    except AlreadyExistsError:
        try:
            standing = await storage.get(created.location)
        except NotFoundError as error:
            message = f"`{created.location}` existed, and was deleted meanwhile"
            raise StorageUnavailableError(message) from error
        if standing != created.content:
            raise
        return False
    return True
