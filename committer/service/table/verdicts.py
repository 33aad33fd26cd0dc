"""Carries out verdicts that need no commit: duplicates, requests that left the inbox, quarantine.

Admission and the attempts decide them. If one request's record cannot be written, that request is
deferred and the others go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from committer.errors import FrazilError, InvalidRequestError, NotFoundError, TransientError
from committer.group_commit import finish_all, finish_in_turns
from committer.plan.commit.landed_commit import LandedCommit
from committer.ports.world import World
from committer.reason import Reason
from committer.request.request_format import read_request
from committer.service.requests.pending import Pending, Stage, Waiting
from committer.service.settle.endings import Endings
from committer.service.table.admission_outcome import (
    AdmissionOutcome,
    AlreadyLanded,
    QuarantineVerdict,
)
from committer.service.table.cached_table import CachedTable
from committer.service.telemetry.log import log
from committer.storage.inbox.inbox import Inbox, Quarantine

RECORDS_AT_ONCE = 32
RECORDS_A_ROUND = 256
RECORDS_BYTES_A_ROUND = 8 * 1024 * 1024


@dataclass(eq=False)
class Verdicts:
    """Ends the requests of one table."""

    waiting: Waiting
    endings: Endings
    inbox: Inbox
    quarantine: Quarantine
    cached_table: CachedTable
    world: World

    def landed(self, commit: LandedCommit) -> None:
        """End the requests that a commit has landed."""
        ended = [
            (
                self.waiting.end(one.sealed.key, Stage.LANDED),
                commit.plan.landed[one.request.inbox_key],
            )
            for one in commit.batch.requests
        ]
        self.endings.landed(ended, self.cached_table.known, commit)
        # Higher epochs of ordered producers that waited for these.
        self.waiting.wake(
            {pending.key.folder for pending, _ in ended if pending.sealed.request.producer.ordered}
        )

    async def conclude(self, outcome: AdmissionOutcome) -> None:
        """End the duplicates, the requests that left the inbox, and those that cannot land."""
        self._end_left_before(outcome.left_before)
        self._end_duplicates([one for one in outcome.duplicates if not one.is_unconfirmed])
        await finish_all(
            self._end_unconfirmed(one) for one in outcome.duplicates if one.is_unconfirmed
        )
        for pending, error in outcome.failed:
            self.waiting.defer(pending, error)
        await finish_all(
            self._finish_quarantining(pending) for pending in outcome.already_quarantined
        )
        await self.quarantine_all(outcome.refused)

    def _end_left_before(self, gone: Sequence[Pending]) -> None:
        self.endings.left_before([self.waiting.end(one.key, Stage.LEFT_BEFORE) for one in gone])

    def _end_duplicates(self, duplicates: Sequence[AlreadyLanded]) -> None:
        for one in duplicates:
            warning = {"warning": one.warning} if one.warning else {}
            log.info("request.duplicate", **_about(one.pending), **warning)
        ended = [
            (self.waiting.end(one.pending.key, Stage.DUPLICATE), one.landed) for one in duplicates
        ]
        self.endings.duplicates(ended, self.cached_table.known)

    async def _end_unconfirmed(self, one: AlreadyLanded) -> None:
        """End a duplicate that only a doorbell's copy shows, unless the inbox object is another
        request: that one is admitted, or quarantined if it cannot be read.
        """
        doubt = QuarantineVerdict(one.pending, Reason.EPOCH_CONTENT_DIFFERS, "")
        try:
            true = await self._as_in_inbox(doubt)
        except FrazilError as error:
            self.waiting.defer(one.pending, error)
            return
        if true is not None and true[0] is doubt:
            self._end_duplicates([one])
        elif true is not None:
            await self._quarantine_one(true[0])

    async def quarantine_all(self, refused: Sequence[QuarantineVerdict]) -> None:
        """Write the durable records, then end the requests. Of one producer, quarantine only as
        many as open its circuit breaker. The records of one round are bounded, so that other
        requests do not wait long; the next round quarantines the rest.
        """
        taken = _first(self._within_room(await self._look_back(refused)))
        await finish_in_turns(self._quarantine_one, taken, at_once_max=RECORDS_AT_ONCE)

    async def _look_back(self, refused: Sequence[QuarantineVerdict]) -> list[QuarantineVerdict]:
        """Look for earlier failures of the producers that fail here for the first time. Return the
        verdicts without those whose producer's records cannot be listed: these are deferred.
        """
        first = {
            one.pending.folder: one.pending
            for one in refused
            if self.endings.breakers.is_unknown(one.pending.sealed.request)
        }
        answers = await finish_in_turns(
            self._look_back_at, first.values(), at_once_max=RECORDS_AT_ONCE
        )
        failed = dict(answer for answer in answers if answer is not None)
        for one in refused:
            if (error := failed.get(one.pending.folder)) is not None:
                self.waiting.defer(one.pending, error)
        return [one for one in refused if one.pending.folder not in failed]

    async def _look_back_at(self, pending: Pending) -> tuple[str, FrazilError] | None:
        """Look for those of the producer of a request. Return its folder and why that failed."""
        request = pending.sealed.request
        table, producer = str(request.identifier), request.producer.id
        try:
            await self.endings.breakers.look_back(
                table, request.table_uuid, producer, self.quarantine
            )
        except FrazilError as error:
            return pending.folder, error
        return None

    def _within_room(self, refused: Sequence[QuarantineVerdict]) -> Iterator[QuarantineVerdict]:
        taken: Counter[str] = Counter()
        for one in refused:
            request = one.pending.sealed.request
            room = self.endings.breakers.room(request)
            if room is None or taken[request.producer.id] < room:
                taken[request.producer.id] += 1
                yield one

    async def _quarantine_one(self, verdict: QuarantineVerdict) -> None:
        try:
            true = await self._as_in_inbox(verdict)
            if true is None:
                return
            one, content = true
        except FrazilError as error:
            self.waiting.defer(verdict.pending, error)
            return
        record = one.record(self.world.now_ms())
        try:
            await self.quarantine.put(record, b"" if record.is_told_only else content)
        except FrazilError as error:
            self.waiting.record_failed(one.pending, (one.reason, one.message))
            self.waiting.defer(one.pending, error)
            return
        about = _about(one.pending)
        log.warning("request.quarantined", **about, reason=record.reason, message=record.message)
        pending = self.waiting.end(one.pending.key, Stage.QUARANTINED)
        self.endings.quarantined(pending, record)

    async def _finish_quarantining(self, pending: Pending) -> None:
        """Finish a quarantine that another process began: it stopped after the record and before
        the delete. Its verdict stands.
        """
        try:
            record = await self.quarantine.record(pending.key)
            if record.by_reference:
                # Not about this request: a foreign entry had its key before.
                await self.quarantine.delete((pending.key,))
        except FrazilError as error:
            self.waiting.defer(pending, error)
            return
        if record.by_reference:
            message = "what stood in its place before was no request"
            self.waiting.defer(pending, TransientError(message))
        else:
            log.info("inbox.quarantined_before", key=pending.key)
            ended = self.waiting.end(pending.key, Stage.QUARANTINED)
            self.endings.quarantined_before(ended, record)

    async def _as_in_inbox(self, one: QuarantineVerdict) -> tuple[QuarantineVerdict, bytes] | None:
        """Return the verdict on the inbox object, not on the doorbell's copy: write access to the
        queue alone must not remove a request from the inbox. None: it does not end by this.
        """
        key, announced = one.pending.key, one.pending.sealed.content
        if not one.pending.is_inline:
            return one, announced
        try:
            content = await self.inbox.get(key)
        except NotFoundError:
            self._end_left_before([one.pending])
            return None
        if content == announced:
            return one, announced
        log.warning("doorbell.content_mismatch", key=key)
        try:
            self.waiting.reread(key, read_request(content, key=key))
        except InvalidRequestError as error:
            return replace(one, reason=Reason(error.reason), message=str(error)), content
        return None


def _first(refused: Iterator[QuarantineVerdict]) -> Iterator[QuarantineVerdict]:
    size_bytes = 0
    for one in islice(refused, RECORDS_A_ROUND):
        yield one
        size_bytes += len(one.pending.sealed.content)
        if size_bytes >= RECORDS_BYTES_A_ROUND:
            return


def _about(pending: Pending) -> dict[str, object]:
    request = pending.sealed.request
    return {
        "table": str(request.identifier),
        "producer": request.producer.id,
        "epoch": request.epoch,
    }
