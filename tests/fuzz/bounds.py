"""One input to one reader, watched: what comes out, how long it takes, what it keeps in memory."""

from __future__ import annotations

import signal
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fuzz.targets import REFUSALS, Target

# Far above what honest input of this size needs on a slow machine; a hang is found all the same.
SECONDS_MAX = 10.0
# An unprintable character takes up to ten in a quotation.
_MESSAGE_MAX = 10_100


class HangError(Exception):
    """A reader needs too long."""


def fault(target: Target, content: bytes) -> str | None:
    """Return the fault of the reader's answer; None if it reads the input or refuses it clearly."""
    try:
        with limited_s(SECONDS_MAX):
            target.read(content)
    except REFUSALS as error:
        return _unclear(str(error))
    except Exception as error:  # noqa: BLE001  # this is what is looked for
        return f"{type(error).__name__}: {str(error)[:300]}"
    return None


def _unclear(message: str) -> str | None:
    if not message or len(message) > _MESSAGE_MAX or not message.isprintable():
        return f"not a clear message: {message[:300]!r}"
    return None


@contextmanager
def limited_s(seconds: float) -> Iterator[None]:
    """Limit the time of the body. Errors: `HangError`. For the main thread only."""

    def ring(_signal: int, _frame: object) -> None:
        raise HangError(f"not done in {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def peak_bytes(target: Target, content: bytes) -> int:
    """Return the most memory that a reader holds at once while it reads or refuses the input."""
    tracemalloc.start()
    try:
        fault(target, content)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
