"""Stores the high-water mark of each table, beside the inbox and outside every table location.

    <root>/witness/<table uuid>    what the table is known to hold: see
        `committer.plan.ledger.high_water_mark`

Its content, and whether a table may be believed, is not decided here.
"""

from __future__ import annotations

from uuid import UUID

from committer.errors import AlreadyExistsError, NotFoundError, SettingsError
from committer.ports.storage import Storage


class HighWaterMarks:
    """The high-water marks of all tables below one root.

    Ask for the etag first and for the content then: it is that of the etag or a later one, and a
    replacement on condition of the etag never loses another.
    """

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage = storage
        self._folder = f"{root.rstrip('/')}/witness/"

    def location(self, table_uuid: UUID) -> str:
        return f"{self._folder}{table_uuid}"

    async def etag(self, table_uuid: UUID) -> str | None:
        """Return the etag of the table's high-water mark; None where there is none."""
        try:
            return (await self._storage.head(self.location(table_uuid))).etag
        except NotFoundError:
            return None

    async def get(self, table_uuid: UUID) -> bytes:
        """Read a high-water mark. Absent: `NotFoundError`."""
        return await self._storage.get(self.location(table_uuid))

    async def replace(self, table_uuid: UUID, content: bytes, *, etag: str | None) -> str:
        """Write a high-water mark if it still has the etag (None: if there is none);
        return the new one.

        Errors: `AlreadyExistsError` where it has another; `SettingsError` where its name is taken
        by something that is no object.
        """
        location = self.location(table_uuid)
        try:
            return await self._storage.replace(location, content, etag=etag)
        except AlreadyExistsError:
            if etag is None and await self.etag(table_uuid) is None:
                raise SettingsError(
                    f"`{location}`: expected the high-water mark of a table or nothing,"
                    " found something that is no file: remove it"
                ) from None
            raise
