"""A storage whose creates lose their answers, or land later, when it is told to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from committer.errors import StorageUnavailableError
from committer.ports.storage import NewObject, Storage
from tests.support.faults.counting_storage import CountingStorage
from tests.support.faults.faulty_catalog import Fault


class FailingCreates(CountingStorage):
    """The `Storage` port around `inner`. `befalls`: the fault of the next create.

    `before_create`, `after_create` and `before_get` act once, in the moment before or after a call.
    """

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.befalls: Fault | None = None
        self.before_create: Callable[[], Awaitable[object]] | None = None
        self.after_create: Callable[[], Awaitable[object]] | None = None
        self.before_get: Callable[[], Awaitable[object]] | None = None
        self._held: list[Sequence[NewObject]] = []

    async def create(self, objects: Sequence[NewObject]) -> None:
        act, self.before_create = self.before_create, None
        if act is not None:
            await act()
        fault, self.befalls = self.befalls, None
        if fault is Fault.LANDS_LATE:
            self._held.append(objects)
        if fault in (None, Fault.LOST_REPLY, Fault.RESENT):
            await super().create(objects)
        if fault is Fault.RESENT:
            await super().create(objects)
        act, self.after_create = self.after_create, None
        if act is not None:
            await act()
        if fault is not None:
            raise StorageUnavailableError("the test lost the answer")

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        act, self.before_get = self.before_get, None
        if act is not None:
            await act()
        return await super().get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )

    async def land_late(self) -> None:
        """Send what was held back; raises `AlreadyExistsError` where it is taken by now."""
        while self._held:
            await self.inner.create(self._held.pop(0))
