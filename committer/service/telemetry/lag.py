"""Names the causes for which a durable request is not committed, and keeps the oldest of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

DurableByCause = dict["LagCause", int]
"""Since when the oldest request of each cause has been durable, in ms since 1970."""


class LagCause(StrEnum):
    """Why a durable request is not committed yet.

    `WAITING`: nothing but work is in its way. `HELD`: by a rule, until something else happens: an
    open circuit breaker, a frozen table, a lower epoch of an ordered producer, the other requests
    of a transaction. `UNAVAILABLE`: its table, its inbox object or its manifests cannot be read,
    or the table cannot be committed to.
    """

    WAITING = "waiting"
    HELD = "held"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Delay:
    """Since when a request has been durable, and why it is not committed."""

    durable_ms: int
    cause: LagCause


class OldestRequests:
    """Since when the oldest request of each table and cause has been durable."""

    def __init__(self) -> None:
        self._durable_ms: dict[tuple[str, LagCause], int] = {}

    def __iter__(self) -> Iterator[tuple[str, Delay]]:
        for (table, cause), durable_ms in self._durable_ms.items():
            yield table, Delay(durable_ms, cause)

    def add(self, table: str, delay: Delay) -> None:
        """Note a request of a table, or the oldest of several."""
        key = table, delay.cause
        self._durable_ms[key] = min(self._durable_ms.get(key, delay.durable_ms), delay.durable_ms)


class DelayedKeys:
    """Keys with their delays, by table. Asking for the oldest costs nothing but a `min` each."""

    def __init__(self) -> None:
        self._durable_ms: dict[tuple[str, LagCause], dict[str, int]] = {}

    def find(self, table: str, key: str) -> Delay | None:
        """Return the delay of a key; None if it has none."""
        for cause in LagCause:
            durable_ms = self._durable_ms.get((table, cause), {}).get(key)
            if durable_ms is not None:
                return Delay(durable_ms, cause)
        return None

    def put(self, table: str, key: str, delay: Delay) -> None:
        """Note a key's delay. A key that has one keeps the earlier time."""
        earlier = self.drop(table, key)
        durable_ms = min(earlier.durable_ms, delay.durable_ms) if earlier else delay.durable_ms
        self._durable_ms.setdefault((table, delay.cause), {})[key] = durable_ms

    def drop(self, table: str, key: str) -> Delay | None:
        """Forget a key. Return its delay; None if it has none."""
        delay = self.find(table, key)
        if delay is not None:
            keys = self._durable_ms[table, delay.cause]
            del keys[key]
            if not keys:
                del self._durable_ms[table, delay.cause]
        return delay

    def oldest(self) -> Iterator[tuple[str, Delay]]:
        """Yield the delay of the oldest key of each table and cause."""
        for (table, cause), keys in self._durable_ms.items():
            yield table, Delay(min(keys.values()), cause)
