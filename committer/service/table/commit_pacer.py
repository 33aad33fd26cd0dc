"""Times the next commit of a table: interval, gathering, and gaps for other engines."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from committer.errors import NoSuchTableError
from committer.plan.batch.batch_policy import (
    METADATA_BYTES_MAX,
    BatchPolicy,
    interval_ms,
    stretched_ms,
    wait_ms,
)
from committer.plan.commit.landed_commit import LandedCommit
from committer.plan.ledger.quiet_gap import (
    GapHistory,
    GapPolicy,
    gap_ms,
    is_foreign_change,
    last_foreign_snapshot_ms,
)
from committer.plan.ledger.state import TableState
from committer.plan.scheduling.backoff import backoff_s, shortened_s
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from committer.service.tasks.interruptible import Interruptible
from committer.service.telemetry.log import log

# In a gap for other engines: how often to look whether one has got through.
GAP_POLL_S = 0.5
# The same, while one committer waits for another one that surely commits soon.
YIELD_POLL_S = 0.1


class CommitPacer:
    """The pace of one table. Every wait ends early once it is stopped."""

    def __init__(
        self,
        identifier: TableIdentifier,
        catalog: Catalog,
        world: World,
        policy: BatchPolicy,
    ) -> None:
        self._identifier = identifier
        self._catalog = catalog
        self._world = world
        self._policy = policy
        self._stopping = asyncio.Event()
        self._last_start_ms: int | None = None
        self._last_had_several = False
        self._metadata_bytes: int | None = None
        self._gaps = GapHistory()
        self._turn = Interruptible()
        self._is_hurried = False
        # False: the last wait was ended before its time.
        self.is_turn = True

    def stop(self) -> None:
        """End the current wait, and every later one."""
        self._stopping.set()

    def hurry(self) -> None:
        """End the wait for the next turn, this one or the next: other tables wait for this one."""
        self._is_hurried = True
        self._turn.interrupt()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def policy(self, state: TableState | None) -> BatchPolicy:
        """Return the service's policy, with the table's own interval and gaps."""
        properties = state.metadata.properties if state else {}
        own_interval_ms = interval_ms(properties, self._policy.min_interval_ms)
        return replace(
            self._policy,
            min_interval_ms=stretched_ms(own_interval_ms, self._metadata_bytes),
            gap=self._policy.gap.for_table(properties),
        )

    async def wait(self, state: TableState | None) -> bool:
        """Wait until the next commit may start. False if the table was seen to move meanwhile."""
        policy = self.policy(state)
        delay_ms = wait_ms(
            policy,
            last_start_ms=self._last_start_ms,
            now_ms=self._world.now_ms(),
            several=self._last_had_several,
        )
        self.is_turn = await self._is_turn_after(delay_ms / 1000)
        return not self.is_turn or state is None or await self._leave_gap(policy.gap, state)

    async def sleep(self, delay_s: float) -> None:
        """Wait, but not longer than until the stop."""
        if delay_s <= 0:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._stopping.wait()

    async def _is_turn_after(self, delay_s: float) -> bool:
        """Wait. False if the wait was ended, or not begun, because of `hurry`."""
        if delay_s > 0 and not self._is_hurried:
            await self._turn.wait(self.sleep(delay_s))
        is_hurried, self._is_hurried = self._is_hurried, False
        return delay_s <= 0 or not is_hurried

    async def pause(self, delay_s: float) -> None:
        """Wait about that long, after a failure."""
        await self.sleep(shortened_s(delay_s, self._world.jitter()))

    async def back_off(self, attempts: int) -> None:
        """Wait a little before the next attempt, more with every one."""
        await self.sleep(backoff_s(attempts - 1, self._world.jitter()))

    # --- What it learns from ---

    def started(self) -> tuple[int, float]:
        """Note that a commit begins, with its first attempt. Return the time by the wall clock, in
        milliseconds, and by the event loop's clock, in seconds.
        """
        self._last_start_ms = self._world.now_ms()
        return self._last_start_ms, self._world.monotonic_s()

    def swapped(self) -> None:
        """Note that an attempt has its answer."""
        self._gaps = self._gaps.swapped(self._world.now_ms())

    def landed(self, commit: LandedCommit) -> None:
        """Note how many requests landed, and the size of the metadata file."""
        self._last_had_several = len(commit.batch.requests) > 1
        self._weigh(commit.metadata_bytes)

    def saw(self, known: TableState | None, table: LoadedTable) -> None:
        """Note a loaded table, and whether a foreign commit came since it was known."""
        now_ms = self._world.now_ms()
        if known is None:
            seen_ms = last_foreign_snapshot_ms(table.metadata)
        elif table.metadata_location == known.table.metadata_location:
            return
        else:
            seen_ms = now_ms if is_foreign_change(known.metadata, table.metadata) else None
        if seen_ms is not None:
            self._gaps = self._gaps.saw_foreign(min(seen_ms, now_ms))

    # --- How ---

    async def wait_for_move(self, state: TableState, wait_s_max: float) -> bool:
        """Wait until the table has moved from this state. Return False if it has not in this time.
        Errors: those of `Catalog.current_location`.
        """
        until_s = self._world.monotonic_s() + wait_s_max
        while not self._stopping.is_set() and self._world.monotonic_s() < until_s:
            await self.sleep(YIELD_POLL_S)
            if await self._has_moved(state):
                return True
        return False

    async def _leave_gap(self, policy: GapPolicy, state: TableState) -> bool:
        """Leave a gap for other engines' commits; waiting requests are durable. The gap ends early
        once another engine has committed.
        """
        delay_ms = gap_ms(policy, self._gaps, now_ms=self._world.now_ms())
        if delay_ms is None:
            return True
        moved = False
        until_s = self._world.monotonic_s() + delay_ms / 1000
        while not moved and not self._stopping.is_set():
            left_s = until_s - self._world.monotonic_s()
            if left_s <= 0:
                break
            await self.sleep(min(left_s, GAP_POLL_S))
            moved = await self._has_moved(state)
        self._gaps = self._gaps.had_gap(self._world.now_ms())
        return not moved

    async def _has_moved(self, state: TableState) -> bool:
        try:
            location = await self._catalog.current_location(self._identifier)
        except NoSuchTableError:
            return True
        return location != state.table.metadata_location

    def _weigh(self, metadata_bytes: int | None) -> None:
        """Raise an alarm when the metadata file has become too large; the interval stretches."""
        before, self._metadata_bytes = self._metadata_bytes or 0, metadata_bytes
        size_bytes = metadata_bytes or 0
        if size_bytes > METADATA_BYTES_MAX >= before:
            log.warning("table.metadata_large", table=str(self._identifier), bytes=size_bytes)
        elif size_bytes <= METADATA_BYTES_MAX < before:
            log.info("table.metadata_fits", table=str(self._identifier), bytes=size_bytes)
