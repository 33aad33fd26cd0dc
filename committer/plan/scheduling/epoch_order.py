"""The order in which the epochs of an ordered producer land: ascending, none before a lower one
that waits or is in quarantine. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


def follows_on(highest: int | None, epochs: Iterable[int]) -> bool:
    """Return whether ascending epochs have no gap, from the highest that has landed on: then no
    other one can be between them."""
    after = -1 if highest is None else highest
    for epoch in epochs:
        if epoch > after + 1:
            return False
        after = max(after, epoch)
    return True


def blocker(epoch: int, outstanding: Collection[int], going: Collection[int]) -> int | None:
    """Return the lowest epoch that has to land before this one; None: it may go, with those that
    go already."""
    return min((one for one in outstanding if one < epoch and one not in going), default=None)
