"""A request on its way through the service, and the requests of one table that wait.

`Waiting` owns its requests: it alone changes them, and their stage only along `TRANSITIONS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from committer.errors import (
    EpochGapError,
    FrazilError,
    InvariantError,
    TransientError,
    reason_of,
)
from committer.plan.batch.batch_policy import PRODUCER_REQUESTS_MAX
from committer.plan.batch.request_check import CheckBasis, CheckedRequest
from committer.plan.scheduling.backoff import retry_s
from committer.plan.scheduling.ready_requests import ReadyRequests
from committer.ports.world import World
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from committer.request.transaction import TransactionIdentity
from committer.service.requests.deferred_doorbells import NO_WAITERS, Waiters
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.large_requests import LARGE_BYTES_MIN, NamedManifests
from committer.service.telemetry.lag import DurableByCause, LagCause
from committer.service.telemetry.log import log

Refusal = tuple[Reason, str]

# If the environment is misconfigured, retrying more often does not help.
FAULT_PAUSE_S = 15.0
_BYTES_A_REQUEST = 4 * 1024
_BYTES_A_VALUE = 32


class Stage(Enum):
    """The stages of a request in memory. `ENDS` are behind its verdict."""

    RECEIVED = "received"  # the next round looks at it
    CHECKING = "checking"  # beside the rounds, as it takes long
    CHECKED = "checked"  # its content may land on the basis of its check
    JOINED = "joined"  # checked, and outside the queue: it waits for its transaction
    IN_FLIGHT = "in flight"  # in the batch that is being committed
    DEFERRED = "deferred"  # retried later, for a reason of its own
    LANDED = "landed"  # by a commit of this committer
    DUPLICATE = "duplicate"  # its epoch had landed before
    QUARANTINED = "quarantined"
    LEFT_BEFORE = "left before"  # its inbox object is not there: it has ended before
    RETURNED = "returned"  # out of memory; it stays in the inbox and is found there again


ENDS = frozenset(
    {Stage.LANDED, Stage.DUPLICATE, Stage.QUARANTINED, Stage.LEFT_BEFORE, Stage.RETURNED}
)
# Every round looks at all requests anew, so each stage of a round may lead to every verdict without
# a commit. Only a batch lands, and nothing of a batch in flight is returned: it may have landed.
_VERDICTS = frozenset({Stage.DUPLICATE, Stage.QUARANTINED, Stage.LEFT_BEFORE})
TRANSITIONS: Mapping[Stage, frozenset[Stage]] = {
    Stage.RECEIVED: _VERDICTS | {Stage.CHECKED, Stage.CHECKING, Stage.DEFERRED, Stage.RETURNED},
    Stage.CHECKING: frozenset({Stage.RECEIVED, Stage.CHECKED}),
    Stage.CHECKED: _VERDICTS
    | {Stage.RECEIVED, Stage.JOINED, Stage.IN_FLIGHT, Stage.DEFERRED, Stage.RETURNED},
    Stage.JOINED: frozenset({Stage.CHECKED, Stage.IN_FLIGHT, Stage.DEFERRED, Stage.RETURNED}),
    Stage.IN_FLIGHT: _VERDICTS
    | {Stage.RECEIVED, Stage.CHECKED, Stage.JOINED, Stage.DEFERRED, Stage.LANDED},
    Stage.DEFERRED: frozenset({Stage.RECEIVED, Stage.CHECKED}),
    **dict.fromkeys(ENDS, frozenset()),
}
_LAG_CAUSES = {Stage.JOINED: LagCause.HELD, Stage.IN_FLIGHT: LagCause.WAITING}


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check of the content, and the basis that it holds for."""

    basis: CheckBasis
    result: CheckedRequest | Refusal | FrazilError


