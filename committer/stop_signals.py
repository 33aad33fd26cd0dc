"""SIGTERM and SIGINT from the first line of the program until its end.

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
    from collections.abc import Callable
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
    """Hears both signals in a thread of its own, whatever the main thread and its loop are doing;
    remembers them until there is a loop, and ignores them after it.
    """

    def __init__(self) -> None:
        import threading  # too large to be imported before the handlers are there

        self._lock = threading.Lock()
        self._is_made = False
        self._act: Callable[[], None] | None = None
        heard, sent = os.pipe()
        os.set_blocking(sent, False)
        # Written to by the handler in C, which needs neither the interpreter nor the main thread.
        signal.set_wakeup_fd(sent, warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            signal.signal(number, _heard_by_thread)
        threading.Thread(
            target=self._listen, args=(heard,), name="stop-signals", daemon=True
        ).start()

    def _listen(self, heard: int) -> None:
        while number := os.read(heard, 1):
            if number[0] in STOP_SIGNALS:
                with self._lock:
                    self._is_made = True
                    if self._act is not None:
                        self._act()

    def set_on(self, stop: asyncio.Event, arm: Callable[[], None] = lambda: None) -> None:
        """Set the event of the running loop when told to end, at once where that has happened.

        `arm` is called before, in the thread that heard the signal: it limits the time that the
        loop has to end.
        """
        from asyncio import get_running_loop

        loop = get_running_loop()

        def end() -> None:
            arm()
            loop.call_soon_threadsafe(stop.set)

        with self._lock:
            self._act = end
            if self._is_made:
                end()

    def outlive_loop(self) -> None:
        """Ignore further signals: the process is about to end, with the code it has earned."""
        with self._lock:
            self._act = None


def _heard_by_thread(_: int, __: FrameType | None) -> None:
    pass
