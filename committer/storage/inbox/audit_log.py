"""The audit: who changed what, why, and the state before and after, on any `Storage`.

    <root>/audit/<yyyy-mm-dd>/<time, ms>-<32 hex>    entries, one JSON line each

Append-only: an object is created under a name of its own, and no code of Frazil replaces or deletes
one. How long the objects are kept is an operator's decision. Which changes have an entry is not
decided here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from committer.errors import NotFoundError
from committer.group_commit import finish_in_turns
from committer.ports.storage import NewObject, Storage, create_or_equal

Facts = Mapping[str, JsonValue]
Phase = Literal["begun", "done", "failed", "landed"]
"""`begun` before a command's change, `done` or `failed` after it; `landed` of a request."""

_DAY_MS = 86_400_000
_READS_AT_ONCE = 32
# More days than this are listed in one call.
_DAYS_MAX = 366


class AuditEntry(BaseModel):
    """One line of the audit. A command writes two with one `entry_id`: before its change and after.

    `who`: the user and the machine of a command, the producer of a request. `before` and `after`
    hold what the change alters, and where the table's metadata is.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    audit_version: int = 1
    entry_id: str
    at_ms: int
    phase: Phase
    who: str
    action: str
    """A command, such as `quarantine discard`, or the operation of a request."""
    table: str | None = None
    table_uuid: str | None = None
    branch: str | None = None
    producer: str | None = None
    epoch: int | None = None
    key: str | None = None
    """The inbox key of the request."""
    key_id: str | None = None
    """The key that signed the request; None if it is not signed."""
    reason: str | None = None
    """As the operator gave it."""
    before: dict[str, JsonValue] | None = None
    after: dict[str, JsonValue] | None = None
    error: str | None = None


@dataclass(slots=True)
class AuditPage:
    """Entries in the order of their time. `unreadable`: objects that cannot be read, and why."""

    entries: list[AuditEntry] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)


class AuditLog:
    """The audit of one inbox."""

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage = storage
        self.folder = f"{root.rstrip('/')}/audit/"

    async def append(self, entries: Sequence[AuditEntry], *, object_id: UUID) -> None:
        """Make entries durable, as one object. The call may be repeated with the same id."""
        at_ms = min(entry.at_ms for entry in entries)
        location = f"{self.folder}{_day(at_ms)}/{at_ms:013d}-{object_id.hex}"
        content = b"".join(entry.model_dump_json().encode() + b"\n" for entry in entries)
        await create_or_equal(self._storage, NewObject(location, content))

    async def read(self, *, since_ms: int = 0, now_ms: int) -> AuditPage:
        """Return the entries of this time or later. Errors: those of the listing."""
        page = AuditPage()
        locations = [one async for one in self._locations(since_ms, now_ms)]
        read = partial(self._read, page.unreadable)
        objects = await finish_in_turns(read, locations, at_once_max=_READS_AT_ONCE)
        entries = (entry for one in objects for entry in one if entry.at_ms >= since_ms)
        page.entries = sorted(entries, key=lambda entry: entry.at_ms)
        return page

    async def _locations(self, since_ms: int, now_ms: int) -> AsyncIterator[str]:
        """List the objects of the days since then: at most one call a day, or one for all."""
        # A clock that differs puts an entry into a neighboring day.
        first, last = max(0, since_ms // _DAY_MS - 1), now_ms // _DAY_MS + 1
        is_short = last - first <= _DAYS_MAX
        days = [f"{_day(day * _DAY_MS)}/" for day in range(first, last + 1)] if is_short else [""]
        for day in days:
            async for info in self._storage.list(self.folder + day):
                yield info.location

    async def _read(self, unreadable: dict[str, str], location: str) -> Sequence[AuditEntry]:
        try:
            content = await self._storage.get(location)
        except NotFoundError:
            return ()  # an operator has removed it in the meantime
        try:
            return [AuditEntry.model_validate_json(line) for line in content.splitlines()]
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            unreadable[location] = f"it is no audit entry: {first['msg']}"
            return ()


def merged(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """Return one entry for each change, in the order of their beginnings: what a command knew
    before its change and after it together. An entry of a request that was written twice, because
    a committer did not live to hear of the first, is one.
    """
    changes: dict[str, AuditEntry] = {}
    for entry in entries:
        earlier = changes.get(entry.entry_id)
        if earlier is None:
            changes[entry.entry_id] = entry
        elif earlier.phase == "begun":
            ends = ("phase", "before", "after", "error")
            end = {name: getattr(entry, name) for name in ends}
            changes[entry.entry_id] = earlier.model_copy(update=end)
    return list(changes.values())


def _day(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d}"
