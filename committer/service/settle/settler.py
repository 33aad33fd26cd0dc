"""Carries out the steps after a verdict, off the critical path: receipts, acknowledgments, inbox
clean-up.

Losing any of it costs work, never truth: a doorbell that was not acknowledged comes again, an inbox
object that was not deleted is found by the reconciler, and the ledger answers both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from committer.errors import FrazilError, TransientError
from committer.group_commit import finish_all
from committer.plan.scheduling.backoff import backoff_s, retry_s
from committer.ports.queue import Queue
from committer.ports.world import World
from committer.service.requests.settled_requests import SettledByTable
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.service.settle.object_conditions import ObjectConditions
from committer.service.settle.outcome import Outcome
from committer.service.settle.pending_deletes import PendingDeletes, Proof
from committer.service.telemetry.health import Health
from committer.service.telemetry.log import log
from committer.storage.inbox.audit_log import AuditLog
from committer.storage.inbox.ended_requests import EndedRequests

# Outcomes that wait are held in memory; above this, redelivery and the reconciler handle the
# oldest.
WAITING_MAX = 100_000
# A call deletes a thousand objects as well as one.
GATHER_S = 0.1
HIGH_WATER_MARKS_AT_ONCE = 32
# A mark that cannot be read waits for an operator, and delays no other table.
UNREADABLE_RETRY_S = 15.0
# The pause before an object is deleted again that could not be, doubled with each try.
RETRY_FIRST_S = 1.0
RETRY_S_MAX = 60.0


@dataclass(eq=False, kw_only=True)
class Settler:
    """Collects ended requests of all tables and settles them in groups."""

    requests: EndedRequests
    audit: AuditLog
    queue: Queue | None
    world: World
    health: Health
    high_water_marks: HighWaterMarkStore
    settled: SettledByTable

    def __post_init__(self) -> None:
        self._to_answer: list[Outcome] = []
        self.pending_deletes = PendingDeletes()
        self._undeleted = ObjectConditions(self.health, "undeleted inbox object")
        self._unkept = ObjectConditions(self.health, "high-water mark of table")
        self._deleting = asyncio.Lock()
        self._high_water_marks_at_once = asyncio.Semaphore(HIGH_WATER_MARKS_AT_ONCE)
        self._has_ended = asyncio.Event()
        self._has_keys = asyncio.Event()
        self._has_retries = asyncio.Event()

    def settle(self, ended: Sequence[Outcome]) -> None:
        """Take over requests that have their verdict (and, quarantined, their durable record)."""
        self._to_answer.extend(ended)
        self.pending_deletes.add(ended)
        undeleted = self.pending_deletes.shorten(WAITING_MAX)
        for key in undeleted:
            self._undeleted.cleared(key)
        dropped = max(len(self._to_answer) - WAITING_MAX, 0) + len(undeleted)
        if dropped > 0:
            log.warning("settler.overflowed", dropped=dropped)
            del self._to_answer[:-WAITING_MAX]
        if self._to_answer:
            self._has_ended.set()
        if self.pending_deletes:
            self._has_keys.set()

    async def run(self) -> None:
        """Settle until canceled. Answers do not wait for deletions."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_on(self._has_ended, self._answer))
            tasks.create_task(self._keep_on(self._has_keys, self._delete, gather_s=GATHER_S))
            tasks.create_task(self._retry_deletions())

    async def _keep_on(
        self, wake: asyncio.Event, work: Callable[[], Awaitable[bool]], *, gather_s: float = 0.0
    ) -> None:
        failures = 0
        while True:
            await wake.wait()
            if gather_s:
                await self.world.sleep(gather_s)
            wake.clear()
            if await work():
                failures = 0
                continue
            failures += 1
            await self.world.sleep(backoff_s(failures + 3, self.world.jitter()))
            wake.set()

    async def flush(self) -> bool:
        """Settle everything that waits now. False if some of it failed and waits again."""
        answered, deleted = await asyncio.gather(self._answer(), self._delete())
        return answered and deleted

    async def _answer(self) -> bool:
        ended, self._to_answer = self._to_answer, []
        if self.queue is None or not ended:
            return True
        replies = [
            (reply_to, one.receipt)
            for one in ended
            if one.receipt
            for reply_to in one.waiters.reply_to
        ]
        tokens = [token for one in ended for token in one.waiters.tokens]
        try:
            # At once, so that they share a round trip.
            calls: list[Coroutine[object, object, None]] = []
            if replies:
                calls.append(self.queue.reply(replies))
            if tokens:
                calls.append(self.queue.acknowledge(tokens))
            await finish_all(calls)
        except FrazilError as error:
            self._to_answer = ended + self._to_answer
            # The loop does not know of them where a flush had taken them.
            self._has_ended.set()
            if self.health.degraded("queue answers", str(error)):
                log.warning("queue.answers_fail", error=str(error))
            return False
        if self.health.healthy("queue answers"):
            log.warning("queue.answers_recovered")
        return True

    async def _delete(self) -> bool:
        """Delete ended requests from the inbox, those that landed after the high-water mark and
        their audit entries are durable. Those that cannot be deleted are queued for
        `_retry_deletions`. False if none can.
        """
        async with self._deleting:
            return await self._delete_due(are_retried=False)

    async def _retry_deletions(self) -> None:
        """Delete again, for ever, what could not be deleted, apart from all other deletions: a
        store may take long to refuse one.
        """
        while True:
            due_s = self.pending_deletes.retry_s()
            if due_s is None:
                self._has_retries.clear()
                await self._has_retries.wait()
                continue
            self._has_retries.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due_s - self.world.monotonic_s())):
                    # Another one may be due before.
                    await self._has_retries.wait()
                    continue
            if not await self._delete_due(are_retried=True):
                await self.world.sleep(RETRY_FIRST_S)

    async def _delete_due(self, *, are_retried: bool) -> bool:
        proofs = self.pending_deletes.take(self.world.monotonic_s(), are_retried=are_retried)
        answers = await asyncio.gather(*(self._high_water_mark(proof) for proof in proofs))
        pairs = list(zip(proofs, answers, strict=True))
        for proof, answer in pairs:
            if answer is None:
                self.pending_deletes.requeue(proof)
            elif not answer:
                self._void(proof)
        proven = [proof for proof, answer in pairs if answer]
        await self._append_audit(proven)
        return await self._delete_now(proven)

    async def _append_audit(self, proofs: Sequence[Proof]) -> None:
        """Make the entries of these proofs durable, as one object; no call without an entry. If it
        cannot be written, take the keys with an entry out of the proofs, and queue them again: all
        others are deleted.
        """
        entries = [entry for proof in proofs for entry in proof.audit]
        if not entries:
            return
        try:
            await self.audit.append(entries, object_id=self.world.uuid())
        except FrazilError as error:
            self.health.unavailable("audit", error, mitigation="keeping the requests in the inbox")
            for proof in proofs:
                self._retry_audit(proof)
            return
        for proof in proofs:
            proof.audit = []
        self.health.recovered("audit")

    def _retry_audit(self, proof: Proof) -> None:
        audited = {entry.key for entry in proof.audit}
        if not audited:
            return
        keys = [key for key in proof.keys if key in audited]
        retried = Proof(proof.seen, keys, self._retry_s(proof), proof.tries + 1, proof.audit)
        proof.keys, proof.audit = [key for key in proof.keys if key not in audited], []
        self.pending_deletes.requeue(retried)
        self._has_retries.set()

    def _retry_s(self, proof: Proof) -> float:
        """Return when keys are tried again, by the event loop's clock."""
        pause_s = min(RETRY_S_MAX, RETRY_FIRST_S * 2.0 ** min(proof.tries, 16))
        return self.world.monotonic_s() + pause_s

    async def _high_water_mark(self, proof: Proof) -> bool | None:
        """Make durable what proves that the keys may go. False: it proves nothing.
        None: a fault, of this table alone; its keys wait for a while.
        """
        if proof.seen is None:
            return True
        table_uuid = str(proof.seen.table_uuid)
        try:
            async with self._high_water_marks_at_once:
                is_kept = await self.high_water_marks.keep(proof.seen)
        except FrazilError as error:
            tries = self._unkept.failed(table_uuid, error).tries
            if tries == 1:
                log.warning("high_water_mark.unkept", table_uuid=table_uuid, error=str(error))
            pause_s = UNREADABLE_RETRY_S
            if isinstance(error, TransientError):
                pause_s = min(pause_s, retry_s(tries, self.world.jitter()))
            proof.due_s = self.world.monotonic_s() + pause_s
            asyncio.get_running_loop().call_later(pause_s, self._has_keys.set)
            return None
        self._unkept.cleared(table_uuid)
        return is_kept

    def _void(self, proof: Proof) -> None:
        """Drop a proof that an operator has voided: the table was accepted without these requests,
        or may land them again. The reconciler finds them, and the ledger knows.
        """
        table_uuid = str(proof.seen.table_uuid) if proof.seen else None
        log.info("high_water_mark.superseded", table_uuid=table_uuid, requests=len(proof.keys))
        self._forget(proof)

    async def _delete_now(self, proofs: Sequence[Proof]) -> bool:
        keys = [key for proof in proofs for key in proof.keys]
        landed = [key for proof in proofs if proof.seen is not None for key in proof.keys]
        if not keys:
            return True
        try:
            failures = await self.requests.delete(keys, landed)
        except FrazilError as error:
            for proof in proofs:
                self.pending_deletes.requeue(proof)
            if self.health.degraded("inbox deletions", str(error)):
                log.warning("inbox.deletions_fail", error=str(error))
            return False
        if self.health.healthy("inbox deletions"):
            log.warning("inbox.deletions_recovered")
        for proof in proofs:
            self._retry_later(proof, failures)
            if proof.seen is not None:
                self.settled.deleted(proof.keys)
            self._forget(proof)
        return True

    def _retry_later(self, proof: Proof, failures: Mapping[str, FrazilError]) -> None:
        """Take the keys that could not be deleted out of a proof, and queue them by themselves."""
        remaining = [key for key in proof.keys if key in failures]
        if not remaining:
            return
        for key in remaining:
            if self._undeleted.failed(key, failures[key]).tries == 1:
                log.warning("inbox.object_undeleted", key=key, error=str(failures[key]))
        proof.keys = [key for key in proof.keys if key not in failures]
        due_s = self._retry_s(proof)
        self.pending_deletes.requeue(Proof(proof.seen, remaining, due_s, proof.tries + 1))
        self._has_retries.set()

    def _forget(self, proof: Proof) -> None:
        for key in proof.keys:
            if self._undeleted.cleared(key):
                log.info("inbox.object_deleted", key=key)
        self.pending_deletes.forget(proof)
