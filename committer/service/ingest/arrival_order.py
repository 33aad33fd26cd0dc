"""Keeps requests in order that are read at once: each is handed to its table behind those of this
table that came before it. No read waits for another, and no table for another.
"""

from __future__ import annotations

import asyncio

from committer.service.requests.inbox_keys import table_folder_of


class Turn:
    """The turn of one request. `before`: that of the one before it, of the same table."""

    def __init__(self, before: Turn | None) -> None:
        self._before = before
        self._has_ended = asyncio.Event()

    async def wait(self) -> None:
        """Wait until the turn of the one before has ended."""
        if self._before is not None:
            await self._before._has_ended.wait()
            self._before = None

    def end(self) -> None:
        self._has_ended.set()


class Turns:
    """The turns of requests that are taken together, in the order in which they are asked for."""

    def __init__(self) -> None:
        self._last: dict[str, Turn] = {}

    def next_of(self, key: str) -> Turn:
        """Return the turn of the request with this inbox key, behind all others of its table."""
        table = table_folder_of(key)
        turn = self._last[table] = Turn(self._last.get(table))
        return turn
