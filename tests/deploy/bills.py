"""Counts what a storage is paid for: a call, an object created, a thousand objects deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil

# As S3 counts: what one call of the port is in the end.
OBJECTS_A_DELETE = 1_000


class Bill:
    """The meter of a `InstrumentedStorage`. `paid` counts by kind: put, get, list, delete."""

    def __init__(self) -> None:
        self.paid: Counter[str] = Counter()

    @contextmanager
    def timed(self, call: str, location: str = "") -> Iterator[None]:
        if call in ("head", "list"):
            self.paid["get" if call == "head" else call] += 1
        yield

    def moved(self, call: str, objects: int, size_bytes: int) -> None:
        match call:
            case "create" | "replace":
                self.paid["put"] += objects
            case "get":
                self.paid["get"] += 1
            case "delete":
                self.paid["delete"] += ceil(objects / OBJECTS_A_DELETE)
            case unknown:
                raise AssertionError(f"the bill does not know {unknown}")
