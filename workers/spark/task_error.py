"""The error of a Spark job: in one line, or as the error of Frazil that made it fail."""

from __future__ import annotations

import re

from committer import errors
from committer.errors import FrazilError

# The last line of a Python traceback.
_TOLD = re.compile(r"[\w.]*(Error|Exception): ")
# The first error of Frazil in a text, up to an empty line.
_OWN = re.compile(r"committer\.errors\.(\w+): (.*?)(?=\n\n|\Z)", re.DOTALL)


def task_error(error: Exception) -> str:
    """Return what is wrong in one line: of a task's error the last one of its traceback."""
    text = str(error).partition("JVM stacktrace")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = (line for line in reversed(lines) if _TOLD.match(line))
    return f"{type(error).__name__}: {next(told, lines[0] if lines else '')}"[:1000]


def own_error(error: Exception) -> FrazilError | None:
    """Return the error of Frazil that made a Spark job fail, in its own words; None for others."""
    own = _OWN.search(str(error))
    kind = getattr(errors, own[1], None) if own else None
    if own is None or not isinstance(kind, type) or not issubclass(kind, FrazilError):
        return None
    return kind(own[2].strip())
