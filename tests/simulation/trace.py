"""What happened, in short lines, and a hash of it: equal runs have equal hashes."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

LINES_MAX = 400_000


class Trace:
    """One line for each effect, fault and event. `notes` are for the reader and are not hashed."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self.lines: list[str] = []
        self._hash = blake2b(digest_size=16)

    def add(self, who: str, what: str, detail: str = "") -> None:
        """Note what a process did, or what befell it."""
        line = f"{self._now_s():9.3f} {who:<12} {what:<26} {detail}"
        self._hash.update(line.encode())
        self._keep(line)

    def note(self, who: str, text: str) -> None:
        """Note something that says no more than what is noted already."""
        self._keep(f"{self._now_s():9.3f} {who:<12} · {text}")

    @property
    def digest(self) -> str:
        """The hash of all lines so far, also of those that are not kept."""
        return self._hash.hexdigest()

    def _keep(self, line: str) -> None:
        if len(self.lines) < LINES_MAX:
            self.lines.append(line)
