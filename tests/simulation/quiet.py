"""The service's log of a run: nothing, or notes in the trace of a run that is replayed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from structlog.typing import EventDict, WrappedLogger

from tests.simulation.loop import PROCESS
from tests.simulation.trace import Trace

_NOT_NOTED = frozenset({"exc_info", "level"})


@contextmanager
def logs_noted(trace: Trace, *, is_wanted: bool) -> Iterator[None]:
    """Turn log events into notes where they are wanted, and into nothing where not."""

    def note(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        fields = " ".join(
            f"{name}={value}"
            for name, value in event.items()
            if name != "event" and name not in _NOT_NOTED
        )
        trace.note(PROCESS.get() or "-", f"{event['event']} {fields}"[:200])
        raise structlog.DropEvent

    before, disabled = structlog.get_config(), logging.root.manager.disable
    level = logging.INFO if is_wanted else logging.CRITICAL
    structlog.configure(
        processors=[note],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.ReturnLoggerFactory(),
        cache_logger_on_first_use=False,
    )
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(disabled)
        structlog.configure(**before)
