"""The process's report of itself: its loop is alive (liveness), and it can do its work (readiness).

Liveness never depends on a server outside: an outage must not become a restart storm. Readiness
depends on what every table needs, never on one table: a rollout waits for readiness, and the
release that repairs a table must not wait for that table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from committer.place_threads import Unanswered
from committer.ports.world import World
from committer.service.telemetry.log import log

Phase = Literal["starting", "running", "draining"]

# Most reads of the inbox fail, whatever its listing says.
INBOX_READS = "inbox reads"
# Every table depends on these. Another degraded component is shown, and the process stays ready.
# The condition of a component is set and cleared by one kind of call: the success of another call
# proves nothing about it.
REQUIRED = frozenset({"catalog", "storage", "inbox", INBOX_READS})
HEARTBEAT_S = 1.0
HEARTBEAT_LATE_S = 30.0


class Component(str):
    """The name of a component, as `/status` and the log have it. `kind`: its label in the metrics,
    of which there are few. `table`: the table that it is part of, a label of its own; empty where
    it is of none.
    """

    __slots__ = ("kind", "table")
    kind: str
    table: str

    def __new__(cls, name: str, *, kind: str, table: str = "") -> Self:
        component = super().__new__(cls, name)
        component.kind, component.table = kind, table
        return component


def labels_of(component: str) -> tuple[str, str]:
    """Return the kind and the table of a component, for the metrics."""
    if isinstance(component, Component):
        return component.kind, component.table
    return component, ""


@dataclass(slots=True)
class Health:
    """The conditions of degraded components, and the event loop's last heartbeat.

    `conditions`: by component, why it is degraded.
    """

    world: World
    conditions: dict[str, str] = field(default_factory=dict)
    _unanswered: set[str] = field(default_factory=set)
    _causes: dict[str, str] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)
    phase: Phase = "starting"
    last_beat_s: float | None = None

    @property
    def shown(self) -> dict[str, str]:
        """The conditions that another one does not explain: if the catalog does not answer, that is
        one condition, and not one of each table.
        """
        return {name: why for name, why in self.conditions.items() if not self._is_explained(name)}

    def _is_explained(self, component: str) -> bool:
        return self._causes.get(component) in self.conditions

    @property
    def is_ready(self) -> bool:
        return self.phase == "running" and not self.unreachable

    @property
    def unreachable(self) -> dict[str, str]:
        """The conditions that make the process unready."""
        return {name: why for name, why in self.conditions.items() if name in REQUIRED}

    @property
    def is_alive(self) -> bool:
        if self.last_beat_s is None:
            return True
        return self.world.monotonic_s() - self.last_beat_s < HEARTBEAT_LATE_S

    def degraded(self, component: str, why: str, *, cause: str | None = None) -> bool:
        """Set a component's condition. `cause`: the component whose condition explains it, if that
        has one. Return True if it is new: the caller then logs it once, not on every retry.
        """
        self.conditions[component] = why
        self._causes.pop(component, None)
        if cause is not None:
            self._causes[component] = cause
        if component in self._reported or self._is_explained(component):
            return False
        self._reported.add(component)
        return True

    def healthy(self, component: str) -> bool:
        """Clear a component's condition. Return True if it had one that was new at some time."""
        self.conditions.pop(component, None)
        self._causes.pop(component, None)
        was_reported = component in self._reported
        self._reported.discard(component)
        return was_reported

    def unavailable(self, component: str, error: Exception, **fields: str) -> None:
        """Set a component's condition to an error, and log it if it is new."""
        if self.degraded(component, str(error)):
            log.warning(f"{component}.unavailable", error=str(error), **fields)

    def recovered(self, component: str) -> bool:
        """Clear a component's condition, and log it if there was one. Return whether there was."""
        if not self.healthy(component):
            return False
        log.warning(f"{component}.recovered")
        return True

    def show_unanswered(self, places: Sequence[Unanswered]) -> None:
        """Set a condition for each place that does not answer, and clear those of all others."""
        for place in self._unanswered - {one.place for one in places}:
            self._unanswered.discard(place)
            if self.healthy(place):
                log.warning("place.recovered", place=place)
        for one in places:
            self._unanswered.add(one.place)
            if self.degraded(one.place, str(one)):
                log.warning(
                    "place.unanswered",
                    place=one.place,
                    what=one.what,
                    hung=one.hung,
                    calls=one.calls,
                )

    async def beat(self, report_late_s: Callable[[float], None]) -> None:
        """Beat until canceled, and report how much too late each beat was."""
        while True:
            self.last_beat_s = self.world.monotonic_s()
            await self.world.sleep(HEARTBEAT_S)
            report_late_s(max(0.0, self.world.monotonic_s() - self.last_beat_s - HEARTBEAT_S))