@dataclass(slots=True)
class Pending:
    """One request, from its arrival to its verdict.

    `durable_ms`: since when it has been durable as far as is known: its arrival, until a listing of
    the inbox tells better. `is_inline`: nothing but a doorbell has told of its content, which may
    be another than that of the inbox object. `is_shared`: others may have been handed it too, or an
    operator have decided about it, since it came from a listing, from a doorbell that rang before,
    or has waited for a frozen table: it lands only while its inbox object is there. `present_in` is
    the state generation after whose load the inbox object was seen to exist. `is_authentic`: its
    signature was checked, or need not be. `is_proven`: its signature proves its origin, or this
    process has published it. `has_its_files`: its files were seen to exist. `known_since`: the
    generation of the first load of the table that began after it came: the state has what its
    client had read. `suspicion` is why an
    attempt with this request alone failed: a verdict once fresh metadata agrees; `conflict` the
    code, if it is one, and `conflict_moves` how many commits to the table were known when it
    was found. `named_bytes`: of the manifests that were read for it. `held_bytes`: the memory that
    it took when it was deferred last. `lag_cause`: why it was, until an attempt includes it; of one
    that has joined its transaction, `HELD`.
    """

    key: InboxKey
    sealed: EncodedRequest
    durable_ms: int
    waiters: Waiters = NO_WAITERS
    is_inline: bool = False
    is_shared: bool = False
    stage: Stage = Stage.RECEIVED
    check: Check | None = None
    present_in: int | None = None
    is_authentic: bool = False
    is_proven: bool = False
    has_its_files: bool = False
    known_since: int | None = None
    suspicion: Refusal | None = None
    conflict: str | None = None
    conflict_moves: int | None = None
    deferral_count: int = 0
    named_bytes: int = 0
    held_bytes: int = 0
    lag_cause: LagCause = LagCause.WAITING

    @property
    def checked(self) -> CheckedRequest | None:
        """Its content as the last check found it; None if there was none, or it was refused."""
        result = self.check.result if self.check is not None else None
        return result if isinstance(result, CheckedRequest) else None

    @property
    def transaction(self) -> TransactionIdentity | None:
        transaction = self.sealed.request.transaction
        return None if transaction is None else transaction.identity

    @property
    def folder(self) -> str:
        """The folder of its producer."""
        return self.key.folder

    @property
    def ends_look(self) -> bool:
        """Whether those after it are for the table that it makes."""
        return self.sealed.request.operation == "alter"

    @property
    def is_large(self) -> bool:
        return len(self.sealed.content) + self.named_bytes > LARGE_BYTES_MIN

    @property
    def large_bytes(self) -> int:
        """The bytes of the content, if it is large; 0 of a small one."""
        size_bytes = len(self.sealed.content)
        return size_bytes if size_bytes > LARGE_BYTES_MIN else 0

    @property
    def inflated_bytes_max(self) -> int:
        """Inflated bytes that its check may keep before it waits for room. A usual request has
        fewer: its header is longer than its blocks.
        """
        size_bytes = len(self.sealed.content)
        return size_bytes + 4 * 1024 if size_bytes <= LARGE_BYTES_MIN else 256 * 1024

    @property
    def weight_bytes(self) -> int:
        """The memory of a small request, as measured: twice its bytes, some objects, its parsed
        line (by its commas), and the bytes that its check may keep.
        """
        content, body = self.sealed.content, self.sealed.body
        if len(content) > LARGE_BYTES_MIN:
            return 0
        parsed_bytes = _BYTES_A_VALUE * content.count(b",", 0, body)
        return _BYTES_A_REQUEST + 2 * len(content) + parsed_bytes + self.inflated_bytes_max


