"""The trace of a run, in short lines, and its hash: equal runs have equal hashes."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

LINES_MAX = 400_000
_HASHED_AT_ONCE = 1_000


class Trace:
    """One line for each effect, fault and event. `notes` are for the reader and are not hashed."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self.lines: list[str] = []
        self._unhashed: list[str] = []
        self._hash = blake2b(digest_size=16)

    def add(self, who: str, what: str, detail: str = "") -> None:
        """Record an act or a fault of a process."""
        line = f"{self._now_s():9.3f} {who:<12} {what:<26} {detail}"
        unhashed, lines = self._unhashed, self.lines
        unhashed.append(line)
        if len(unhashed) == _HASHED_AT_ONCE:
            self._hash_lines()
        if len(lines) < LINES_MAX:
            lines.append(line)

    def note(self, who: str, text: str) -> None:
        """Show a line in the log without hashing it: it repeats what is recorded already."""
        if len(self.lines) < LINES_MAX:
            self.lines.append(f"{self._now_s():9.3f} {who:<12} · {text}")

    @property
    def digest(self) -> str:
        """The hash of all lines so far, also of those that are not kept."""
        self._hash_lines()
        return self._hash.hexdigest()

    def _hash_lines(self) -> None:
        self._hash.update("".join(self._unhashed).encode())
        self._unhashed.clear()
