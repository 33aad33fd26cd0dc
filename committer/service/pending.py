"""A request on its way through the service, with everybody who waits for its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from committer.plan.check import CheckedRequest
from committer.request import Receipt, SealedRequest


@dataclass(slots=True)
class Pending:
    """One request that waits for its verdict.

    `tokens` are acknowledged and `reply_to` answered with the verdict. `present_in` is the state
    generation after whose load the inbox object was seen to exist.
    """

    key: str
    sealed: SealedRequest
    arrived_ms: int
    tokens: list[str] = field(default_factory=list)
    reply_to: set[str] = field(default_factory=set)
    checked: CheckedRequest | None = None
    present_in: int | None = None

    def join(self, other: Pending) -> None:
        """Another copy of the same request arrived: it shares this one's end."""
        self.tokens.extend(other.tokens)
        self.reply_to.update(other.reply_to)


@dataclass(frozen=True, slots=True)
class Ended:
    """A request with its verdict, or a doorbell without a request.

    `key`: the inbox object to remove. No receipt: the request ended earlier, nobody knows how.
    """

    key: str | None
    tokens: tuple[str, ...]
    reply_to: frozenset[str] = frozenset()
    receipt: Receipt | None = None

    @classmethod
    def of(cls, pending: Pending, receipt: Receipt | None) -> Ended:
        return cls(pending.key, tuple(pending.tokens), frozenset(pending.reply_to), receipt)
