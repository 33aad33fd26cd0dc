"""Fair turns for producers: a producer with a long queue delays itself alone. Pure.

Self-clocked fair queueing: work is tagged with the virtual time at which it would end if all
producers shared one server evenly, and is taken in the order of these tags. Small work passes large
work, a producer's own work keeps its order, and none starves, because the virtual time rises with
each taken item.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class FairQueue(Generic[T]):
    """Work of many producers, each piece with what it costs."""

    _heap: list[tuple[int, int, str, T]] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)
    _now: int = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, producer: str, cost: int, work: T) -> None:
        """Queue work after the producer's waiting work."""
        tag = max(self._now, self._last.get(producer, 0)) + max(cost, 1)
        self._last[producer] = tag
        heappush(self._heap, (tag, next(self._numbers), producer, work))

    def take(self) -> T:
        """Return the work whose turn it is. Errors: `IndexError` where there is none."""
        self._now, _, producer, work = heappop(self._heap)
        if self._last[producer] == self._now:
            del self._last[producer]
        return work
