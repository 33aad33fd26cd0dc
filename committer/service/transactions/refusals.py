"""The transactions that cannot land, because the request of one of their tables was refused.

A refusal that is remembered ends a wait early, and is forgotten without harm: a request that waits
for one that was refused ends by its time limit, too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from uuid import UUID

from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.request_key import published_key
from committer.request.table_identifier import TableIdentifier

REFUSALS_MAX = 1_000
# With these, any producer could end a transaction of others. An incomplete transaction ends because
# of another request, which is the one to name.
_NOT_TOLD = frozenset(
    {
        Reason.SIGNATURE_MISSING,
        Reason.SIGNATURE_INVALID,
        Reason.SIGNATURE_KEY_UNKNOWN,
        Reason.SIGNATURE_KEY_NOT_ALLOWED,
        Reason.SIGNATURE_EXPIRED,
        Reason.UNSIGNED_OPERATION,
        Reason.DATA_FILE_MISSING,
        Reason.TRANSACTION_INCOMPLETE,
    }
)


@dataclass(frozen=True, slots=True)
class RefusedMember:
    """The request that was refused: its table, and the reason. `conflict`: the code of a conflict
    that is only reported to its client."""

    table_uuid: UUID
    identifier: TableIdentifier
    reason: Reason
    conflict: str | None = None


class Refusals:
    """By the transaction, with its tables; the newest ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, RefusedMember] = OrderedDict()

    def note(
        self,
        transaction: Hashable,
        request: CommitRequest,
        reason: Reason,
        conflict: str | None = None,
    ) -> None:
        """Note a refusal, of a conflict with its code, unless it says nothing about the others."""
        if reason in _NOT_TOLD:
            return
        told = conflict if request.needs.on_conflict == "fail" else None
        member = RefusedMember(request.table_uuid, request.identifier, reason, told)
        self._known[transaction] = member
        while len(self._known) > REFUSALS_MAX:
            self._known.popitem(last=False)

    def came(self, transaction: Hashable, table_uuid: UUID) -> None:
        """Forget the refusal of a table of which another request has come that may land."""
        known = self._known.get(transaction)
        if known is not None and known.table_uuid == table_uuid:
            del self._known[transaction]

    def find(self, transaction: Hashable, key: str) -> RefusedMember | None:
        """Return the refusal that keeps a request from landing. None to a replay: all requests of
        its transaction are replayed one by one, and it waits for them.
        """
        return self._known.get(transaction) if published_key(key) == key else None
