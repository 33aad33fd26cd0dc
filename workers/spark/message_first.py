"""Puts an error's message above its traceback. Spark shows the text of a worker's exception, whose
message would be the last line, below the frames of the JVM.

Python prints the cause of an exception first, and a cause without a traceback is its message only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from committer.errors import FrazilError


class _MessageFirst(RuntimeError):
    """An exception that keeps its cause: Spark removes it before it prints a simplified traceback
    (`pyspark.util.handle_worker_exception`).
    """

    def __init__(self, error: FrazilError) -> None:
        super().__init__("frazil: the first line says what is wrong")
        self._error = error

    @property
    def __cause__(self) -> BaseException:
        return self._error

    @__cause__.setter
    def __cause__(self, _: BaseException | None) -> None:
        pass


@contextmanager
def message_first() -> Iterator[None]:
    """Raise an error of Frazil so that its message comes first, and its traceback after it."""
    try:
        yield
    except FrazilError as error:
        frames = error.__traceback__
        if isinstance(error.__cause__, FrazilError):
            # The message of the outer error contains that of its cause.
            error.__cause__, error.__suppress_context__ = None, True
        raise _MessageFirst(error.with_traceback(None)).with_traceback(frames) from None
