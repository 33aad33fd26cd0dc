"""Reads what a plan asks for, all of one round at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from committer.errors import InvalidMetadataError, NotFoundError
from committer.group_commit import finish_in_turns
from committer.plan.operations.head import ObjectRange, Objects, ObjectsAtHand
from committer.ports.storage import Storage
from committer.request.table_identifier import TableIdentifier
from committer.service.tasks.recent_objects import RecentObjects

READS_AT_ONCE = 32


@dataclass(eq=False)
class PlanReads:
    """The reads of one attempt. `recent`: what is kept from one to the next; None for appends."""

    table: TableIdentifier
    storage: Storage
    recent: RecentObjects | None = None
    read: dict[ObjectRange, bytes] = field(default_factory=dict)

    @property
    def at_hand(self) -> ObjectsAtHand:
        """The reads that planning may use."""
        own = Objects(self.read)
        return own if self.recent is None else _Joined(self.read, self.recent)

    async def fetch(self, ranges: Collection[ObjectRange]) -> None:
        """Read these. Errors: those of the storage; `InvalidMetadataError` for a file of the table
        that does not exist."""
        await finish_in_turns(self._fetch, ranges, at_once_max=READS_AT_ONCE)

    async def _fetch(self, wanted: ObjectRange) -> None:
        content = await self._get(wanted)
        if self.recent is not None and content:
            self.recent.keep(wanted, content)
        self.read[wanted] = content

    async def _get(self, wanted: ObjectRange) -> bytes:
        try:
            return await self.storage.get(
                wanted.location, offset=wanted.offset, length=wanted.length
            )
        except NotFoundError as error:
            if wanted.length is not None:
                # A deletion vector that a request names and that is live no more: the plan says so.
                return b""
            raise InvalidMetadataError(
                f"table {self.table}: the file {wanted.location}, which its current snapshot needs,"
                " does not exist: another tool has deleted it; restore it, or roll the table back"
            ) from error


@dataclass(frozen=True, slots=True)
class _Joined:
    read: Mapping[ObjectRange, bytes]
    recent: RecentObjects

    def find(self, wanted: ObjectRange) -> bytes | None:
        content = self.read.get(wanted)
        return self.recent.find(wanted) if content is None else content
