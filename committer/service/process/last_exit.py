"""Ends a process that should have ended, whatever its threads are doing.

A thread that is stuck in a call (a disk that does not answer) cannot be stopped, and Python waits
for it at the exit. Nothing is lost by an end at any moment: what was not finished is found again.
"""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections.abc import Callable

from committer.service.telemetry.log import log
from committer.service.telemetry.log_stream import drain_log

CODE = 1
# Time to log the end. After it, `faulthandler` ends the process without the interpreter.
_SAYING_S = 3.0


def end_by(delay_s: float, before: Callable[[], None] = lambda: None) -> None:
    """End the process after so long, if it is still there. Of several calls the earliest counts.
    `before` is called first, and must not wait. May be called by any thread.
    """
    global _deadline_s  # a process ends once
    deadline_s = time.monotonic() + delay_s  # noqa: TID251  # there may be no loop any more
    with _lock:
        if deadline_s >= _deadline_s:
            return
        _deadline_s = deadline_s
        # A thread of the system does it: it needs neither the interpreter nor a reader of the log.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        faulthandler.dump_traceback_later(delay_s + _SAYING_S, exit=True, file=nowhere)
    threading.Thread(target=_end, args=(delay_s, before), name="last-exit", daemon=True).start()


_lock = threading.Lock()
_deadline_s = float("inf")


def _end(delay_s: float, before: Callable[[], None]) -> None:
    threading.Event().wait(delay_s)
    before()
    log.error("service.end_forced", after_s=delay_s, threads=_stuck_threads())
    drain_log()
    os._exit(CODE)


def _stuck_threads() -> list[str]:
    """Return the names of the threads that the process waits for: always the main thread."""
    return [thread.name for thread in threading.enumerate() if not thread.daemon]
