"""Structured logs: stable dotted event names with fields, one canonical line per commit.

Fields never hold column bounds, keys or signatures.
"""

from __future__ import annotations

import logging
import sys
from typing import Literal, TextIO

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from committer.service.telemetry.json_stderr import speak_json
from committer.service.telemetry.library_logs import take_over_logging
from committer.service.telemetry.log_stream import report_dropped

log: FilteringBoundLogger = structlog.get_logger("frazil")


def configure_logs(log_format: Literal["console", "json"], level: str) -> None:
    """Write events to stderr, for people or for machines: then all of stderr is JSON."""
    stream: TextIO = sys.stderr
    if log_format == "json":
        stream = speak_json().inner
        take_over_logging()
    rendered: list[Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if log_format == "json"
        else [_console()]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *rendered,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        # One write for a line: those of several threads stay whole.
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    report_dropped(_dropped)


def _dropped(lines: int) -> None:
    log.warning("log.dropped", lines=lines)


def _console() -> Processor:
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
