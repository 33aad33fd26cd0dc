"""Keeps the version hint of file system tables: where other readers begin to look.

A hint is written after the version that it names, and never lowered. Nothing here reads a table by
it: a hint may lag behind, or be another program's.
"""

from __future__ import annotations

from contextlib import suppress

from committer.catalog.hadoop.hadoop_layout import HINT
from committer.errors import AlreadyExistsError, FrazilError, NotFoundError, ObjectTooLargeError
from committer.ports.storage import Storage

# A number of ten digits and a line end, and then some.
_BYTES_MAX = 64
# Against writers of the same hint at the same moment, each of which has a version of its own.
_ATTEMPTS_MAX = 5


class VersionHints:
    """The hints of all tables of a catalog. `has_checksums`: Hadoop keeps checksums of local files
    in files beside them.
    """

    def __init__(self, storage: Storage, *, has_checksums: bool) -> None:
        self._storage = storage
        self._has_checksums = has_checksums
        # By location: the version that the last write has named, and the etag of it.
        self._written: dict[str, tuple[int, str | None]] = {}

    async def raise_to(self, folder: str, version: int) -> None:
        """Make the hint of a metadata folder name at least this version.

        An error leaves the hint as it is: the version is there, readers look on from the hint, and
        the next commit writes it.
        """
        with suppress(FrazilError):
            for _ in range(_ATTEMPTS_MAX):
                if await self._write(f"{folder}/{HINT}", version):
                    return

    async def _write(self, location: str, version: int) -> bool:
        """Try once; False if another writer came between."""
        known = self._written.pop(location, None)
        named, etag = known if known is not None else await self._read(location)
        if named >= version:
            return True
        if self._has_checksums:
            # Hadoop would take the new hint for a broken one, and move it out of the table.
            folder, _, name = location.rpartition("/")
            await self._storage.delete((f"{folder}/.{name}.crc",))
        try:
            written = await self._storage.replace(location, str(version).encode(), etag=etag)
        except AlreadyExistsError:
            return False
        self._written[location] = version, written
        return True

    async def _read(self, location: str) -> tuple[int, str | None]:
        """Return the version that the hint names, 0 where it names none, and its etag."""
        try:
            # The etag first: a hint that is replaced in between makes the write fail.
            etag = (await self._storage.head(location)).etag
            content = await self._storage.get(location, size_bytes_max=_BYTES_MAX)
        except NotFoundError:
            return 0, None
        except ObjectTooLargeError:
            return 0, etag
        text = content.strip()
        return (int(text) if text.isdigit() else 0), etag
