"""Notes that tables have moved to another catalog, beside the inbox.

    <root>/moved/<table uuid>    where the table is now

`frazil table migrate` writes a note before the table leaves its catalog. A committer that finds no
table then keeps the requests that wait for it. When to write and to believe a note is not decided
here.
"""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from committer.errors import AlreadyExistsError, InvalidMetadataError, NotFoundError
from committer.ports.storage import Storage


class Move(BaseModel):
    """The old and the new place of a table. `to`: the catalog's name; `inbox`: that of its
    committer.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    table: str
    came_from: str
    to: str
    inbox: str


class Moves:
    """The notes of all tables below one root."""

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage = storage
        self._folder = f"{root.rstrip('/')}/moved/"

    def location(self, table_uuid: UUID) -> str:
        return f"{self._folder}{table_uuid}"

    async def find(self, table_uuid: UUID) -> Move | None:
        """Return the note on a table; None where there is none.

        Errors: `InvalidMetadataError` for one that cannot be read.
        """
        location = self.location(table_uuid)
        try:
            content = await self._storage.get(location)
        except NotFoundError:
            return None
        try:
            return Move.model_validate_json(content)
        except ValidationError:
            raise InvalidMetadataError(
                f"`{location}` is no note on a table that has moved: remove it, or restore it"
            ) from None

    async def held(self, table_uuid: UUID) -> tuple[Move | None, str | None]:
        """Return the note on a table, and what tells it from another one; None for both where there
        is none. Errors: as `find`.
        """
        try:
            etag = (await self._storage.head(self.location(table_uuid))).etag
        except NotFoundError:
            return None, None
        return await self.find(table_uuid), etag

    async def put(self, table_uuid: UUID, move: Move, *, replaces: str | None) -> str:
        """Write a note in place of the one that `held` told, and tell it. One like it may be there.

        Errors: `AlreadyExistsError` where another one is.
        """
        content = move.model_dump_json().encode()
        try:
            return await self._storage.replace(self.location(table_uuid), content, etag=replaces)
        except AlreadyExistsError:
            there, etag = await self.held(table_uuid)
            if there != move or etag is None:
                raise
            return etag

    async def delete(self, table_uuid: UUID) -> None:
        """Remove the note on a table, if there is one."""
        await self._storage.delete((self.location(table_uuid),))
