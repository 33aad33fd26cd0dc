"""The error of a Spark job, in one line."""

from __future__ import annotations

import re

# The last line of a Python traceback.
_TOLD = re.compile(r"[\w.]*(Error|Exception): ")


def task_error(error: Exception) -> str:
    """Return what is wrong in one line: of a task's error the last one of its traceback."""
    text = str(error).partition("JVM stacktrace")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = (line for line in reversed(lines) if _TOLD.match(line))
    return f"{type(error).__name__}: {next(told, lines[0] if lines else '')}"[:1000]
