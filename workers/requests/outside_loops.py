"""Runs work that has an event loop of its own where one may be running already (a notebook)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_T = TypeVar("_T")


def outside_any_loop(work: Callable[[], _T]) -> _T:
    """Run the work here, or in a thread where a loop runs already.

    An interrupt ends the wait for the thread. Neither the caller nor the end of the process waits
    for it any longer: it may be in a call of the system that never returns.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    future: Future[_T] = Future()
    threading.Thread(target=_settle, args=(future, work), name="frazil-call", daemon=True).start()
    return future.result()


def _settle(future: Future[_T], work: Callable[[], _T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001  # raised in the caller's thread
        future.set_exception(error)
