"""Inbox keys to delete, grouped by the high-water mark that proves that their requests landed. No
I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from committer.plan.ledger.high_water_mark import HighWaterMark
from committer.service.requests.inbox_keys import InboxKey
from committer.service.settle.outcome import Outcome
from committer.storage.inbox.audit_log import AuditEntry

# So many pauses of an object that cannot be deleted are told apart.
_TRIES_MAX = 8


@dataclass(slots=True)
class Proof:
    """Keys, and the high-water mark that has to be durable before they may go. None: they are in
    quarantine, and may go now. `due_s`: when to try, by the event loop's clock. `tries`: how often
    each key could not be deleted. `audit`: the entries of some of the keys, which
    have to be durable, too.
    """

    seen: HighWaterMark | None
    keys: list[InboxKey] = field(default_factory=list)
    due_s: float = 0.0
    tries: int = 0
    audit: list[AuditEntry] = field(default_factory=list)

    @property
    def group(self) -> tuple[object, ...]:
        """The group of keys that it shares its fate with."""
        table = () if self.seen is None else (self.seen.table_uuid, self.seen.decided)
        return (*table, min(self.tries, _TRIES_MAX))


class PendingDeletes:
    """Keys by table, one proof for each. Proofs from before a later decision stay separate, and so
    do keys that could not be deleted: others of their table do not wait for them.
    """

    def __init__(self) -> None:
        self._proofs: dict[tuple[object, ...], Proof] = {}
        self._keys: set[str] = set()

    def __bool__(self) -> bool:
        """Return whether some wait to be taken."""
        return bool(self._proofs)

    def __contains__(self, key: object) -> bool:
        """Return whether a request has ended, and its inbox object is about to be deleted."""
        return key in self._keys

    def add(self, ended: Iterable[Outcome]) -> None:
        # The requests of a batch share a mark, and joining two marks looks at every producer.
        proofs: dict[int, Proof] = {}
        for one in ended:
            if one.key is not None:
                proof = proofs.setdefault(id(one.seen), Proof(one.seen))
                proof.keys.append(one.key)
                if one.audit is not None:
                    proof.audit.append(one.audit)
                self._keys.add(one.key)
        for proof in proofs.values():
            self.requeue(proof)

    def take(self, now_s: float, *, are_retried: bool = False) -> Sequence[Proof]:
        """Return everything that is due, and forget it: the keys that were never tried, or those
        that are retried.
        """
        due = [
            group
            for group, proof in self._proofs.items()
            if proof.due_s <= now_s and bool(proof.tries) is are_retried
        ]
        return [self._proofs.pop(group) for group in due]

    def retry_s(self) -> float | None:
        """Return when the next retry of a key is due; None: there is none."""
        return min((proof.due_s for proof in self._proofs.values() if proof.tries), default=None)

    def requeue(self, proof: Proof) -> None:
        """Queue taken keys again."""
        known = self._proofs.get(proof.group)
        if known is None:
            self._proofs[proof.group] = proof
            return
        if known.seen is not None and proof.seen is not None and known.seen is not proof.seen:
            known.seen = known.seen.joined(proof.seen)
        known.keys.extend(proof.keys)
        known.audit.extend(proof.audit)
        # A mark that cannot be written keeps all keys of its table back; a key only itself.
        latest = min if known.tries else max
        known.due_s = latest(known.due_s, proof.due_s)

    def forget(self, proof: Proof) -> None:
        """Forget taken keys: they are deleted, or must not be deleted."""
        self._keys.difference_update(proof.keys)

    def shorten(self, keys_max: int) -> Sequence[InboxKey]:
        """Forget what is too much, the oldest of it; return these keys."""
        surplus = max(0, sum(len(one.keys) for one in self._proofs.values()) - keys_max)
        dropped: list[InboxKey] = []
        for group, proof in list(self._proofs.items()):
            gone = proof.keys[:surplus]
            del proof.keys[:surplus]
            self._keys.difference_update(gone)
            dropped += gone
            surplus -= len(gone)
            if not proof.keys:
                del self._proofs[group]
        return dropped
