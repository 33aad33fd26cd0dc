"""Objects in a dictionary: for tests and simulations. Lost with the process."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from dataclasses import dataclass

from committer.errors import AlreadyExistsError, FrazilError, NotFoundError, SettingsError
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, require_deleted, require_size
from committer.ports.world import World
from committer.storage.probe import prove_conditions
from committer.storage.scheme import scheme_of


@dataclass(frozen=True, slots=True)
class _Held:
    content: bytes
    modified_ms: int
    etag: str


class MemoryStorage:
    """Serves the given `schemes`; locations are compared as text. `undeletable`: locations that
    cannot be deleted, with their errors.

    Without a `world`, times of modification just count the writes.
    """

    def __init__(
        self, *, world: World | None = None, schemes: Collection[str] = ("memory",)
    ) -> None:
        self._world = world
        self._schemes = frozenset(schemes)
        self._objects: dict[str, _Held] = {}
        # In order, as most listings are of few of many.
        self._locations: list[str] = []
        self.undeletable: dict[str, FrazilError] = {}
        self._writes = 0

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        content = self._find(location).content
        require_size(location, len(content), size_bytes_max)
        return content[offset:] if length is None else content[offset : offset + length]

    async def head(self, location: str) -> ObjectInfo:
        return _describe(location, self._find(location))

    async def create(self, objects: Sequence[NewObject]) -> None:
        for created in objects:
            self._check(created.location)
        for created in objects:
            await self.replace(created.location, created.content, etag=None)

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        self._check(location)
        held = self._objects.get(location)
        if (held.etag if held else None) != etag:
            raise AlreadyExistsError(
                f"`{location}` exists" if etag is None else f"`{location}` is no longer `{etag}`"
            )
        self._writes += 1
        modified_ms = self._world.now_ms() if self._world else self._writes
        new = _Held(bytes(content), modified_ms, f"{self._writes}")
        if held is None:
            insort(self._locations, location)
        self._objects[location] = new
        return new.etag

    async def delete(self, locations: Sequence[str]) -> None:
        for location in locations:
            self._check(location)
        failures = {one: self.undeletable[one] for one in locations if one in self.undeletable}
        for location in locations:
            if location not in failures and location in self._objects:
                del self._objects[location]
                del self._locations[bisect_left(self._locations, location)]
        require_deleted(failures, locations)

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        self._check(prefix)
        folder = prefix if prefix.endswith("/") else f"{prefix}/"
        for location in list(self._beginning_with(folder)):
            if held := self._objects.get(location):
                yield _describe(location, held)

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        self._check(folder)
        base = folder if folder.endswith("/") else f"{folder}/"
        below = (found[len(base) :] for found in self._beginning_with(base + starts_with))
        return sorted({name[: name.find("/") + 1] or name for name in below})

    async def probe(self, prefix: str) -> None:
        await prove_conditions(self, f"{prefix.removesuffix('/')}/frazil-probe-{self._writes}")

    async def close(self) -> None:
        """Do nothing: the objects stay."""

    def _beginning_with(self, prefix: str) -> Iterator[str]:
        """Yield the locations that begin so, in order."""
        first = bisect_left(self._locations, prefix)
        for place in range(first, len(self._locations)):
            if not self._locations[place].startswith(prefix):
                return
            yield self._locations[place]

    def _find(self, location: str) -> _Held:
        self._check(location)
        if location not in self._objects:
            raise NotFoundError(f"`{location}` does not exist")
        return self._objects[location]

    def _check(self, location: str) -> None:
        if scheme_of(location) not in self._schemes:
            expected = ", ".join(f"`{scheme}:`" for scheme in sorted(self._schemes))
            raise SettingsError(f"location `{location}`: this storage serves {expected}")


def _describe(location: str, held: _Held) -> ObjectInfo:
    return ObjectInfo(location, len(held.content), held.modified_ms, held.etag)
