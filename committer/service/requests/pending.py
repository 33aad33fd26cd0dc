"""A request on its way through the service, with the waiters for its end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator
from dataclasses import dataclass, field
from itertools import islice

from committer.errors import FrazilError
from committer.plan.high_water_mark import HighWaterMark
from committer.plan.request_check import CheckBasis, CheckedRequest
from committer.reason import Reason
from committer.request.receipt_model import Receipt
from committer.request.request_format import EncodedRequest
from committer.service.requests.large_requests import LARGE_BYTES_MIN

Refusal = tuple[Reason, str]


_BYTES_A_REQUEST = 4 * 1024
_BYTES_A_VALUE = 32


@dataclass(slots=True)
class Pending:
    """One request that waits for its verdict.

    `durable_ms`: since when it has been durable as far as is known: its arrival, until a listing of
    the inbox tells better. `tokens` are acknowledged and `reply_to` answered with the verdict.
    `present_in` is the state generation after whose load the inbox object was seen to exist.
    `suspicion` is why an attempt with this request alone failed: a verdict once fresh metadata
    agrees. `is_authentic`: its signature was checked, or need not be. `is_inline`: nothing but a
    doorbell has told of its content, which may be another than that of the inbox object.
    `is_shared`: others may have been handed it too, or an operator have decided about it, since it
    came from a listing, from a doorbell that rang before, or has waited for a frozen table: it
    lands only while its inbox object is there. `found`: what a check beside the rounds has found,
    and against which basis. `named_bytes`: of the manifests that were read for it.
    """

    key: str
    sealed: EncodedRequest
    durable_ms: int
    tokens: list[str] = field(default_factory=list)
    reply_to: set[str] = field(default_factory=set)
    checked: CheckedRequest | None = None
    present_in: int | None = None
    suspicion: tuple[Reason, str] | None = None
    deferral_count: int = 0
    is_authentic: bool = False
    is_inline: bool = False
    is_shared: bool = False
    named_bytes: int = 0
    found: tuple[CheckBasis, CheckedRequest | Refusal | FrazilError] | None = None

    @property
    def is_large(self) -> bool:
        return len(self.sealed.content) + self.named_bytes > LARGE_BYTES_MIN

    @property
    def inflated_bytes_max(self) -> int:
        """Inflated bytes that its check may keep before it waits for room. A usual request has
        fewer: its header is longer than its blocks.
        """
        size_bytes = len(self.sealed.content)
        return size_bytes + 4 * 1024 if size_bytes <= LARGE_BYTES_MIN else 256 * 1024

    @property
    def weight_bytes(self) -> int:
        """The memory of a small request, as measured: twice its bytes, some objects, its parsed
        line (by its commas), and the bytes that its check may keep.
        """
        content, body = self.sealed.content, self.sealed.body
        if len(content) > LARGE_BYTES_MIN:
            return 0
        parsed_bytes = _BYTES_A_VALUE * content.count(b",", 0, body)
        return _BYTES_A_REQUEST + 2 * len(content) + parsed_bytes + self.inflated_bytes_max

    def join(self, other: Pending) -> None:
        """Another copy of the same request arrived: it shares this one's end."""
        self.durable_ms = min(self.durable_ms, other.durable_ms)
        self.tokens.extend(other.tokens)
        self.reply_to.update(other.reply_to)
        self.is_shared = self.is_shared or other.is_shared


