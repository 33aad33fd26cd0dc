"""The requests of one table that its next round may look at, in order, and each producer's part of
them.

A producer with a long queue delays itself alone: a look takes the oldest of each producer, as many
of one as a batch may have, and fewer where many producers have long queues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Generic, Protocol, TypeVar


class ReadyRequest(Protocol):
    """A request as far as its turn depends on it. `folder`: of its producer. `ends_look`: it
    changes the table, and those after it are for the table that it makes.
    """

    @property
    def folder(self) -> str: ...

    @property
    def weight_bytes(self) -> int: ...

    @property
    def ends_look(self) -> bool: ...


R = TypeVar("R", bound=ReadyRequest)


@dataclass(slots=True)
class _Placed(Generic[R]):
    """A request and its number in the order of all."""

    number: int
    request: R
    weight_bytes: int


@dataclass(slots=True)
class _Lane(Generic[R]):
    """The requests of one producer, in order."""

    requests: dict[str, _Placed[R]] = field(default_factory=dict)
    weight_bytes: int = 0


class ReadyRequests(MutableMapping[str, R], Generic[R]):
    """Requests by key, in order: a new one comes last. Every change costs the same, however many
    there are.
    """

    def __init__(self) -> None:
        self._requests: dict[str, R] = {}
        self._lanes: dict[str, _Lane[R]] = {}
        self._barriers: dict[str, int] = {}
        self._last = 0
        self._first = 0

    def __getitem__(self, key: str) -> R:
        return self._requests[key]

    def __contains__(self, key: object) -> bool:
        return key in self._requests

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[str]:
        return iter(self._requests)

    def __setitem__(self, key: str, request: R) -> None:
        """Put a request after all others."""
        self._discard(key)
        self._last += 1
        self._requests[key] = request
        self._place(key, request, self._last)

    def __delitem__(self, key: str) -> None:
        if key not in self._requests:
            raise KeyError(key)
        self._discard(key)

    def put_first(self, requests: Mapping[str, R]) -> None:
        """Put requests before all others, in this order. Costs the more, the more there are."""
        for key in requests:
            self._discard(key)
        self._requests = {**requests, **self._requests}
        for key, request in reversed([*requests.items()]):
            self._first -= 1
            self._place(key, request, self._first)
        for folder in {request.folder for request in requests.values()}:
            lane = self._lanes[folder]
            lane.requests = dict(sorted(lane.requests.items(), key=lambda item: item[1].number))

    def of_producer(self, folder: str) -> tuple[int, int]:
        """Return how many requests the producer of this folder has here, and their weight."""
        lane = self._lanes.get(folder)
        return (len(lane.requests), lane.weight_bytes) if lane is not None else (0, 0)

    def look(self, count_max: int, *, of_producer_max: int) -> list[R]:
        """Return those that a round looks at, in order: none after the first one that ends the
        look, and of each producer its first ones. If there are more producers than that, it has the
        first one of those that have waited longest.
        """
        barrier = min(self._barriers.values(), default=None)
        if barrier is None and len(self) <= min(count_max, of_producer_max):
            return list(self._requests.values())
        parts = [
            part
            for lane in self._lanes.values()
            if (part := list(islice(_up_to(lane, barrier), of_producer_max)))
        ]
        oldest = sorted(parts, key=lambda part: part[0].number)[:count_max]
        chosen = [placed for part in _fair(oldest, count_max) for placed in part]
        return [placed.request for placed in sorted(chosen, key=lambda placed: placed.number)]

    def _place(self, key: str, request: R, number: int) -> None:
        lane = self._lanes.get(request.folder)
        if lane is None:
            lane = self._lanes[request.folder] = _Lane()
        placed = lane.requests[key] = _Placed(number, request, request.weight_bytes)
        lane.weight_bytes += placed.weight_bytes
        if request.ends_look:
            self._barriers[key] = number

    def _discard(self, key: str) -> None:
        request = self._requests.pop(key, None)
        if request is None:
            return
        folder = request.folder
        lane = self._lanes[folder]
        lane.weight_bytes -= lane.requests.pop(key).weight_bytes
        if not lane.requests:
            del self._lanes[folder]
        self._barriers.pop(key, None)


def _up_to(lane: _Lane[R], barrier: int | None) -> Iterator[_Placed[R]]:
    if barrier is None:
        return iter(lane.requests.values())
    return takewhile(lambda placed: placed.number <= barrier, lane.requests.values())


def _fair(parts: Sequence[list[_Placed[R]]], count_max: int) -> Iterator[list[_Placed[R]]]:
    """Yield the first ones of each part: what the short parts leave goes to the longer ones."""
    for number, part in enumerate(sorted(parts, key=len)):
        taken = part[: -(-count_max // (len(parts) - number))]
        count_max -= len(taken)
        yield taken
