"""The versions of a table: which is current, and the creation of the next one, which is the swap.

**The line that matters is the look after the creation.** A version that was cleaned up can be
created once more by a writer that is far behind, and no condition stops it. So a version counts
only if its folder, listed afterwards, has no higher one and still has the base. A number says
nothing of whose it is, either: the folder may be that of a later table of the same name, so the
base is asked for the table's uuid before the creation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from committer.catalog.hadoop.hadoop_layout import Version, current_version, has_metadata
from committer.catalog.hadoop.version_hint import VersionHints
from committer.errors import (
    AlreadyExistsError,
    CatalogUnavailableError,
    FrazilError,
    NotFoundError,
    StorageUnavailableError,
)
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.ports.pointer_swap import Conflict, SwapAnswer, Unknown
from committer.ports.storage import NewObject, Storage

# Every writer puts the uuid behind the format version, in front of all that grows.
_HEAD_BYTES = 256


class Versions:
    """The metadata folders of one file system. `is_local`: an engine on this machine may rename
    over a version that is there.
    """

    def __init__(self, storage: Storage, *, is_local: bool) -> None:
        self._storage = storage
        self._is_local = is_local
        self._hints = VersionHints(storage, has_checksums=is_local)

    async def current(self, folder: str) -> Version | None:
        """Return the highest version in a metadata folder. Errors: `CatalogUnavailableError`."""
        return current_version(await self.names(folder, "v"))

    async def has_metadata(self, folder: str) -> bool:
        """Return whether any catalog's table has its metadata here."""
        return has_metadata(await self.names(folder))

    async def names(self, folder: str, starts_with: str = "") -> Sequence[str]:
        """Return what is directly in a folder. Errors: as `current`."""
        with unavailable():
            return await self._storage.names(folder, starts_with=starts_with)

    async def create_first(self, written: NewObject) -> None:
        """Create version 1; an equal one is that of an earlier call. Errors: `AlreadyExistsError`
        for another one, `CatalogUnavailableError`, after which it may be there.
        """
        with unavailable():
            try:
                await self._storage.create((written,))
            except AlreadyExistsError:
                if await self._storage.get(written.location) != written.content:
                    raise
        await self._hints.raise_to(written.location.rpartition("/")[0], 1)

    async def create_next(
        self, written: NewObject, base: Version, *, table_uuid: UUID, is_only_ours: bool
    ) -> SwapAnswer | None:
        """Create the version after `base`: None if it counts, else the answer of its swap.

        `is_only_ours`: no other writer can have made the same content. Errors: as `Catalog.swap`.
        """
        folder = written.location.rpartition("/")[0]
        is_standing, taken = await asyncio.gather(
            self._is_of(f"{folder}/{base.name}", table_uuid),
            self.names(folder, f"v{base.number + 1}."),
        )
        if not is_standing or current_version(taken) is not None:
            return Conflict()
        try:
            await self._storage.create((written,))
        except (AlreadyExistsError, StorageUnavailableError) as error:
            answer = await self._whose(written, error, is_only_ours=is_only_ours)
            if answer is not None:
                return answer
        doubt = await self._doubt(written, base)
        if doubt is not None:
            return Unknown(f"`{written.location}` was created, but {doubt}")
        await self._hints.raise_to(folder, base.number + 1)
        return None

    async def _is_of(self, location: str, table_uuid: UUID) -> bool:
        """Return whether a version is there, and of this table, by its first bytes if they say."""
        with unavailable():
            try:
                head = await self._storage.get(location, offset=0, length=_HEAD_BYTES)
                if str(table_uuid).encode() in head:
                    return True
                # Compressed, or of a writer with another order, or of another table.
                content = await self._storage.get(location)
            except NotFoundError:
                return False
        # Of any size, and read seldom.
        metadata = await asyncio.to_thread(parse_table_metadata, content)
        return metadata.table_uuid == table_uuid

    async def _whose(
        self, written: NewObject, cause: FrazilError, *, is_only_ours: bool
    ) -> SwapAnswer | None:
        """Ask the file who created it, after a refusal or a lost answer: None if we did.

        It may not be there because the write is still on its way.
        """
        try:
            standing = await self._storage.get(written.location)
        except FrazilError as error:
            return Unknown(f"{cause}; reading it: {error}")
        if standing != written.content:
            return Conflict()
        return None if is_only_ours else Unknown(f"{cause}, with the same content")

    async def _doubt(self, written: NewObject, base: Version) -> str | None:
        """Return why the created version may not count: None if it does.

        It does not where its number was used before, or the table was dropped.
        """
        folder, _, name = written.location.rpartition("/")
        try:
            names = await self._storage.names(folder, starts_with="v")
            if self._is_local and await self._storage.get(written.location) != written.content:
                return "another writer has replaced it"
        except FrazilError as error:
            return f"its folder could not be read afterwards: {error}"
        current = current_version(names)
        if current is not None and current.number > base.number + 1:
            return f"the folder has `{current.name}`"
        if base.name not in names:
            return f"`{base.name}` is no longer there"
        spellings = [one for one in names if one.startswith(f"v{base.number + 1}.")]
        if spellings != [name]:
            return f"the folder has {', '.join(spellings) or 'it not'}"
        return None


@contextmanager
def unavailable() -> Iterator[None]:
    """Turn a storage that does not answer into a catalog that does not."""
    try:
        yield
    except StorageUnavailableError as error:
        raise CatalogUnavailableError(str(error)) from error
