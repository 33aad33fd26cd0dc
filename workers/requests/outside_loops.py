"""Runs work that has an event loop of its own where one may be running already (a notebook)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


def outside_any_loop(work: Callable[[], _T]) -> _T:
    """Run the work here, or in a thread where a loop runs already.

    An interrupt ends the wait for the thread, which ends behind it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="frazil-call")
    try:
        return executor.submit(work).result()
    finally:
        executor.shutdown(wait=False)
