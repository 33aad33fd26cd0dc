"""A storage before a real adapter that counts calls, so that round trips can be asserted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from committer.errors import StorageUnavailableError
from committer.ports.storage import Storage
from committer.service.telemetry.instrumented_ports import InstrumentedStorage


class CountingStorage(InstrumentedStorage):
    """The `Storage` port around `inner`. `calls` counts by method; `is_away` fails every call.

    Probes are neither counted nor failed.
    """

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner, self)
        self.calls: Counter[str] = Counter()
        self.is_away = False

    @contextmanager
    def timed(self, call: str, location: str = "") -> Iterator[None]:
        if call != "probe":
            self.calls[call] += 1
            if self.is_away:
                raise StorageUnavailableError("the test keeps the storage away")
        yield

    def moved(self, call: str, objects: int, size_bytes: int) -> None:
        """Ignore the objects and bytes: calls are enough."""
