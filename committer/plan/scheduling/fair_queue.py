"""Fair turns for producers, and for tables: one with a long queue delays itself alone. Pure.

Self-clocked fair queueing: work is tagged with the virtual time at which it would end if all
producers shared one server evenly, and is taken in the order of these tags. Small work passes large
work, and a producer's own work keeps its order.

The virtual time rises the slower the more producers wait. While ever more of them come, each with a
little work, it hardly rises at all, and large work would starve. So age decides after a bound: once
so much has been served since a piece came, the oldest such pieces get half of what is served.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

# In bytes, as costs are: more than all large requests that are in memory at once.
OVERTAKEN_MAX = 64 * 1024 * 1024


@dataclass(slots=True, eq=False)
class _Piece(Generic[T]):
    """`served`: what the queue had served when it came."""

    producer: str
    cost: int
    work: T
    tag: int
    served: int
    is_taken: bool = False


@dataclass(slots=True)
class FairQueue(Generic[T]):
    """Work of many producers, each piece with what it costs.

    `overtaken_max`: how much is served after a piece came until its age decides.
    """

    overtaken_max: int = OVERTAKEN_MAX
    _heap: list[tuple[int, int, _Piece[T]]] = field(default_factory=list)
    _by_age: deque[_Piece[T]] = field(default_factory=deque)
    _last: dict[str, int] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)
    _now: int = 0
    _served: int = 0
    # How much the turns serve until the oldest have had as much.
    _owed: int = 0
    _count: int = 0

    def __len__(self) -> int:
        return self._count

    def add(self, producer: str, cost: int, work: T) -> None:
        """Queue work after the producer's waiting work."""
        cost = max(cost, 1)
        tag = max(self._now, self._last.get(producer, 0)) + cost
        self._last[producer] = tag
        piece = _Piece(producer, cost, work, tag, self._served)
        heappush(self._heap, (tag, next(self._numbers), piece))
        self._by_age.append(piece)
        self._count += 1

    def take(self) -> T:
        """Return the work whose turn it is. Errors: `IndexError` where there is none."""
        oldest = self._overdue()
        if oldest is not None and self._owed <= 0:
            piece = oldest
            self._owed = piece.cost
        else:
            piece = self._next_by_tag()
            self._owed -= piece.cost
        piece.is_taken = True
        self._served += piece.cost
        self._count -= 1
        if self._last[piece.producer] == piece.tag:
            del self._last[piece.producer]
        return piece.work

    def _overdue(self) -> _Piece[T] | None:
        """Return the oldest piece, if its age decides."""
        while self._by_age and self._by_age[0].is_taken:
            self._by_age.popleft()
        if not self._by_age or self._served - self._by_age[0].served < self.overtaken_max:
            self._owed = 0
            return None
        return self._by_age[0]

    def _next_by_tag(self) -> _Piece[T]:
        while True:
            self._now, _, piece = heappop(self._heap)
            if not piece.is_taken:
                return piece


@dataclass(slots=True)
class TableFairQueue(Generic[T]):
    """Work of the producers of many tables: turns go round the tables, and those of a table round
    its producers. So a table with a thousand producers delays itself alone, too.
    """

    overtaken_max: int = OVERTAKEN_MAX
    _tables: FairQueue[str] = field(init=False)
    _producers: dict[str, FairQueue[T]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tables = FairQueue(self.overtaken_max)

    def __len__(self) -> int:
        return len(self._tables)

    def add(self, table: str, producer: str, cost: int, work: T) -> None:
        """Queue work after the producer's waiting work for the table."""
        queue = self._producers.get(table)
        if queue is None:
            queue = self._producers[table] = FairQueue(self.overtaken_max)
        # A turn of the table, which any of its producers may get: together they cost as much.
        self._tables.add(table, cost, table)
        queue.add(producer, cost, work)

    def take(self) -> T:
        """Return the work whose turn it is. Errors: `IndexError` where there is none."""
        table = self._tables.take()
        queue = self._producers[table]
        work = queue.take()
        if not len(queue):
            del self._producers[table]
        return work
