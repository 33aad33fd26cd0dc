"""Takes the doorbells that the queue delivers: by the copies of requests that they carry, where
these may be believed, else by the inbox objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from committer.ports.queue import Delivery, Doorbell
from committer.ports.world import World
from committer.request.request_format import EncodedRequest, line_digest, read_request
from committer.service.ingest.intake import Intake
from committer.service.requests.deferred_doorbells import DeferredDoorbells, Waiters
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.large_requests import LARGE_BYTES_MIN, Arrival
from committer.service.settle.outcome import Outcome
from committer.service.settle.recently_quarantined import RecentlyQuarantined
from committer.service.settle.settler import Settler
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics

# An older request may have ended, and its doorbell may ring again: after lost acknowledgements, or
# when a queue was restored. A producer's clock may be wrong by as much before its requests cost a
# read each.
TRUSTED_MS = 60_000


@dataclass(eq=False, kw_only=True)
class Doorbells:
    """Turns doorbells into requests for the intake."""

    intake: Intake
    deferred: DeferredDoorbells
    recently_quarantined: RecentlyQuarantined
    settler: Settler
    world: World
    metrics: Metrics

    def __post_init__(self) -> None:
        self._trusted_ms = 0

    def trust_from_now(self) -> None:
        """Trust only doorbells of requests published from now on. The queue's server is back,
        perhaps another or a restored one, or this committer has acquired shards: another committer
        may have finished earlier requests.
        """
        self._trusted_ms = self.world.now_ms()

    async def take(self, deliveries: Sequence[Delivery]) -> None:
        """Take doorbells. One that fails for a passing reason stays unacknowledged."""
        keys = [InboxKey(delivery.doorbell.inbox_key) for delivery in deliveries]
        pairs = zip(keys, deliveries, strict=True)
        rest = [pair for pair in pairs if not self._take_inline(*pair)]
        if rest:
            await asyncio.gather(*(self._take_key(*pair) for pair in rest))

    def _take_inline(self, key: InboxKey, delivery: Delivery) -> bool:
        """Take a request as its doorbell carries it. False where the inbox has to be read.

        A redelivered doorbell may belong to a request that has ended since (quarantined and
        discarded, say): only the inbox object shows that the request is still wanted. The same
        holds for an old doorbell and for one from before an outage of the server: a restored queue
        has forgotten its deliveries. A client may also ring twice. The inbox is asked for many such
        requests at once, when they are about to land.
        """
        if delivery.deliveries != 1 or key in self.deferred or self.intake.has_to_wait(key):
            return False
        sealed = _read_inline(delivery.doorbell)
        if sealed is None:
            return False
        now_ms = self.world.now_ms()
        published_ms = sealed.request.published_at_ms
        is_old = published_ms < self._trusted_ms or abs(now_ms - published_ms) > TRUSTED_MS
        is_shared = is_old or key in self.recently_quarantined
        arrival = Arrival(key, Waiters.of(delivery), now_ms, is_shared=is_shared)
        self.intake.submit(arrival, sealed, is_inline=True)
        return True

    async def _take_key(self, key: InboxKey, delivery: Delivery) -> None:
        waiters = Waiters.of(delivery)
        is_shared = delivery.deliveries > 1
        if is_shared:
            self.metrics.redelivered(1)
        if key.parts is None:
            log.warning("doorbell.unreadable", key=key[:200])
            self.settler.settle([Outcome(None, waiters)])
            return
        await self.intake.take(Arrival(key, waiters, self.world.now_ms(), is_shared=is_shared))


def _read_inline(bell: Doorbell) -> EncodedRequest | None:
    """Return the request as the doorbell carries it, if it arrived whole. A doorbell is not the
    truth: if its copy cannot be read, the inbox object decides.
    """
    content = bell.content
    if content is None or len(content) > LARGE_BYTES_MIN or line_digest(content) != bell.digest:
        return None
    try:
        return read_request(content, key=bell.inbox_key)
    except Exception:  # noqa: BLE001  # whatever is wrong with it, the object decides
        return None
