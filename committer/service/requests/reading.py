"""Drives a pure search: it yields locations, and receives the objects' bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from committer.errors import NotFoundError
from committer.plan.cleanup.reachability import Reading
from committer.ports.storage import Storage

T = TypeVar("T")


async def answer(reading: Reading[T], storage: Storage) -> T:
    """Return the result of a search.
    All bytes are decoded off the loop: a few kilobytes may hold thousands of entries.
    """

    async def content(location: str) -> bytes | None:
        try:
            return await storage.get(location)
        except NotFoundError:
            return None

    wanted = _step(reading, None)
    while not isinstance(wanted, _Answer):
        contents = await asyncio.gather(*map(content, wanted))
        wanted = await asyncio.to_thread(_step, reading, contents)
    return wanted.value


@dataclass(frozen=True, slots=True)
class _Answer(Generic[T]):
    value: T


def _step(
    reading: Reading[T], contents: Sequence[bytes | None] | None
) -> Sequence[str] | _Answer[T]:
    """Return the next question of a search, or its answer.
    (A thread cannot hand on `StopIteration`.)"""
    try:
        return next(reading) if contents is None else reading.send(contents)
    except StopIteration as stop:
        return _Answer(stop.value)
