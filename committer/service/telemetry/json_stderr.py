"""Every line on stderr as one JSON object: also what libraries, warnings and Python itself write.

Light, because it is there before anything else is imported. Our own events come from `log`; what is
written by other means is wrapped here. Only the interpreter's last words (a fatal error in C) and
what other programs write to the same file pass by.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO, TypeAlias

FORMAT_VARIABLE = "FRAZIL_SERVICE__LOG_FORMAT"

_Error: TypeAlias = BaseException | None


class JsonStderr(io.TextIOBase):
    """A text stream that makes each line one event. `inner` is where our own events go."""

    def __init__(self, inner: TextIO) -> None:
        self.inner = inner
        self._lock = threading.Lock()
        self._begun = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute there
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]  # as above
        return "backslashreplace"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.inner.fileno()

    def isatty(self) -> bool:
        return False

    def flush(self) -> None:
        self.inner.flush()

    def write(self, text: str, /) -> int:
        with self._lock:
            *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._wrap(line)
        return len(text)

    def finish(self) -> None:
        """Write a line that has no end yet."""
        with self._lock:
            line, self._begun = self._begun, ""
        self._wrap(line)

    def emit(self, level: str, event: str, fields: Mapping[str, object]) -> None:
        """Write one event."""
        # There is no world yet, and no decision rests on it.
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")  # noqa: TID251
        said = {**fields, "event": event, "level": level, "timestamp": now}
        self.inner.write(json.dumps(said, default=repr) + "\n")
        self.inner.flush()

    def _wrap(self, line: str) -> None:
        if line.strip():
            self.emit("warning", "stderr.written", {"message": line})


def is_asked_for() -> bool:
    """Return whether the environment asks for JSON; a settings file is read later."""
    return os.environ.get(FORMAT_VARIABLE, "").strip().lower() == "json"


def speak_json() -> JsonStderr:
    """Make stderr JSON for the rest of the process. Again: the same."""
    if isinstance(sys.stderr, JsonStderr):
        return sys.stderr
    stream = JsonStderr(sys.stderr)
    sys.stderr = stream
    sys.excepthook = _process_crashed
    sys.unraisablehook = _unraisable
    threading.excepthook = _thread_crashed
    return stream


def emit(level: str, event: str, **fields: object) -> None:
    """Write one event to a stderr that is JSON."""
    speak_json().emit(level, event, fields)


def end_speaking() -> None:
    """Leave no half line behind."""
    if isinstance(sys.stderr, JsonStderr):
        sys.stderr.finish()


def _process_crashed(kind: type[BaseException], error: _Error, trace: TracebackType | None) -> None:
    emit("critical", "process.crashed", exception=_text(kind, error, trace))


def _thread_crashed(crash: threading.ExceptHookArgs) -> None:
    name = crash.thread.name if crash.thread else None
    trace = _text(crash.exc_type, crash.exc_value, crash.exc_traceback)
    emit("error", "thread.crashed", thread=name, exception=trace)


def _unraisable(crash: sys.UnraisableHookArgs) -> None:
    trace = _text(crash.exc_type, crash.exc_value, crash.exc_traceback)
    emit("error", "process.unraisable", at=repr(crash.object)[:200], exception=trace)


def _text(kind: type[BaseException] | None, error: _Error, trace: TracebackType | None) -> str:
    return "".join(traceback.format_exception(kind, error, trace))
