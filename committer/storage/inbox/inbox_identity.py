"""The identity of an inbox, as the port `Identity` says.

    <root>/installation    32 hexadecimal digits, and a line's end

The keys of the queue are named by it, so two installations share one server without meeting. A
process reads it once, before its first call of the queue. The first process makes it.
"""

from __future__ import annotations

import re

from committer.errors import (
    AccessError,
    AlreadyExistsError,
    NotFoundError,
    SettingsError,
    StorageUnavailableError,
)
from committer.ports.storage import NewObject, Storage
from committer.ports.world import World

NAME = "installation"
_IDENTITY = re.compile(rb"([0-9a-f]{32})\s*")
_READ_BYTES = 64


class InboxIdentity:
    """The identity of the inbox at `root`, known once it was read."""

    def __init__(self, storage: Storage, root: str, world: World) -> None:
        self.location = f"{root.rstrip('/')}/{NAME}"
        self._storage = storage
        self._world = world
        self._identity: str | None = None

    async def find(self) -> str | None:
        if self._identity is None:
            try:
                content = await self._storage.get(self.location, length=_READ_BYTES)
            except NotFoundError:
                return None
            self._identity = self._parse(content)
        return self._identity

    async def ensure(self) -> str:
        identity = await self.find()
        if identity is None:
            await self._make()
            identity = await self.find()
        if identity is None:
            raise StorageUnavailableError(f"`{self.location}` was deleted while it was made")
        return identity

    async def _make(self) -> None:
        content = f"{self._world.uuid().hex}\n".encode()
        try:
            await self._storage.create((NewObject(self.location, content),))
        except AlreadyExistsError:
            return  # another process was first, or an answer was lost
        except AccessError as error:
            raise AccessError(
                f"the inbox has no identity yet, and this process may not make it: {error}; the"
                " first start of a committer makes it"
            ) from error

    def _parse(self, content: bytes) -> str:
        match = _IDENTITY.fullmatch(content)
        if match is None:
            raise SettingsError(
                f"`{self.location}` is no identity of an inbox, expected 32 hexadecimal digits:"
                " restore it, or stop all committers of this inbox and delete it; the next start"
                " makes a new one"
            )
        return match[1].decode()
