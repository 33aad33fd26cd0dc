"""Puts an error's message above its traceback. Spark shows the text of a worker's exception, whose
message would be the last line, below the frames of the JVM.

Python prints the cause of an exception first, and a cause without a traceback is its message only.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from committer.errors import FrazilError

_HINT = "frazil: the first line says what is wrong"


class _MessageFirst(RuntimeError):
    """An exception that keeps its cause: Spark removes it before it prints a simplified traceback
    (`pyspark.util.handle_worker_exception`).
    """

    def __init__(self, error: FrazilError, origin: str) -> None:
        super().__init__(f"{_HINT}; it was raised for:\n{origin}" if origin else _HINT)
        self._error = error

    @property
    def __cause__(self) -> BaseException:
        return self._error

    @__cause__.setter
    def __cause__(self, _: BaseException | None) -> None:
        pass


@contextmanager
def message_first() -> Iterator[None]:
    """Raise an error of Frazil so that its message comes first, its traceback after it, and last
    the error of others that it was raised for, such as that of a library."""
    try:
        yield
    except FrazilError as error:
        frames, origin = error.__traceback__, _origin(error)
        # Python would print the cause above the message.
        error.__cause__, error.__suppress_context__ = None, True
        raise _MessageFirst(error.with_traceback(None), origin).with_traceback(frames) from None


def _origin(error: BaseException) -> str:
    """Print the error of others below an error of Frazil; nothing where there is none.

    The message of an error of Frazil contains that of another one which it was raised for.
    """
    below: BaseException | None = error
    while isinstance(below, FrazilError):
        below = below.__cause__ or (None if below.__suppress_context__ else below.__context__)
    return "" if below is None else "".join(traceback.format_exception(below)).rstrip()
