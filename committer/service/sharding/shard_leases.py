"""Acquires and releases this committer's share of the shards.

A loop renews the membership three times in a lease, in one exchange whatever the number of shards,
and at once when another member joins, leaves or releases a shard. A shard that another should own
is handed over: its tables finish the attempt in hand, then the lease is released, and the other
takes it and what waits in it. All of that is an optimization: no proof, no verdict and no deletion
rests on a lease. While the server is unavailable each committer keeps its shards.

A committer whose storage, inbox or catalog is silent (`place_watch`) says so in its renewals. If
the silence lasts and another member can work, it releases all shards at once, whatever hangs in
them, and gets its share back as a newcomer does. Where all are silent, each keeps its shards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from committer.errors import AccessError, FrazilError, QueueKeyTakenError, QueueUnavailableError
from committer.plan.scheduling.backoff import retry_s
from committer.plan.scheduling.shards import next_step, ranked
from committer.ports.installation import Installation
from committer.ports.leases import Assignment, Leases, Member, Renewal
from committer.ports.queue import ALL_SHARDS
from committer.ports.world import World
from committer.service.tasks.interruptible import Interruptible
from committer.service.telemetry.health import Health
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics
from committer.service.telemetry.place_watch import PlaceWatch
from committer.storage.inbox.inbox_identity import NAME

RENEWALS_A_LEASE = 3
FOREIGN = "foreign committer"

T = TypeVar("T")


HandOver = Callable[[frozenset[int]], Awaitable[None]]
"""Ends the work on shards before another committer gets them. Returns when nothing of them is under
way any more."""


@dataclass(eq=False, kw_only=True)
class ShardLeases:
    """The shards of this committer. `leases` None: nothing is shared, and all shards are its own.

    `member`: the name of this committer among the others; `installation`: what it serves.
    `failure`: why the last exchange failed. `seen`: the assignment as the server told it last.
    `status_url`: where operators reach this committer's `/status`.
    """

    leases: Leases | None
    member: str
    installation: Installation
    world: World
    health: Health
    metrics: Metrics
    lease_s: float
    places: PlaceWatch
    status_url: str | None = None

    def __post_init__(self) -> None:
        self._waiting = Interruptible()
        self.places.on_change(self._waiting.interrupt)
        self._reading = Interruptible()
        self._lost: set[int] = set()
        self.seen: Assignment | None = None
        self._claim: frozenset[int] = frozenset()
        # Shards whose tables finish their attempts, and those that may be released after that.
        self._busy: set[int] = set()
        self._drained: set[int] = set()
        # Shards that were released although their tables hang.
        self._hung: set[int] = set()
        # As the last renewal said it, and the other members that are cut off by its answer.
        self._is_cut_off = False
        self._others_cut_off: frozenset[str] = frozenset()
        self._before: frozenset[int] = frozenset()
        self._settling_until_s = float("-inf")
        self._failures = 0
        self._is_leaving = False
        self._has_said_so = False
        self.failure: FrazilError | None = None
        self.owned: frozenset[int] = frozenset(ALL_SHARDS if self.leases is None else ())

    @property
    def is_shared(self) -> bool:
        """Whether shards are shared with other committers."""
        return self.leases is not None

    @property
    def is_refused(self) -> bool:
        """Whether the members of the queue serve another installation: this one works on nothing,
        also while the queue is away.
        """
        return self.seen is not None and self.seen.standing == "foreign"

    @property
    def _cannot_work(self) -> bool:
        """Whether another member should have the shards: a place is silent, or tables of shards
        that were given up for that have not ended.
        """
        return self.places.is_cut_off or bool(self._hung)

    async def while_unchanged(self, call: Awaitable[T]) -> T | None:
        """Return the answer of a call; None if `owned` changed first, which cancels the call.
        One call at a time.
        """
        return await self._reading.wait(call)

    def take_lost(self) -> frozenset[int]:
        """Return the shards that were lost since the last look, also those that are back again."""
        lost, self._lost = frozenset(self._lost), set()
        return lost

    def patience_s(self, shard: int) -> float:
        """Return how old a request of this shard should be, in seconds, before this committer takes
        it from the inbox while the server is away: the owner does not wait, the others do in the
        order in which they would inherit the shard, a lease each.
        """
        seen = self.seen
        if shard in self.owned or seen is None:
            return 0.0
        names = [member.name for member in seen.members if member.name != self.member]
        successors = ranked([*names, self.member], shard)
        if (lease := seen.leases.get(shard)) is not None and lease.member in names:
            successors.remove(lease.member)
            successors.insert(0, lease.member)
        return successors.index(self.member) * self.lease_s

    # --- The loop ---

    async def run(self, hand_over: HandOver) -> None:
        """Share until everything has been handed over after `leave`."""
        if self.leases is None:
            return
        async with asyncio.TaskGroup() as tasks:
            while await self._turn(self.leases, hand_over, tasks):
                pass

    def leave(self) -> None:
        """Start to hand over all shards, for good."""
        self._is_leaving = True
        self._waiting.interrupt()

    async def abandon(self) -> None:
        """Release at once the shards that were not handed over in time, if the server answers."""
        if self.leases is None:
            return
        try:
            await self.leases.leave()
        except (QueueUnavailableError, AccessError) as error:
            log.info("shards.release_failed", error=str(error))

    async def _turn(self, leases: Leases, hand_over: HandOver, tasks: asyncio.TaskGroup) -> bool:
        """Do one exchange and wait for the next. False once this committer has left."""
        try:
            seen = await self._renew(leases, hand_over, tasks)
            if self._is_leaving and not (self.owned or self._busy or self._drained):
                await leases.leave()
                return False
            is_news = self._is_leaving and not self._has_said_so
            is_news |= self._is_cut_off != self._cannot_work
            if not (self._claim or self._drained or is_news):
                await self._waiting.wait(self._wait(leases, seen))
        except (QueueUnavailableError, AccessError) as error:
            if self._is_leaving:
                log.info("shards.release_failed", error=str(error))
                return False
            await self._failed(error)
        return True

    async def _renew(
        self, leases: Leases, hand_over: HandOver, tasks: asyncio.TaskGroup
    ) -> Assignment:
        released = frozenset(self._drained)
        renewal = Renewal(
            self.lease_s,
            is_new=self.seen is None,
            is_leaving=self._is_leaving,
            is_cut_off=self._cannot_work,
            claim=frozenset() if self._is_leaving else self._claim,
            release=released,
            status_url=self.status_url,
        )
        seen = await leases.renew(renewal)
        self._drained -= released
        self._has_said_so, self._is_cut_off = renewal.is_leaving, renewal.is_cut_off
        self._doubt_with_others(seen)
        self._recovered(seen)
        if seen.standing == "new" and self.seen and self.seen.standing in ("renewed", "new"):
            # The server or this committer was away: other members may not have rejoined yet.
            self._before = self.owned
            self._settling_until_s = self.world.monotonic_s() + self.lease_s
        is_settling = self.world.monotonic_s() < self._settling_until_s
        step = next_step(
            seen,
            self.member,
            busy=frozenset(self._busy | self._drained),
            only=self._before if is_settling else None,
            must_give_up=self.places.must_give_up,
        )
        self.seen, self._claim = seen, step.claim
        # A shard that the server has lost, and no other committer has taken, stays ours until the
        # next exchange.
        owned = (step.owned - step.give_up) | (self.owned & step.claim)
        lost = self.owned - owned - step.give_up
        ending = [(frozenset({shard}), True) for shard in step.give_up]
        if step.give_up and self._is_cut_off:
            # Its tables may hang for long, and nothing rests on a lease: another one begins now.
            ending = [(step.give_up, False)]
            self._drained |= step.give_up
            self._hung |= step.give_up
            self.places.gave_up()
            log.warning(
                "shards.given_up", shards=len(step.give_up), silent=sorted(self.places.silent)
            )
        for shards, is_ours in (*ending, (lost, False)) if lost else ending:
            self._busy |= shards
            tasks.create_task(self._hand_over(shards, hand_over, is_ours=is_ours), name="hand-over")
        self._show(owned, released=len(released), lost=len(lost))
        return seen

    def _doubt_with_others(self, seen: Assignment) -> None:
        """Ask the own places, too, once another member has lost one, or reaches it again: both may
        be so for all.
        """
        cut_off = frozenset(
            one.name for one in seen.members if one.is_cut_off and one.name != self.member
        )
        if cut_off != self._others_cut_off:
            self.places.doubt_all()
        self._others_cut_off = cut_off

    async def _hand_over(
        self, shards: frozenset[int], hand_over: HandOver, *, is_ours: bool
    ) -> None:
        await hand_over(shards)
        self._busy -= shards
        self._hung -= shards
        if is_ours:
            self._drained |= shards
        self._waiting.interrupt()

    def _show(self, owned: frozenset[int], *, released: int, lost: int) -> None:
        acquired = len(owned - self.owned)
        self.metrics.show_shards(len(owned), len(self.seen.members) if self.seen else None)
        self.metrics.shards_moved(acquired=acquired, released=released, lost=lost)
        if acquired or released or lost:
            log.info(
                "shards.moved", acquired=acquired, released=released, lost=lost, owned=len(owned)
            )
        if owned != self.owned:
            self._lost |= self.owned - owned
            self.owned = owned
            self._reading.interrupt()

    # --- Waiting ---

    async def _wait(self, leases: Leases, seen: Assignment) -> None:
        """Wait for news of the others; while tables of ours finish, for them."""
        wait_s = self._wait_s(seen)
        if self._busy:
            await self.world.sleep(wait_s)
        else:
            await leases.wait_for_change(seen.version, wait_s=wait_s)

    def _wait_s(self, seen: Assignment) -> float:
        """Return the time until the next renewal is due, another member counts as gone, all
        returning members have come, or this one has been cut off or able for long enough.
        """
        others = [one.left_s for one in seen.members if one.name != self.member]
        settling_s = self._settling_until_s - self.world.monotonic_s()
        due_s = self.places.change_due_s
        changes = [] if due_s is None else [due_s]
        soonest_s = min([self.lease_s / RENEWALS_A_LEASE, *others, *changes])
        return max(0.01, min(soonest_s, settling_s) if settling_s > 0 else soonest_s)

    def _recovered(self, seen: Assignment) -> None:
        self._failures = 0
        self.failure = None
        if seen.standing == "displaced":
            why = (
                f"another committer has taken the name `{self.member}` (queue.consumer): this one"
                " has no shards until that one ends; give each a name of its own"
            )
            if self.health.degraded("leases", why):
                log.warning("shards.displaced", member=self.member)
        elif self.health.healthy("leases"):
            log.warning("leases.recovered")
        self._show_foreign(seen)

    def _show_foreign(self, seen: Assignment) -> None:
        """Show as a condition that this committer is refused, or refuses others, and name them."""
        is_refused = seen.standing == "foreign"
        others = seen.members if is_refused else seen.refused
        if not others:
            if self.health.healthy(FOREIGN):
                log.warning("shards.foreign_recovered")
            return
        if self.health.degraded(FOREIGN, self._foreign_text(others, is_refused=is_refused)):
            log.warning(
                "shards.foreign",
                is_refused=is_refused,
                members=[one.name for one in others],
                installations=[str(one.installation) for one in others],
            )

    def _foreign_text(self, others: Sequence[Member], *, is_refused: bool) -> str:
        named = ", ".join(f"`{one.name}` ({one.installation})" for one in others)
        own = f"`{self.member}` ({self.installation})"
        refused, admitted = (own, named) if is_refused else (named, own)
        return (
            f"{refused} is refused, and gets no shard: {admitted} has the same keys in the queue."
            " If they belong together, give them one `inbox` and one `catalog.name`. If one inbox"
            " is a copy of the other, stop the committers of the copy and delete its object"
            f" `{NAME}`: their next start makes an identity, and keys, of its own"
        )

    async def _failed(self, error: FrazilError) -> None:
        """Back off. The consumer reports that the server is unavailable, not this loop."""
        self.failure = error
        self._failures += 1
        if isinstance(error, AccessError | QueueKeyTakenError):
            self.health.unavailable("leases", error, mitigation="keeping the shards")
        delay_s = retry_s(self._failures, self.world.jitter())
        await self._waiting.wait(self.world.sleep(delay_s))
