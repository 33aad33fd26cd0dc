"""Records what an operator changes in the audit: before the change, and after it.

A change that the audit cannot hold is not made. One whose end is not in the audit has an unknown
outcome: its process ended in between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import JsonValue

from committer.errors import AccessError, FrazilError, TransientError
from committer.plan.commit.table_facts import changed_facts
from committer.ports.world import World
from committer.storage.inbox.audit_log import AuditEntry, AuditLog, Phase

# Entries of one object.
_ENTRIES_MAX = 1_000

Facts = dict[str, JsonValue]


@dataclass(slots=True)
class Change:
    """One change of a table, a producer or a request, and what came of it.

    `before`: the facts that it may alter. `after`: set by the caller once the change is made.
    `refused`: why it was not made, although no error ended the command.
    """

    action: str
    table: str | None = None
    table_uuid: str | None = None
    branch: str | None = None
    producer: str | None = None
    epoch: int | None = None
    key: str | None = None
    before: Facts | None = None
    after: Facts | None = None
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class AuditTrail:
    """The audit as one operator writes it. `who`: the operator. `reason`: why, if that was said."""

    audit: AuditLog
    world: World
    who: str
    reason: str | None = None

    @asynccontextmanager
    async def recorded(self, *changes: Change) -> AsyncIterator[None]:
        """Record changes around the block that makes them.

        Errors: those of the storage before the block, which is not entered then; those of the
        block, which are recorded as the end of each change that has no `after` yet.
        """
        entries = [self._begun(change) for change in changes]
        await self._append(entries)
        try:
            yield
        except (FrazilError, ValueError) as error:
            for change in changes:
                if change.after is None:
                    change.refused = change.refused or str(error)
            await self._append(self._ended(entries, changes))
            raise
        try:
            await self._append(self._ended(entries, changes))
        except (AccessError, TransientError) as error:
            raise type(error)(
                f"`{changes[0].action}` was carried out, but the audit does not have its end, and"
                f" shows its outcome as unknown: {error}"
            ) from error

    def _begun(self, change: Change) -> AuditEntry:
        return AuditEntry(
            entry_id=self.world.uuid().hex,
            at_ms=self.world.now_ms(),
            phase="begun",
            who=self.who,
            action=change.action,
            table=change.table,
            table_uuid=change.table_uuid,
            branch=change.branch,
            producer=change.producer,
            epoch=change.epoch,
            key=change.key,
            reason=self.reason,
            before=change.before,
        )

    def _ended(
        self, entries: Sequence[AuditEntry], changes: Sequence[Change]
    ) -> Iterator[AuditEntry]:
        for entry, change in zip(entries, changes, strict=True):
            before, after = change.before, change.after
            if before is not None and after is not None and before.keys() <= after.keys():
                before, after = changed_facts(before, after)
            phase: Phase = "done" if change.refused is None else "failed"
            yield entry.model_copy(
                update={
                    "at_ms": self.world.now_ms(),
                    "phase": phase,
                    "before": before,
                    "after": after,
                    "error": change.refused,
                }
            )

    async def _append(self, entries: Iterator[AuditEntry] | Sequence[AuditEntry]) -> None:
        listed = list(entries)
        for start in range(0, len(listed), _ENTRIES_MAX):
            group = listed[start : start + _ENTRIES_MAX]
            await self.audit.append(group, object_id=self.world.uuid())
