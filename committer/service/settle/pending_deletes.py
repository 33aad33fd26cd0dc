"""Inbox keys to delete, grouped by the high-water mark that proves that their requests landed. No
I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from committer.plan.ledger.high_water_mark import HighWaterMark
from committer.service.requests.inbox_keys import InboxKey
from committer.service.settle.outcome import Outcome


@dataclass(slots=True)
class Proof:
    """Keys, and the high-water mark that has to be durable before they may go. None: they are in
    quarantine, and may go now. `due_s`: when to try, by the event loop's clock.
    """

    seen: HighWaterMark | None
    keys: list[InboxKey] = field(default_factory=list)
    due_s: float = 0.0


class PendingDeletes:
    """Keys by table, one proof for each. Proofs from before a later decision stay separate."""

    def __init__(self) -> None:
        self._proofs: dict[tuple[UUID, tuple[int, int]] | None, Proof] = {}
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
                proofs.setdefault(id(one.seen), Proof(one.seen)).keys.append(one.key)
                self._keys.add(one.key)
        for proof in proofs.values():
            self.requeue(proof)

    def take(self, now_s: float) -> Sequence[Proof]:
        """Return everything that is due, and forget it."""
        due = [group for group, proof in self._proofs.items() if proof.due_s <= now_s]
        return [self._proofs.pop(group) for group in due]

    def requeue(self, proof: Proof) -> None:
        """Queue taken keys again."""
        group = _group(proof.seen)
        known = self._proofs.setdefault(group, Proof(proof.seen))
        if known.seen is not None and proof.seen is not None and known.seen is not proof.seen:
            known.seen = known.seen.joined(proof.seen)
        known.keys.extend(proof.keys)
        known.due_s = max(known.due_s, proof.due_s)

    def forget(self, proof: Proof) -> None:
        """Forget taken keys: they are deleted, or must not be deleted."""
        self._keys.difference_update(proof.keys)

    def shorten(self, keys_max: int) -> int:
        """Forget what is too much, the oldest of it; return how many keys."""
        surplus = dropped = max(0, sum(len(one.keys) for one in self._proofs.values()) - keys_max)
        for group, proof in list(self._proofs.items()):
            gone = proof.keys[:surplus]
            del proof.keys[:surplus]
            self._keys.difference_update(gone)
            surplus -= len(gone)
            if not proof.keys:
                del self._proofs[group]
        return dropped


def _group(seen: HighWaterMark | None) -> tuple[UUID, tuple[int, int]] | None:
    return None if seen is None else (seen.table_uuid, seen.decided)
