"""The outcomes of admission, one for each waiting request: values, without I/O."""

from __future__ import annotations

from dataclasses import dataclass, field

from committer.errors import FrazilError
from committer.ledger_entry import Landed
from committer.plan.batch.request_check import CheckedRequest
from committer.reason import Reason
from committer.service.requests.pending import Pending
from committer.storage.inbox.inbox import QuarantineRecord


@dataclass(frozen=True, slots=True)
class QuarantineVerdict:
    """A request that cannot land, with its reason; of a conflict, with its code."""

    pending: Pending
    reason: Reason
    message: str
    conflict: str | None = None

    def record(self, now_ms: int) -> QuarantineRecord:
        request = self.pending.sealed.request
        return QuarantineRecord(
            key=self.pending.key,
            reason=self.reason.value,
            message=self.message,
            quarantined_at_ms=now_ms,
            table=str(request.identifier),
            conflict=self.conflict,
            is_told_only=request.is_told_only(self.reason, self.conflict),
        )


@dataclass(frozen=True, slots=True)
class AlreadyLanded:
    """A request whose epoch has landed."""

    pending: Pending
    landed: Landed
    warning: str | None

    @property
    def is_unconfirmed(self) -> bool:
        """Whether another attempt has landed, and only a doorbell's copy shows this one."""
        is_own = self.landed.attempt == self.pending.sealed.request.attempt
        return self.pending.is_inline and not is_own


@dataclass(slots=True)
class AdmissionOutcome:
    """The answer for each request looked at. `left_before`: it has left the inbox, so it ended
    before.

    `already_quarantined`: in quarantine, and in the inbox still. `suspects` may land as far as the
    table can tell, but an attempt with each alone has failed. `failed`: what is needed for an
    answer could not be read; nothing follows from that.
    """

    candidates: list[CheckedRequest] = field(default_factory=list)
    duplicates: list[AlreadyLanded] = field(default_factory=list)
    left_before: list[Pending] = field(default_factory=list)
    already_quarantined: list[Pending] = field(default_factory=list)
    refused: list[QuarantineVerdict] = field(default_factory=list)
    suspects: list[QuarantineVerdict] = field(default_factory=list)
    failed: list[tuple[Pending, FrazilError]] = field(default_factory=list)

    @property
    def has_verdicts(self) -> bool:
        """Whether some requests would end here, which only fresh metadata may decide."""
        return bool(self.duplicates or self.refused or self.suspects)
