"""SIGTERM and SIGINT from the first line of the program until an event loop hears them.

The first process of a container gets no signal that it does not handle: the kernel drops it. So a
handler is there before anything that takes time, imports included: this module has hardly any. It
ends the process at once, as the signal would anywhere else: nothing is under way yet, and what this
process has started ends with it.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # without `typing`, which is large
if TYPE_CHECKING:
    import asyncio
    from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def end_at_once() -> None:
    """End the process at either signal from now on. One that is ignored (`nohup`) stays so."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def let_python_interrupt() -> None:
    """Turn SIGINT into `KeyboardInterrupt` again from now on, so that a command can tidy up."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, _: FrameType | None) -> None:
    if number == signal.SIGINT:
        os._exit(128 + number)  # as from a command that Ctrl-C has interrupted
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # A container's first process cannot send itself what it does not handle.
    os._exit(128 + number)


class StopRequest:
    """Remembers that the process was told to end, until there is a loop, and behind it."""

    def __init__(self) -> None:
        self._is_made = False
        for number in STOP_SIGNALS:
            signal.signal(number, self._make)

    def _make(self, _: int, __: FrameType | None) -> None:
        self._is_made = True

    def set_on(self, stop: asyncio.Event) -> None:
        """Set the event of the running loop when told to end, at once where that has happened."""
        from asyncio import (
            get_running_loop,
        )  # too large to be imported before the handlers are there

        loop = get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, stop.set)
        # After the handlers: no signal falls in between.
        if self._is_made:
            stop.set()

    def outlive_loop(self) -> None:
        """Ignore further signals: the process is about to end, with the code it has earned."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._make)