class Waiting(Collection[str]):
    """The requests of one table by key: those that the next round looks at (ready), in order; those
    that are deferred; those that are checked outside the rounds; those that have joined their
    transactions.

    `changed` is set whenever one becomes ready.
    """

    def __init__(self, world: World, named: NamedManifests) -> None:
        self._world = world
        self._named = named
        self._ready = ReadyRequests[Pending]()
        self._deferred: dict[str, tuple[float, Pending]] = {}
        self._aside: dict[str, Pending] = {}
        self._joined: dict[str, Pending] = {}
        self._by_transaction: dict[TransactionIdentity, dict[str, Pending]] = {}
        self._failing: dict[str, Pending] = {}
        self.changed = asyncio.Event()
        self.size_bytes = 0
        self.large_bytes = 0
        self.weight_bytes = 0

    # --- Looking ---

    def __len__(self) -> int:
        return len(self._ready) + len(self._deferred) + len(self._aside) + len(self._joined)

    def __contains__(self, key: object) -> bool:
        return (
            key in self._ready or key in self._deferred or key in self._aside or key in self._joined
        )

    def __iter__(self) -> Iterator[str]:
        yield from self._ready
        yield from self._deferred
        yield from self._aside
        yield from self._joined

    @property
    def has_ready(self) -> bool:
        return bool(self._ready)

    @property
    def has_large_ready(self) -> bool:
        return any(one.is_large for one in self._ready.values())

    def find(self, key: str) -> Pending | None:
        """Find a request that waits: ready, joined, deferred or set aside."""
        # Listings ask for each key of the inbox, most of which are not here.
        if key in self._ready:
            return self._ready[key]
        pending = self._aside.get(key) or self._joined.get(key)
        return pending or self._deferred.get(key, (0, None))[1]

    def all(self) -> Iterator[Pending]:
        """Yield every request that waits: ready, deferred, set aside or joined."""
        yield from self._ready.values()
        yield from (pending for _, pending in self._deferred.values())
        yield from self._aside.values()
        yield from self._joined.values()

    def ready(self, count_max: int) -> list[Pending]:
        """Return the ready ones that the next round looks at: `ReadyRequests.look`."""
        return self._ready.look(count_max, of_producer_max=PRODUCER_REQUESTS_MAX)

    def ready_of(self, folder: str) -> tuple[int, int]:
        """Return how many ready ones the producer of this folder has, and their weight in bytes."""
        return self._ready.of_producer(folder)

    def oldest_ms(self) -> DurableByCause:
        """Return since when the oldest request of each cause has been durable."""
        oldest: DurableByCause = {}
        for pending in self.all():
            durable_ms, cause = pending.durable_ms, pending.lag_cause
            if durable_ms < oldest.get(cause, durable_ms + 1):
                oldest[cause] = durable_ms
        return oldest

    @property
    def failing(self) -> Collection[Pending]:
        """Those that failed for a reason of their own at least once: deferred, or retried now."""
        return self._failing.values()

    # --- Arrival ---

    def add(self, pending: Pending, *, is_passed_on: bool = False) -> None:
        """Add a request. Another copy of one that waits shares its end. `is_passed_on`: another
        committer, which owns the table, may have ended the request in the meantime.
        """
        pending.is_shared = pending.is_shared or is_passed_on
        known = self.find(pending.key)
        if known is not None:
            known.durable_ms = min(known.durable_ms, pending.durable_ms)
            known.waiters = known.waiters.joined(pending.waiters)
            known.is_shared = known.is_shared or pending.is_shared
        else:
            self._ready[pending.key] = pending
            self._count(pending, 1)
            if (transaction := pending.transaction) is not None:
                self._by_transaction.setdefault(transaction, {})[pending.key] = pending
        self.changed.set()

    def _count(self, pending: Pending, times: int) -> None:
        self.weight_bytes += times * pending.weight_bytes
        self.size_bytes += times * len(pending.sealed.content)
        self.large_bytes += times * pending.large_bytes

    # --- Evidence ---

    def listed(self, key: str, durable_ms: int) -> bool:
        """Note that a listing shows the inbox object. False for a request that does not wait."""
        pending = self.find(key)
        if pending is not None:
            pending.durable_ms = min(pending.durable_ms, durable_ms)
        return pending is not None

    def present(self, pending: Pending, generation: int) -> None:
        """Note that the inbox object was seen after this load of the table."""
        pending.present_in = generation

    def authenticated(self, pending: Pending, *, is_proven: bool) -> None:
        """Note that the signature was checked, or need not be. `is_proven`: the origin
        of the request is known, by its signature or by this process's memory.
        """
        pending.is_authentic, pending.is_proven = True, is_proven

    def files_seen(self, pending: Pending) -> None:
        """Note that each file that the request adds was seen to exist."""
        pending.has_its_files = True

    def loaded(self, pending: Iterable[Pending], generation: int) -> None:
        """Note that a load of the table began after these requests had come."""
        for request in pending:
            if request.known_since is None:
                request.known_since = generation

    def share_all(self) -> None:
        """Mark all as shared: another committer may have ended any of them in the meantime, and the
        ledger may lack epochs that an operator has removed.
        """
        for pending in self.all():
            pending.is_shared = True

    def suspect(
        self,
        key: str,
        suspicion: Refusal | None,
        conflict: str | None = None,
        moves: int | None = None,
    ) -> None:
        """Note why an attempt with this request alone failed; None: nothing is held against it.
        `moves`: of a conflict, `CachedTable.moves` when it was found.
        """
        pending = self._at_hand(key)
        pending.suspicion, pending.conflict = suspicion, conflict
        pending.conflict_moves = moves

    def record_failed(self, pending: Pending, refusal: Refusal) -> None:
        """Keep a verdict whose quarantine record could not be written. The record may exist, or a
        late write may still create it, so the verdict stays even if its cause is gone.
        """
        pending.suspicion = refusal
        pending.is_shared = True

    # --- Stages ---

    def _move(self, pending: Pending, stage: Stage) -> None:
        if stage is not pending.stage and stage not in TRANSITIONS[pending.stage]:
            raise InvariantError(f"`{pending.key}` is {pending.stage.value}: not {stage.value} now")
        pending.stage = stage
        pending.lag_cause = _LAG_CAUSES.get(stage, pending.lag_cause)

    def set_aside(self, pending: Pending) -> None:
        """Set a ready request aside: it is checked beside the rounds, until `checked`."""
        self._move(pending, Stage.CHECKING)
        self._aside[pending.key] = self._ready.pop(pending.key)

    def checked(self, pending: Pending, check: Check | None) -> None:
        """Keep the result of a check; None: it is to be checked anew."""
        if check is not None and check is pending.check:
            return
        pending.check = check
        if pending.stage is Stage.CHECKING:
            self._ready[pending.key] = self._aside.pop(pending.key)
            self.changed.set()
        self._move(pending, _known_stage(pending))

    def launch(self, keys: Iterable[str]) -> None:
        """Mark these as the batch in flight."""
        for key in keys:
            self._move(self._at_hand(key), Stage.IN_FLIGHT)

    def withdraw(self, keys: Iterable[str]) -> None:
        """Mark these as in flight no more, if they still wait: their batch was dropped."""
        for key in keys:
            pending = self._ready.get(key) or self._joined.get(key)
            if pending is not None and pending.stage is Stage.IN_FLIGHT:
                self._move(pending, Stage.JOINED if key in self._joined else Stage.CHECKED)

    def _at_hand(self, key: str) -> Pending:
        """Return a request that a round or a transaction may act on."""
        return self._joined[key] if key in self._joined else self._ready[key]

    def _take(self, key: str) -> Pending:
        return self._joined.pop(key) if key in self._joined else self._ready.pop(key)

    def end(self, key: str, stage: Stage) -> Pending:
        """Remove a ready or joined request that has its verdict."""
        pending = self._at_hand(key)
        self._move(pending, stage)
        self._remove(key)
        return pending

    def _remove(self, key: str) -> Pending:
        pending = self._take(key)
        self._failing.pop(key, None)
        self._count(pending, -1)
        self.drop_named(pending)
        if (transaction := pending.transaction) is not None:
            requests = self._by_transaction[transaction]
            del requests[key]
            if not requests:
                del self._by_transaction[transaction]
        return pending

    def reread(self, key: str, sealed: EncodedRequest) -> None:
        """Replace a ready request by the content of its inbox object, because the doorbell's copy
        differs. It is admitted anew, for the same waiters.
        """
        told = self._remove(key)
        self.add(Pending(told.key, sealed, told.durable_ms, told.waiters))

    def evict(self, is_evicted: Callable[[Pending], bool]) -> Iterator[Pending]:
        """Return ready and joined requests to the inbox, but for those in flight."""
        for key, pending in [*self._ready.items(), *self._joined.items()]:
            if pending.stage is not Stage.IN_FLIGHT and is_evicted(pending):
                yield self.end(key, Stage.RETURNED)

    def give_up(self, pending: Pending) -> Pending:
        """Return a deferred request to the inbox."""
        self._make_ready(pending.key)
        return self.end(pending.key, Stage.RETURNED)

    def defer(self, pending: Pending, error: Exception) -> None:
        """Retry a ready request later that fails for a reason of its own: its manifest cannot be
        read, its quarantine record not written. It does not block the others.
        """
        if pending.deferral_count == 0:
            log.warning("request.deferred", key=pending.key, error=reason_of(error))
        is_passing = isinstance(error, TransientError)
        delay_s = retry_s(pending.deferral_count + 2, self._world.jitter())
        delay_s = delay_s if is_passing else FAULT_PAUSE_S
        pending.deferral_count += 1
        is_gap = isinstance(error, EpochGapError)
        pending.lag_cause = LagCause.HELD if is_gap else LagCause.UNAVAILABLE
        pending.held_bytes = _held_bytes(pending)
        self._failing[pending.key] = pending
        self._move(pending, Stage.DEFERRED)
        until_s = self._world.monotonic_s() + delay_s
        self._deferred[pending.key] = (until_s, self._take(pending.key))

    def wake(self, folders: Collection[str]) -> None:
        """Make the deferred requests in these producers' folders ready: what they wait for may have
        landed.
        """
        for key, (_, pending) in list(self._deferred.items()) if folders else ():
            if pending.key.folder in folders:
                self._make_ready(key)
                self.changed.set()

    def recall(self) -> float | None:
        """Make those ready whose time has come, behind the others;
        return how long until the next one.
        """
        now_s = self._world.monotonic_s()
        for key, (until_s, _) in list(self._deferred.items()):
            if until_s <= now_s:
                self._make_ready(key)
        return min((until_s - now_s for until_s, _ in self._deferred.values()), default=None)

    def _make_ready(self, key: str) -> None:
        _, pending = self._deferred.pop(key)
        self._move(pending, _known_stage(pending))
        self._ready[key] = pending

    # --- Transactions ---

    def join(self, key: str) -> None:
        """Take a checked request out of the queue until its transaction lands, or until
        `leave_transaction`.
        """
        pending = self._ready[key]
        self._move(pending, Stage.JOINED)
        self._joined[key] = self._ready.pop(key)

    def leave_transaction(self, keys: Iterable[str]) -> None:
        """Put joined requests before all others in the queue: the next round looks at them."""
        pending = [self._joined.pop(key) for key in keys if key in self._joined]
        for request in pending:
            self._move(request, Stage.CHECKED)
            request.lag_cause = LagCause.WAITING
        if pending:
            self._ready.put_first({request.key: request for request in pending})
            self.changed.set()

    def of_transaction(self, transaction: TransactionIdentity) -> Collection[Pending]:
        """Return the requests of a transaction, whatever their stage, in their order."""
        return self._by_transaction.get(transaction, {}).values()

    @property
    def joined(self) -> Collection[Pending]:
        """The requests that have joined their transactions."""
        return self._joined.values()

    # --- Manifests that a request names ---

    async def make_room(self, pending: Pending, size_bytes: int) -> None:
        """Wait for room for its manifests, all at once:
        two checks that each hold a part and wait for more would deadlock.
        """
        self.drop_named(pending)
        await self._named.wait_for_room(size_bytes)
        pending.named_bytes = size_bytes

    def drop_named(self, pending: Pending) -> None:
        """Drop the manifests that a request names: they are read anew if they are needed again."""
        self._named.give_back(pending.named_bytes)
        pending.named_bytes = 0


def _held_bytes(pending: Pending) -> int:
    """Return the memory of a request, by its share of the room: large ones have a third of it."""
    return pending.weight_bytes + 3 * (pending.large_bytes + pending.named_bytes)


def _known_stage(pending: Pending) -> Stage:
    return Stage.RECEIVED if pending.checked is None else Stage.CHECKED
