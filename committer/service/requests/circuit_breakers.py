"""A circuit breaker for each producer: a failing producer waits and does not fill the quarantine.

Consecutive quarantined requests open the breaker: the next requests of the producer stay in the
inbox, durable, not acknowledged, not in memory. After a pause one of them is tried. If it lands,
the breaker closes and the reconciler reads the others; if not, the next pause is twice as long. So
requests that waited for the repair of a table need no replay.

Breakers are in memory only, and no promise depends on them. A breaker ends with the shard of its
table. The next owner, or the next process, looks in quarantine when a producer fails there for the
first time: if enough of its requests have failed lately, this one opens the breaker.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from committer.ports.queue import shard_of
from committer.ports.world import World
from committer.request.commit_request import CommitRequest
from committer.request.request_format import EncodedRequest
from committer.request.request_key import RequestKey, producer_prefix
from committer.service.requests.inbox_keys import InboxKey
from committer.service.telemetry.log import log
from committer.storage.inbox.inbox import Outstanding, Quarantine, skips_of

# A trial without an end (its table's committer has ended, say) is not waited for any longer.
TRIAL_S_MAX = 60.0
# A pause doubles up to so many first pauses.
PAUSES_MAX = 10
# Producers that failed at least once, lately, or landed after that.
KNOWN_MAX = 10_000

_ProducerKey = tuple[UUID, str]


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """`threshold`: consecutive quarantined requests that open a breaker, 0: never. `pause_s`: until
    the first trial.
    """

    threshold: int = 20
    pause_s: float = 60.0


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """A producer whose breaker is open. `failures` in a row, the last for `reason`. `table`: its
    name, or its uuid where no request could be read. `again_s`: until the next trial.
    """

    table: str
    producer: str
    failures: int
    reason: str
    again_s: float


@dataclass(slots=True)
class _Breaker:
    """One producer that failed. Not open while `until_s` is None. `held_s`: when it last held a
    request, by the event loop's clock. `is_idle`: a listing of the inbox has shown none since.
    """

    table: str
    reason: str
    failures: int = 0
    pause_s: float = 0.0
    until_s: float | None = None
    trial: str | None = None
    trial_until_s: float = 0.0
    held_s: float = 0.0
    is_idle: bool = False


class CircuitBreakers:
    """The breakers of all producers of a process."""

    def __init__(self, policy: BreakerPolicy, world: World) -> None:
        self._policy = policy
        self._world = world
        self._known: OrderedDict[_ProducerKey, _Breaker] = OrderedDict()
        self._open: set[_ProducerKey] = set()

    # --- Verdicts ---

    def room(self, request: CommitRequest) -> int | None:
        """Return how many more may go to quarantine before the breaker opens; None: any."""
        if not self._counts(request):
            return None
        known = self._known.get(_key(request))
        if known is None:
            return self._policy.threshold
        return 1 if known.until_s is not None else self._policy.threshold - known.failures

    def quarantined(self, request: CommitRequest, reason: str) -> None:
        """Count a request that has gone to quarantine."""
        if self._counts(request):
            self._failed(_key(request), str(request.identifier), reason)

    def unreadable(self, inbox_key: RequestKey, reason: str) -> None:
        """Count a request that has gone to quarantine although only its key is known."""
        if self._policy.threshold > 0:
            key = inbox_key.table_uuid, inbox_key.producer
            self._failed(key, str(inbox_key.table_uuid), reason)

    def _failed(self, key: _ProducerKey, table: str, reason: str) -> None:
        known = self._known.setdefault(key, _Breaker(table, reason))
        self._known.move_to_end(key)
        known.failures += 1
        known.reason = reason
        if known.failures >= self._policy.threshold:
            self._trip(key, known)
        while len(self._known) > KNOWN_MAX:
            forgotten, _ = self._known.popitem(last=False)
            self._open.discard(forgotten)

    # --- Failures before this process had the table ---

    def is_unknown(self, request: CommitRequest) -> bool:
        """Return whether the producer of a request that fails is unknown here: then `look_back`."""
        return self._counts(request) and _key(request) not in self._known

    def is_unknown_key(self, key: RequestKey) -> bool:
        """Return the same for a request that cannot be read."""
        return self._policy.threshold > 0 and (key.table_uuid, key.producer) not in self._known

    async def look_back(
        self, table: str, table_uuid: UUID, producer: str, quarantine: Quarantine
    ) -> None:
        """Look in quarantine for earlier failures of an unknown producer: its breaker may have been
        open where its table was before. If enough of them are recent, one more opens it.

        Errors: those of the storage.
        """
        skips = skips_of(table_uuid, producer)
        listed = [one async for one in quarantine.list(table_uuid, producer, skips=skips)]
        failures = await self._recent_failures(listed, quarantine)
        known = _Breaker(table, "", failures=failures)
        self._known.setdefault((table_uuid, producer), known)

    async def _recent_failures(self, listed: list[Outstanding], quarantine: Quarantine) -> int:
        """Return how many failures in a row these records stand for: one less than open a breaker,
        if one may have been open until now; else 0. A conflict is no failure.
        """
        threshold, pause_s = self._policy.threshold, self._policy.pause_s * PAUSES_MAX
        oldest_ms = self._world.now_ms() - int((pause_s + TRIAL_S_MAX) * 1000)
        listed.sort(key=lambda one: one.modified_ms, reverse=True)
        if len(listed) < threshold or listed[0].modified_ms < oldest_ms:
            return 0
        failed = 0
        for one in listed[: 2 * threshold]:
            failed += not await quarantine.is_told_only(one)
        return threshold - 1 if failed >= threshold else 0

    def landed(self, requests: Iterable[CommitRequest]) -> None:
        """Close the breakers of these requests' producers: their requests are in the table."""
        if not self._known:
            return
        for request in requests:
            key = _key(request)
            known = self._known.get(key)
            if known is None or not known.failures:
                continue
            # The records in quarantine by now prove no failure any more.
            self._known[key] = _Breaker(known.table, "")
            if key in self._open:
                self._open.discard(key)
                log.info("producer.breaker_closed", table=known.table, producer=key[1])

    def _counts(self, request: CommitRequest) -> bool:
        """Return whether a request counts: a one-shot producer has no further ones."""
        return self._policy.threshold > 0 and not request.producer.one_shot

    def _trip(self, key: _ProducerKey, known: _Breaker) -> None:
        first_s = self._policy.pause_s
        known.pause_s = min(known.pause_s * 2 or first_s, first_s * PAUSES_MAX)
        known.until_s = self._world.monotonic_s() + known.pause_s
        known.trial = None
        self._note_held(key)
        self._open.add(key)
        log.warning(
            "producer.breaker_opened",
            table=known.table,
            producer=key[1],
            failures=known.failures,
            reason=known.reason,
            pause_s=known.pause_s,
        )

    # --- Open breakers ---

    @property
    def are_open(self) -> bool:
        return bool(self._open)

    def holds(self, table_uuid: UUID, producer: str, inbox_key: str) -> bool:
        """Return whether a request has to wait. After the pause the first that is asked about is
        the trial and need not, and the others have to until it has its verdict.
        """
        if (table_uuid, producer) not in self._open:
            return False
        known = self._known[table_uuid, producer]
        if known.trial == inbox_key:
            return False
        now_s = self._world.monotonic_s()
        pauses = known.until_s is not None and now_s < known.until_s
        if pauses or (known.trial is not None and now_s < known.trial_until_s):
            return True
        known.trial, known.trial_until_s = inbox_key, now_s + TRIAL_S_MAX
        return False

    def holds_key(self, key: InboxKey) -> bool:
        """Return whether a request has to wait of which only the key is known."""
        parts = key.parts
        return parts is not None and self.holds(parts.table_uuid, parts.producer, key)

    def holds_request(self, sealed: EncodedRequest) -> bool:
        """Return whether a request that was read has to wait."""
        key = _key(sealed.request)
        is_held = self.holds(*key, sealed.key)
        if is_held:
            self._note_held(key)
        return is_held

    def held(self, key: InboxKey) -> None:
        """Note that a request has come that may have to wait for its producer's breaker."""
        if self.is_open(key) and key.parts is not None:
            self._note_held((key.parts.table_uuid, key.parts.producer))

    def _note_held(self, key: _ProducerKey) -> None:
        known = self._known[key]
        known.held_s, known.is_idle = self._world.monotonic_s(), False

    def is_open(self, key: InboxKey) -> bool:
        """Return whether the breaker of a producer is open, without a trial."""
        parts = key.parts
        return parts is not None and (parts.table_uuid, parts.producer) in self._open

    def listed(self, folders: Container[str], began_s: float) -> None:
        """Note that a complete listing of the inbox, begun then, has shown the requests of the
        producers of these folders.
        """
        for key in self._open:
            known = self._known[key]
            known.is_idle = known.held_s < began_s and producer_prefix(*key) not in folders

    def release_shards(self, shards: Collection[int]) -> None:
        """End the breakers of shards that another committer owns now."""
        for key in [key for key in self._known if shard_of(key[0]) in shards]:
            del self._known[key]
            self._open.discard(key)

    def open_breakers(self) -> Iterator[OpenBreaker]:
        """Yield every open breaker that has requests to hold."""
        now_s = self._world.monotonic_s()
        for key in self._open:
            known = self._known[key]
            if known.is_idle:
                continue
            again_s = max(0.0, (known.until_s or now_s) - now_s)
            yield OpenBreaker(known.table, key[1], known.failures, known.reason, again_s)


def _key(request: CommitRequest) -> _ProducerKey:
    return request.table_uuid, request.producer.id
