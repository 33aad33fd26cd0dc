"""Keeps the high-water mark of each table durable. Whether a table is believed:
`high_water_check.py`.

The high-water mark is written behind the commits that it tells of, and always before the inbox
objects go that those commits have landed: whatever moment a process ends at, a request is in the
inbox, or its landing is in the high-water mark. It is replaced on condition of what was read, so
that of two committers the one with the older view takes nothing back; only an operator does
(`accept`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from committer.errors import (
    AlreadyExistsError,
    InvalidMetadataError,
    NotFoundError,
    StorageUnavailableError,
)
from committer.plan.ledger.high_water_mark import (
    HighWaterMark,
    parse_high_water_mark,
    print_high_water_mark,
)
from committer.plan.ledger.state import TableState
from committer.ports.storage import Storage
from committer.storage.inbox.high_water_mark_objects import HighWaterMarks

# The least recently used marks are forgotten, and read again.
KNOWN_MAX = 1_000
# So many writers in a row may win against this one.
TRIES_MAX = 8


@dataclass(frozen=True, slots=True)
class _Known:
    """A high-water mark as last read or written. No etag: there is none."""

    etag: str | None
    high_water_mark: HighWaterMark


class HighWaterMarkStore:
    """Reads and writes the high-water marks of all tables of a process."""

    def __init__(self, high_water_marks: HighWaterMarks) -> None:
        self._high_water_marks = high_water_marks
        self._known: OrderedDict[UUID, _Known] = OrderedDict()

    @classmethod
    def at(cls, storage: Storage, root: str) -> HighWaterMarkStore:
        """Return the store of the high-water marks below an inbox root."""
        return cls(HighWaterMarks(storage, root))

    async def read(self, table_uuid: UUID) -> HighWaterMark:
        """Return the durable high-water mark of a table.

        Errors: `InvalidMetadataError` for a high-water mark that cannot be read; those of the
        storage.
        """
        return (await self._read(table_uuid)).high_water_mark

    async def keep(self, seen: HighWaterMark) -> bool:
        """Make durable what was seen. False where an operator has decided something else since, or
        the table has gone on from older metadata: then it proves nothing any more.

        Errors: as `read`; `StorageUnavailableError` also where others were faster every time.
        """
        known, is_fresh = self._known.get(seen.table_uuid), False
        for _ in range(TRIES_MAX):
            if known is None:
                known, is_fresh = await self._read(seen.table_uuid), True
            if known.high_water_mark.decided > seen.decided or known.high_water_mark.contradicts(
                seen
            ):
                return False
            joined = known.high_water_mark.joined(seen)
            if joined != known.high_water_mark:
                if await self._replace(known, joined):
                    return True
            elif is_fresh:
                return True
            # A remembered mark proves nothing without a write that is conditional on it.
            known = None
        raise _contended(seen.table_uuid)

    def has_decided_since(self, seen: HighWaterMark) -> bool:
        """Return whether an operator is known to have decided about the table after that mark."""
        known = self._known.get(seen.table_uuid)
        return known is not None and known.high_water_mark.decided > seen.decided

    async def _read(self, table_uuid: UUID) -> _Known:
        etag, known = await self._high_water_marks.etag(table_uuid), self._known.get(table_uuid)
        if known is not None and etag is not None and known.etag == etag:
            return known
        if etag is None:
            return self._remember(_Known(None, HighWaterMark(table_uuid)))
        try:
            content = await self._high_water_marks.get(table_uuid)
        except NotFoundError as error:
            # Seen a moment ago: not nothing, but not known either.
            raise StorageUnavailableError(str(error)) from error
        return self._remember(_Known(etag, parse_high_water_mark(content, table_uuid)))

    async def _replace(self, known: _Known, by: HighWaterMark) -> bool:
        """Write, unless another committer has written since."""
        table_uuid = by.table_uuid
        try:
            etag = await self._high_water_marks.replace(
                table_uuid, print_high_water_mark(by), etag=known.etag
            )
        except AlreadyExistsError:
            self._known.pop(table_uuid, None)
            return False
        self._remember(_Known(etag, by))
        return True

    def _remember(self, known: _Known) -> _Known:
        self._known[known.high_water_mark.table_uuid] = known
        self._known.move_to_end(known.high_water_mark.table_uuid)
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return known

    async def forget(
        self, table_uuid: UUID, epochs: Mapping[str, int], *, sequence_number: int, now_ms: int
    ) -> None:
        """Let the ledger be without these epochs, by its properties, without those below them and
        those that are known already: before the swap that takes them out, and as far as they have
        landed up to that sequence number. Errors: as `keep`.
        """
        for _ in range(TRIES_MAX):
            stored = await self.read(table_uuid)
            known = {key: stored.producers.get(key, -1) for key in epochs}
            less = stored.without(known, sequence_number=sequence_number)
            less = less.without(epochs, sequence_number=sequence_number)
            forgotten_ms = max(now_ms, stored.forgotten_ms + 1)
            # Not kept where an operator has decided something else in between.
            if await self.keep(replace(less, forgotten_ms=forgotten_ms)):
                return
        raise _contended(table_uuid)

    async def accept(self, state: TableState, *, now_ms: int) -> HighWaterMark:
        """Make a state of a table the truth: whatever else was known of it is void, and so is a
        high-water mark that cannot be read.

        Errors: `StorageUnavailableError` where others were faster every time; the storage's.
        """
        table_uuid = state.metadata.require_uuid()
        for _ in range(TRIES_MAX):
            etag = await self._high_water_marks.etag(table_uuid)
            try:
                accepted_ms = (await self.read(table_uuid)).accepted_ms
            except InvalidMetadataError:
                accepted_ms = 0
            # Later than any before it, even if the clock was put back.
            accepted = HighWaterMark.of(state, accepted_ms=max(now_ms, accepted_ms + 1))
            if await self._replace(_Known(etag, accepted), accepted):
                return accepted
        raise _contended(table_uuid)


def _contended(table_uuid: UUID) -> StorageUnavailableError:
    return StorageUnavailableError(
        f"the high-water mark of table {table_uuid} is written by others all the time"
    )
