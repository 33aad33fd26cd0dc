"""Conditions of single objects: the first ones by name, of many the others by their number."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from committer.errors import reason_of
from committer.service.telemetry.health import Component, Health

NAMED_MAX = 8


@dataclass(slots=True)
class ObjectFault:
    """An object whose calls fail. `since_s` is by the event loop's clock."""

    cause: str
    since_ms: int
    since_s: float
    tries: int = 0

    @property
    def text(self) -> str:
        since = datetime.fromtimestamp(self.since_ms / 1000, UTC).isoformat(timespec="seconds")
        return f"since {since}, {self.tries} tries: {self.cause}"


class ObjectConditions(Collection[str]):
    """The objects of one kind that fail, each a condition until it is `cleared`.

    `kind`: what one of them is called, before its name (`unread inbox object`).
    """

    def __init__(self, health: Health, kind: str) -> None:
        self._health = health
        self._kind = kind
        self._faults: dict[str, ObjectFault] = {}
        self._named: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._faults

    def __iter__(self) -> Iterator[str]:
        return iter(self._faults)

    def __len__(self) -> int:
        return len(self._faults)

    def find(self, name: str) -> ObjectFault | None:
        """Return an object's fault; None if it has none."""
        return self._faults.get(name)

    def failed(self, name: str, error: Exception) -> ObjectFault:
        """Note that a call for an object has failed; the first try of its fault is news."""
        world = self._health.world
        fault = self._faults.get(name)
        if fault is None:
            fault = ObjectFault("", world.now_ms(), world.monotonic_s())
            self._faults[name] = fault
        fault.cause = reason_of(error)
        fault.tries += 1
        if name in self._named or len(self._named) < NAMED_MAX:
            self._show(name)
        self._show_others()
        return fault

    def cleared(self, name: str) -> bool:
        """Note that an object is well, or gone. Return whether it had a fault."""
        if self._faults.pop(name, None) is None:
            return False
        if name in self._named:
            self._named.discard(name)
            self._health.healthy(self._component(name))
            unnamed = next((one for one in self._faults if one not in self._named), None)
            if unnamed is not None:
                self._show(unnamed)
        self._show_others()
        return True

    def _show(self, name: str) -> None:
        self._named.add(name)
        self._health.degraded(self._component(name), self._faults[name].text)

    def _show_others(self) -> None:
        others = len(self._faults) - len(self._named)
        if others:
            self._health.degraded(f"{self._kind}s", f"{others} more than those that are named")
        else:
            self._health.healthy(f"{self._kind}s")

    def _component(self, name: str) -> Component:
        shown = name if name.isprintable() else ascii(name)[1:-1]
        return Component(f"{self._kind} {shown}", kind=self._kind)
