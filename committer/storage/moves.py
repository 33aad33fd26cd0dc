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
from committer.ports.storage import NewObject, Storage


class Move(BaseModel):
    """Where a table came from, and where it is. `to`: the catalog's name; `inbox`: that of its
    committer."""

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

    async def put(self, table_uuid: UUID, move: Move) -> None:
        """Write a note; another one on the table is replaced."""
        if await self.find(table_uuid) == move:
            return
        await self.delete(table_uuid)
        created = NewObject(self.location(table_uuid), move.model_dump_json().encode())
        try:
            await self._storage.create((created,))
        except AlreadyExistsError:
            if await self.find(table_uuid) != move:
                raise

    async def delete(self, table_uuid: UUID) -> None:
        """Remove the note on a table, if there is one."""
        await self._storage.delete((self.location(table_uuid),))
