"""Deals the groups of a compaction to several requests, before their files are written.

A request lands whole, by one swap, but for the groups that it has lost. So a compaction whose
groups are to land one by one is several requests, each with an epoch of its own. The files of a
part carry the attempt of its epoch in their names: deal the groups first, then write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

_T = TypeVar("_T")

# A quarter of what a batch removes (`BatchPolicy.removed_files_max`): one that lands beside others
# is planned in some 50 ms, and a commit has up to four of them.
REMOVED_FILES_MAX = 500
# As many as a request may have.
GROUPS_MAX = 1_000


def rewrite_parts(
    groups: Iterable[Sequence[str]],
    *,
    removed_files_max: int = REMOVED_FILES_MAX,
    groups_max: int = GROUPS_MAX,
) -> Iterator[list[Sequence[str]]]:
    """Yield the groups of each request, in their order. A group is the paths of the data files that
    it replaces; one of more than `removed_files_max` has a request of its own.
    """
    return dealt(groups, len, removed_files_max, count_max=groups_max)


def dealt(
    items: Iterable[_T], weigh: Callable[[_T], int], weight_max: int, count_max: int | None = None
) -> Iterator[list[_T]]:
    """Yield lists of items that follow one another, each of this weight and count at most; an item
    that weighs more has a list of its own."""
    part: list[_T] = []
    weight = 0
    for item in items:
        own = weigh(item)
        if part and (weight + own > weight_max or len(part) == count_max):
            yield part
            part, weight = [], 0
        part.append(item)
        weight += own
    if part:
        yield part