class Waiting(Collection[str]):
    """The requests of one table by key: those that are ready, in order, and those that are
    deferred.

    A request that fails for a reason of its own (its manifest cannot be read, its quarantine record
    not written) is deferred, so that it does not block the others. A request that takes long to
    check is set aside until it is checked.
    """

    def __init__(self, give_back: Callable[[int], None] = lambda _: None) -> None:
        """`give_back`: called with the number of named bytes that are released."""
        self._give_back = give_back
        self._ready: dict[str, Pending] = {}
        self._deferred: dict[str, tuple[float, Pending]] = {}
        self._aside: dict[str, Pending] = {}
        self.size_bytes = 0
        self.large_bytes = 0
        self.weight_bytes = 0

    def __len__(self) -> int:
        return len(self._ready) + len(self._deferred) + len(self._aside)

    def __contains__(self, key: object) -> bool:
        return key in self._ready or key in self._deferred or key in self._aside

    def __iter__(self) -> Iterator[str]:
        yield from self._ready
        yield from self._deferred
        yield from self._aside

    @property
    def has_ready(self) -> bool:
        return bool(self._ready)

    def add(self, pending: Pending) -> None:
        """Add a request, or another copy of one that waits."""
        known = self.find(pending.key)
        if known is not None:
            known.join(pending)
            return
        self._ready[pending.key] = pending
        self._count(pending, 1)

    def _count(self, pending: Pending, times: int) -> None:
        self.weight_bytes += times * pending.weight_bytes
        size_bytes = times * len(pending.sealed.content)
        self.size_bytes += size_bytes
        self.large_bytes += size_bytes if len(pending.sealed.content) > LARGE_BYTES_MIN else 0

    def find(self, key: str) -> Pending | None:
        """A request that waits: ready, deferred or set aside."""
        found = self._ready.get(key) or self._aside.get(key)
        return found or self._deferred.get(key, (0, None))[1]

    def all(self) -> Iterator[Pending]:
        """Every request that waits: ready, deferred or set aside."""
        yield from self._ready.values()
        yield from (pending for _, pending in self._deferred.values())
        yield from self._aside.values()

    @property
    def oldest_ms(self) -> int | None:
        """Since when the oldest of all has been durable."""
        return min((one.durable_ms for one in self.all()), default=None)

    def ready(self, count_max: int) -> list[Pending]:
        """The first ready ones."""
        return list(islice(self._ready.values(), count_max))

    def reread(self, key: str, sealed: EncodedRequest) -> None:
        """Replace a ready request by the content of its inbox object, because the doorbell's copy
        differs. It is admitted anew, for the same waiters.
        """
        told = self.end(key)
        self.add(Pending(key, sealed, told.durable_ms, told.tokens, told.reply_to))

    def __getitem__(self, key: str) -> Pending:
        return self._ready[key]

    def end(self, key: str) -> Pending:
        """Take out a ready request that has its verdict."""
        pending = self._ready.pop(key)
        self._count(pending, -1)
        self.drop_named(pending)
        return pending

    def drop_named(self, pending: Pending) -> None:
        """The manifests that a request names are read anew if they are needed again."""
        self._give_back(pending.named_bytes)
        pending.named_bytes = 0

    def evict(self, is_left: Callable[[Pending], bool], kept: Container[str]) -> Iterator[Pending]:
        """Take ready requests out of memory; they stay in the inbox and are found there again."""
        for key, pending in list(self._ready.items()):
            if key not in kept and is_left(pending):
                yield self.end(key)

    def set_aside(self, key: str) -> None:
        """Leave a ready request alone until `bring_back`."""
        self._aside[key] = self._ready.pop(key)

    def bring_back(self, key: str) -> None:
        """It is ready again, behind the others."""
        self._ready[key] = self._aside.pop(key)

    def defer(self, key: str, until_s: float) -> None:
        """Retry a ready request no sooner than then."""
        self._deferred[key] = (until_s, self._ready.pop(key))

    def recall(self, now_s: float) -> float | None:
        """Make ready whose time has come, behind the others; return how long until the next one."""
        for key, (until_s, pending) in list(self._deferred.items()):
            if until_s <= now_s:
                del self._deferred[key]
                self._ready[key] = pending
        return min((until_s - now_s for until_s, _ in self._deferred.values()), default=None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A request with its verdict, or a doorbell without a request.

    `key`: the inbox object to remove, once what proves that it has landed (`seen`) is durable. No
    receipt: the request ended earlier, and its verdict is not known.
    """

    key: str | None
    tokens: tuple[str, ...]
    reply_to: frozenset[str] = frozenset()
    receipt: Receipt | None = None
    seen: HighWaterMark | None = None

    @classmethod
    def landed(cls, pending: Pending, receipt: Receipt, seen: HighWaterMark) -> Outcome:
        return cls(pending.key, tuple(pending.tokens), frozenset(pending.reply_to), receipt, seen)

    @classmethod
    def quarantined(cls, pending: Pending, receipt: Receipt) -> Outcome:
        """It is in quarantine, so its inbox object may go."""
        return cls(pending.key, tuple(pending.tokens), frozenset(pending.reply_to), receipt)

    @classmethod
    def gone(cls, pending: Pending) -> Outcome:
        """Its inbox object is not there. One that appears now is another publication: keep it."""
        return cls(None, tuple(pending.tokens))
