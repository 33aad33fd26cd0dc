"""Counts the calls of a migration, and ends its process at one of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from committer.errors import FrazilError


class CrashError(Exception):
    """The process ended here."""


class Steps:
    """Counts calls of all that it wraps, and ends the process at one of them."""

    def __init__(self, crash_at: int | None = None, *, applied: bool = False) -> None:
        self.count = 0
        self._crash_at = crash_at
        self._applied = applied

    def wrap(self, inner: Any) -> Any:
        return _Stepped(inner, self)

    async def take(self, call: Callable[[], Any]) -> Any:
        self.count += 1
        if self.count != self._crash_at:
            return await call()
        if self._applied:
            with suppress(FrazilError):
                await call()
        raise CrashError


class _Stepped:
    def __init__(self, inner: Any, steps: Steps) -> None:
        self._inner = inner
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found) or name in ("list", "objects_before"):
            return found
        return lambda *given, **named: self._steps.take(lambda: found(*given, **named))
