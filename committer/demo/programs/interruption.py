"""Ctrl-C and SIGTERM: the run is canceled once, and ends what it started on its way out."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class Interruption(Exception):
    """A signal ended the run."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


def run_until_signal(work: Coroutine[object, object, T]) -> T:
    """Run to the end, or raise `Interruption` after the work has cleaned up.

    Further signals change nothing: what remains is short.
    """
    return asyncio.run(_run(work))


async def _run(work: Coroutine[object, object, T]) -> T:
    task = asyncio.ensure_future(work)
    received: list[int] = []

    def interrupt(number: int) -> None:
        if not received:
            received.append(number)
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not received:
            raise
        raise Interruption(received[0]) from None
