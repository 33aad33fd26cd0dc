"""Warnings of a driver that may repeat with every micro-batch: each kind once in a while.

A server that is unavailable for an hour is reported once a minute, with the number of failures.
"""

from __future__ import annotations

import logging

from committer.ports.world import World

PERIOD_S = 60.0


class SparseLog:
    """Writes the first warning of each kind, and those after it once in a period at most."""

    def __init__(self, log: logging.Logger, world: World) -> None:
        self._log = log
        self._world = world
        self._told: dict[str, tuple[float, int]] = {}

    def warning(self, message: str, *arguments: object) -> None:
        """Log a warning, once a period for each kind:
        `message`, before its arguments are filled in."""
        now_s = self._world.monotonic_s()
        told_s, held_back = self._told.get(message, (None, 0))
        if told_s is not None and now_s - told_s < PERIOD_S:
            self._told[message] = told_s, held_back + 1
            return
        self._told[message] = now_s, 0
        if held_back:
            message += f" ({held_back} more like this were not written)"
        self._log.warning(message, *arguments)
