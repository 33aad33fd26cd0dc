"""Polls queue depth and quarantine size. Requests that a catalog refused are checked again for a
while: another committer may have landed them.

Bounded: one round of counting a queue, one listing of the quarantine (its first 10,000 requests),
a hundred records, each read once, and a hundred of refused requests. The small folders beside the
inbox are listed every ten minutes; of a larger quarantine, old answers behind the first 10,000 are
looked for then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from committer.errors import FrazilError, InvalidRequestError, NotFoundError, QueueUnavailableError
from committer.ports.queue import Queue
from committer.ports.skips import Skips
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.reason import Reason
from committer.service.ingest.resolved_refusals import ResolvedRefusals
from committer.service.requests.foreign_entries import show
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics, QuarantineSize
from committer.storage.inbox.inbox import (
    ANSWER_KEPT_MS,
    RECORD_BYTES_MAX,
    Outstanding,
    Quarantine,
    skips_of,
)

T = TypeVar("T")

INTERVAL_S = 30.0
LISTED_MAX = 10_000
# Small folders, written by committers alone: listed every ten minutes.
LOOKS_A_SURVEY = 20
RECORDS_MAX = 100
# For longer than an attempt of another committer may be on its way.
REFUSED_AGE_MS_MAX = 3_600_000
REFUSED = Reason.COMMIT_REJECTED.value
# A reason of another release, and records that were not read yet.
OTHER_REASON = "other"
NOT_READ = "not_read_yet"
# Of a record that keeps no request: it is not counted, and goes after a day.
TOLD_ONLY = "told_only"

_REASONS = frozenset(reason.value for reason in Reason)


class _Record(NamedTuple):
    """A record in quarantine, as far as it is counted."""

    reason: str
    table: str | None


@dataclass(eq=False, kw_only=True)
class Poller:
    """Shows both in the metrics, until canceled. An unavailable queue or quarantine is shown as
    not known. `folders`: further ones beside the inbox, listed only for what is foreign in them.
    """

    queue: Queue | None
    quarantine: Quarantine
    storage: Storage
    folders: Mapping[str, str]
    resolved_refusals: ResolvedRefusals
    world: World
    metrics: Metrics

    def __post_init__(self) -> None:
        self._looks = 0
        self._foreign: dict[str, frozenset[str]] = {}
        self._records: dict[str, _Record] = {}
        self._refused: list[str] = []
        self._unanswered: set[str] = set()
        self._cut_at: str | None = None
        self._searched_to = ""

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self.look()
            await self.world.sleep(INTERVAL_S)

    async def look(self) -> None:
        """Look once."""
        if self.queue is not None:
            self.metrics.show_queue(await self._ask("queue", self.queue.depth()))
        self.metrics.show_quarantine(await self._ask("quarantine", self._look_into_quarantine()))
        if self._refused:
            await self._ask("refused requests", self.resolved_refusals.take_out(self._refused))
        if self._looks % LOOKS_A_SURVEY == 0:
            for name, location in self.folders.items():
                await self._ask(name, self._survey(name, location))
            if self._cut_at is not None:
                await self._ask("old answers", self._remove_answers(self._cut_at))
        self._looks += 1

    async def _survey(self, name: str, location: str) -> None:
        skips = skips_of()
        async for _ in self.storage.list(location, skips=skips):
            continue
        self._show_foreign(name, skips)

    def _show_foreign(self, name: str, skips: Skips) -> None:
        named = self._foreign.get(name, frozenset())
        self._foreign[name] = show(name, skips, self.metrics, named)

    async def _ask(self, component: str, question: Coroutine[object, object, T]) -> T | None:
        """Return the answer; None if there is none, which is logged once. An unavailable queue is
        not logged here: the consumer reports it.
        """
        try:
            answer = await question
        except FrazilError as error:
            if component not in self._unanswered and not isinstance(error, QueueUnavailableError):
                log.warning("watch.unanswered", component=component, error=str(error))
            self._unanswered.add(component)
            return None
        self._unanswered.discard(component)
        return answer

    async def _look_into_quarantine(self) -> QuarantineSize:
        known, self._records = self._records, {}
        unread: list[str] = []
        told: list[str] = []
        young: set[str] = set()
        self._refused = []
        self._cut_at = None
        listed = size_bytes = 0
        now_ms = oldest_ms = self.world.now_ms()
        skips = skips_of()
        async for found in self.quarantine.list(skips=skips):
            listed += 1
            record = known.get(found.key)
            reason = record and record.reason
            if reason == TOLD_ONLY and self._is_old(found):
                told.append(found.key)
                continue
            if reason != TOLD_ONLY:
                size_bytes += found.size_bytes
                oldest_ms = min(oldest_ms, found.modified_ms)
            if now_ms - found.modified_ms <= REFUSED_AGE_MS_MAX:
                young.add(found.key)
            if record is None:
                unread.append(found.key)
            else:
                self._records[found.key] = record
            if listed == LISTED_MAX:
                self._cut_at = found.key
                break
        self._show_foreign("quarantine", skips)
        if told:
            await self.quarantine.delete(told)
        for key in unread[:RECORDS_MAX]:
            record = await self._read(key)
            if record is not None:
                self._records[key] = record
        self._refused = [
            key
            for key, record in self._records.items()
            if record.reason == REFUSED and key in young
        ]
        counts = Counter[tuple[str, str | None]](
            record for record in self._records.values() if record.reason != TOLD_ONLY
        )
        if len(unread) > RECORDS_MAX:
            counts[NOT_READ, None] = len(unread) - RECORDS_MAX
        return QuarantineSize(counts, size_bytes, (now_ms - oldest_ms) / 1000)

    async def _remove_answers(self, cut_at: str) -> None:
        """Remove old answers behind what a look lists. Reads as many records as the looks of this
        time, and the next time those behind them.
        """
        behind, left = max(cut_at, self._searched_to), RECORDS_MAX * LOOKS_A_SURVEY
        async for found in self.quarantine.list(skips=skips_of()):
            is_due = found.key > behind and self._is_old(found)
            if not is_due or found.size_bytes > RECORD_BYTES_MAX:
                continue
            self._searched_to = found.key
            record = await self._read(found.key)
            if record is not None and record.reason == TOLD_ONLY:
                await self.quarantine.delete((found.key,))
            left -= 1
            if left == 0:
                return
        self._searched_to = ""

    def _is_old(self, found: Outstanding) -> bool:
        return self.world.now_ms() - found.modified_ms > ANSWER_KEPT_MS

    async def _read(self, key: str) -> _Record | None:
        """Read a request's record; None if it has left the quarantine meanwhile."""
        try:
            record = await self.quarantine.record(key)
        except NotFoundError:
            return None
        except InvalidRequestError:
            return _Record(OTHER_REASON, None)
        reason = TOLD_ONLY if record.is_told_only else record.reason
        is_known = reason == TOLD_ONLY or reason in _REASONS
        return _Record(reason if is_known else OTHER_REASON, record.table)
