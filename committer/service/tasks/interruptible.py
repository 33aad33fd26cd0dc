"""Waits of one task that another may end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Interruptible:
    """One wait at a time. Costs no task of its own, so that a busy reader may use it."""

    def __init__(self) -> None:
        self._scope: asyncio.Timeout | None = None

    async def wait(self, call: Awaitable[T]) -> T | None:
        """Return the call's answer; None if it was interrupted, and so canceled."""
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._scope = scope
                return await call
        except TimeoutError:
            if not scope.expired():
                raise
            return None
        finally:
            self._scope = None

    def interrupt(self) -> None:
        """End the wait that is under way, if one is."""
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())
            self._scope = None
