"""Counts the work that the event loop's own thread does between two of the loop's steps."""

from __future__ import annotations

import asyncio.events
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_STEP = asyncio.events.Handle._run.__code__


class LoopWork:
    """Calls of some functions: those of the step at hand, and the most that a step has had."""

    def __init__(self, functions: tuple[Callable[..., Any], ...]) -> None:
        self._codes = frozenset(one.__code__ for one in functions)
        self._calls = 0
        self.most = 0

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call, as the interpreter's profiler of one thread."""
        if event != "call":
            return
        if frame.f_code is _STEP:
            self._calls = 0
        elif frame.f_code in self._codes:
            self._calls += 1
            self.most = max(self.most, self._calls)


@contextmanager
def loop_work(*functions: Callable[..., Any]) -> Iterator[LoopWork]:
    """Count calls of these on this thread alone: what other threads do is no step of the loop."""
    work = LoopWork(functions)
    before = sys.getprofile()
    sys.setprofile(work.note)
    try:
        yield work
    finally:
        sys.setprofile(before)
