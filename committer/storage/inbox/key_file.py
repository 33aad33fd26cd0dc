"""The file of signing keys, on any `Storage`, read again while the process runs.

So a key is added or taken back without a restart, for those who sign and those who verify.
"""

from __future__ import annotations

from committer.errors import FrazilError, NotFoundError, SettingsError
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.request.signature import Keys, parse_keys

SETTING = "security.keys"
BYTES_MAX = 4 * 1024 * 1024


class KeyFile:
    """One file of keys."""

    def __init__(self, storage: Storage, location: str, world: World) -> None:
        self._storage = storage
        self._location = location
        self._world = world
        self._keys: Keys | None = None
        self._read_s = 0.0

    async def read(self) -> Keys:
        """Read it now.

        Errors: `SettingsError` for a file that is not there or not right; those of the storage.
        """
        where = f"setting `{SETTING}`: `{self._location}`"
        try:
            content = await self._storage.get(self._location, size_bytes_max=BYTES_MAX)
        except NotFoundError as error:
            message = f"{where}: the file of keys does not exist, or is no file: {error}"
            raise SettingsError(message) from None
        self._keys, self._read_s = parse_keys(content, where), self._world.monotonic_s()
        return self._keys

    async def keys(self, *, age_s_max: float) -> Keys:
        """Return the keys, read again if they are older.
        If the file cannot be read, the known keys stay: a file is missing for a moment while it is
        replaced. Errors: as `read`, the first time.
        """
        if self._keys is not None and self._world.monotonic_s() - self._read_s < age_s_max:
            return self._keys
        try:
            return await self.read()
        except FrazilError:
            if self._keys is None:
                raise
            self._read_s = self._world.monotonic_s()
            return self._keys
