"""Detects whether Spark still wants a task's files, by the connection that its rows arrive through.

Runs on executors. If the rows stop because an earlier step failed or the task was canceled, Spark
closes the connection, and Arrow takes that for the end of the rows: the iterator ends like any
other. Only the connection itself shows the difference. After the last row Spark sends a mark; a
connection that is closed instead has nothing more to read. Nothing here waits, and nothing is taken
from the connection.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol, cast

from committer.errors import PublishError
from workers.spark.worker_process import begin_call

_WORKER = ("pyspark/worker.py", "pyspark\\worker.py")
# How a Python worker of Spark ends: with its executor, or with the application.
_ENDINGS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class TaskStream(Protocol):
    """The stream that a worker reads its task from: a buffered reader of a socket."""

    def fileno(self) -> int: ...

    def peek(self, size: int = 0, /) -> bytes: ...


class TaskInput:
    """The connection of the running task; `stream` is None without one."""

    def __init__(self, stream: TaskStream | None) -> None:
        self._stream = stream if stream is not None and _has_descriptor(stream) else None

    @classmethod
    def of_running_task(cls) -> TaskInput:
        """Find the connection that the calling Spark worker reads from, and let its rows come."""
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            code = frame.f_code
            if code.co_name == "main" and code.co_filename.endswith(_WORKER):
                stream = frame.f_locals.get("infile")
                is_usable = hasattr(stream, "peek") and hasattr(stream, "fileno")
                found = cls(cast(TaskStream, stream) if is_usable else None)
                found._acknowledge()
                return found
            frame = frame.f_back
        return cls(None)

    def _acknowledge(self) -> None:
        """Send the acknowledgment that Linux holds back for up to 40 ms. Spark writes the rows of a
        task in small pieces, and each waits for the acknowledgment of the one before."""
        if self._stream is None or not hasattr(socket, "TCP_QUICKACK"):
            return
        with _connection(self._stream) as connection:
            if connection.family in (socket.AF_INET, socket.AF_INET6):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def require_whole(self) -> None:
        """Require the end of the rows. Errors: `PublishError` if they have stopped without it."""
        if self._stream is not None and _has_ended(self._stream):
            raise PublishError(
                "Spark closed the connection before the last row: the task was canceled, or what"
                " it reads from has failed; its files are deleted"
            )

    def require_listener(self) -> None:
        """Require that Spark waits for the task.
        Errors: `PublishError` if it has given the task up."""
        if self._stream is not None and _is_closed(self._stream):
            raise PublishError("Spark has given the task up: its files are deleted")


def _has_descriptor(stream: TaskStream) -> bool:
    """Return whether a stream has a descriptor:
    not in a worker without Spark's daemon, whose stream reads and writes."""
    try:
        stream.fileno()
    except (OSError, ValueError):
        return False
    return True


def _connection(stream: TaskStream) -> socket.socket:
    """Return the stream's socket under another descriptor, which may be closed."""
    return socket.socket(fileno=os.dup(stream.fileno()))


def _has_ended(stream: TaskStream) -> bool:
    """Return whether the stream has ended. Bytes are peeked at, and stay to be read."""
    try:
        readable, _, _ = select.select([stream], [], [], 0)
        return bool(readable) and not stream.peek(1)
    except ConnectionError:
        return True


def _is_closed(stream: TaskStream) -> bool:
    """Return whether the other side has closed the connection, as far as it can be seen without
    reading what it has sent before.
    """
    with _connection(stream) as connection:
        try:
            return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True


@contextmanager
def running_task() -> Iterator[TaskInput]:
    """Yield the input of the task that calls. Each task that writes files begins with this: inside,
    a signal that ends the worker deletes the open files first (`ending_in_order`)."""
    begin_call()
    with ending_in_order():
        yield TaskInput.of_running_task()


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Raise `SystemExit` inside on a signal that ends the worker, so that open files are deleted.
    SIGKILL cannot be heard.
    """

    def end(number: int, _: FrameType | None) -> None:
        for each in _ENDINGS:
            signal.signal(each, signal.SIG_IGN)  # the deletion is under way
        sys.exit(128 + number)

    with handled_signals(_ENDINGS, end):
        yield


@contextmanager
def handled_signals(
    numbers: Iterable[int], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    """Handle signals inside, where this is the main thread: no other one hears them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former or signal.SIG_DFL)
