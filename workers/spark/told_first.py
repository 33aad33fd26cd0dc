"""Puts an error's sentence above its traceback: Spark shows the text of a worker's exception, whose
sentence would be its last line, below that of the JVM's own frames.

Python prints the cause of an exception first, and a cause without a traceback is one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from committer.errors import FrazilError


class _ToldFirst(RuntimeError):
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
def told_first() -> Iterator[None]:
    """Raise an error of Frazil so that its sentence comes first, and where it was raised behind."""
    try:
        yield
    except FrazilError as error:
        frames = error.__traceback__
        if isinstance(error.__cause__, FrazilError):
            # One of ours says all of another that it was made of.
            error.__cause__, error.__suppress_context__ = None, True
        raise _ToldFirst(error.with_traceback(None)).with_traceback(frames) from None
