"""A stderr that never makes its writer wait: a thread writes what has been queued.

A pipe that no process reads is full after 64 KiB; a write to it would hold the event loop for as
long as the reader is stopped. So a write only adds to a queue of bounded size. Lines that do not
fit are dropped and counted, and reported once the log flows again. Nothing here waits for the
descriptor but the thread, which is a daemon: it does not delay the end of the process.
"""

from __future__ import annotations

import atexit
import io
import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO, cast

from committer.service.telemetry.json_stderr import JsonStderr

_QUEUED_BYTES_MAX = 4 * 1024 * 1024
_WRITTEN_BYTES_MAX = 64 * 1024
# How long the end of the process waits for what is still queued.
DRAIN_S = 1.0


class LogStream(io.TextIOBase):
    """A text stream to the descriptor of `inner`. `report`: is called by the thread with the number
    of lines that were dropped, once a later write has succeeded. `dropped_lines`: since the start.
    """

    def __init__(self, inner: TextIO, *, queued_bytes_max: int = _QUEUED_BYTES_MAX) -> None:
        self._inner = inner
        self._descriptor = inner.fileno()
        self._queued_bytes_max = queued_bytes_max
        # Reentrant: a finalizer that logs may interrupt a write.
        self._changed = threading.Condition(threading.RLock())
        self._waiting: deque[bytes] = deque()
        self._size_bytes = 0
        self._unreported = 0
        self.dropped_lines = 0
        self.report: Callable[[int], None] = lambda _: None
        threading.Thread(target=self._run, name="log", daemon=True).start()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute there
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]  # as above
        return "backslashreplace"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return self._inner.isatty()

    def flush(self) -> None:
        """Do nothing: the thread writes each text as soon as it can."""

    def write(self, text: str, /) -> int:
        content = text.encode("utf-8", "backslashreplace")
        with self._changed:
            size_bytes = self._size_bytes + len(content)
            if self._size_bytes and size_bytes > self._queued_bytes_max:
                self._drop(content)
            elif content:
                self._waiting.append(content)
                self._size_bytes = size_bytes
                self._changed.notify_all()
        return len(text)

    def drain(self, timeout_s: float = DRAIN_S) -> bool:
        """Wait until everything is written, no longer than this. Return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._size_bytes, timeout_s)

    def _drop(self, content: bytes) -> None:
        lines = max(1, content.count(b"\n"))
        self._unreported += lines
        self.dropped_lines += lines

    def _run(self) -> None:
        while True:
            content = self._next()
            is_written = self._write_all(content)
            with self._changed:
                self._size_bytes -= len(content)
                if not is_written:
                    self._drop(content)
                dropped = self._unreported if is_written else 0
                self._unreported -= dropped
                self._changed.notify_all()
            if dropped:
                self.report(dropped)

    def _next(self) -> bytes:
        """Wait for texts, and return those that are written together."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting)
            texts = [self._waiting.popleft()]
            size_bytes = len(texts[0])
            while self._waiting and size_bytes + len(self._waiting[0]) <= _WRITTEN_BYTES_MAX:
                texts.append(self._waiting.popleft())
                size_bytes += len(texts[-1])
            return b"".join(texts)

    def _write_all(self, content: bytes) -> bool:
        """Write everything. Return False where the descriptor takes no more: its reader has gone,
        or its disk is full.
        """
        rest = memoryview(content)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # another process has made the pipe non-blocking
                select.select((), (self._descriptor,), ())
            except OSError:
                return False
        return True


def write_in_background() -> None:
    """Make stderr, JSON or not, a stream whose writes never wait. Again: as it is.

    At its end the process waits for what is queued, `DRAIN_S` at most.
    """
    stderr = sys.stderr
    if stderr is None or _log_stream() is not None:
        return
    inner = stderr.inner if isinstance(stderr, JsonStderr) else stderr
    try:
        inner.fileno()
    except io.UnsupportedOperation:
        return  # a stream in memory: no reader can hold it up
    stream = LogStream(inner)
    if isinstance(stderr, JsonStderr):
        stderr.inner = cast("TextIO", stream)
    else:
        sys.stderr = stream
    atexit.register(stream.drain)


def drain_log() -> None:
    """Wait for what is queued, for an end that passes the usual one by."""
    if (stream := _log_stream()) is not None:
        stream.drain()


def dropped_lines() -> int:
    """Return the number of lines of the log that were dropped."""
    stream = _log_stream()
    return 0 if stream is None else stream.dropped_lines


def report_dropped(report: Callable[[int], None]) -> None:
    """Have `report` called with the number of dropped lines whenever the log flows again."""
    if (stream := _log_stream()) is not None:
        stream.report = report


def _log_stream() -> LogStream | None:
    stderr: object = sys.stderr
    if isinstance(stderr, JsonStderr):
        stderr = stderr.inner
    return stderr if isinstance(stderr, LogStream) else None
