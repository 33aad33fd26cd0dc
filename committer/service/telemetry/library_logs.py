"""Turns libraries' log records and Python's warnings into log events, where the log is JSON. For
people they stay as they are.
"""

from __future__ import annotations

import logging

from committer.service.telemetry.json_stderr import emit


class LibraryLogs(logging.Handler):
    """Makes each record of the standard library's logging one event."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception as error:  # noqa: BLE001  # a library's wrong format is no fault of ours
            message = f"{record.msg!r} ({type(error).__name__} while it was formatted)"
        fields: dict[str, object] = {"logger": record.name, "message": message}
        if record.exc_info and record.exc_info[0] is not None:
            fields["exception"] = logging.Formatter().formatException(record.exc_info)
        emit(record.levelname.lower(), "library.logged", **fields)


def take_over_logging() -> None:
    """Turn warnings and errors of libraries into events, asyncio's among them."""
    root = logging.getLogger()
    if any(isinstance(handler, LibraryLogs) for handler in root.handlers):
        return
    root.handlers[:] = [LibraryLogs(logging.WARNING)]
    logging.captureWarnings(capture=True)
