"""The meaning of a failed condition, for stores that keep a mark of the writer with each object.

This very write may have made its condition fail: its answer was lost and it was sent again, here or
by a proxy. So the object is asked who wrote it, and only another's is "exists already".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from committer.errors import AlreadyExistsError, NotFoundError, StorageUnavailableError


@dataclass(frozen=True, slots=True)
class Marked:
    """The etag of an object that exists, and the mark of the write that made it."""

    etag: str
    mark: str | None


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A write whose condition failed. `etag` was to be replaced; None: nothing was to be there.
    `in_doubt`: an earlier try may have been applied, or may still be."""

    location: str
    etag: str | None
    mark: str
    in_doubt: bool


async def settle_failed_condition(
    write: RefusedWrite, look: Callable[[], Awaitable[Marked]]
) -> str:
    """Return the etag of the current object if this write has made it. `look` asks the store.

    Errors: `AlreadyExistsError` if it is another's; `StorageUnavailableError` where it cannot be
    known; those of `look`, but `NotFoundError`.
    """
    expected = "exists" if write.etag is None else f"is no longer `{write.etag}`"
    lost = AlreadyExistsError(f"`{write.location}` {expected}")
    try:
        found = await look()
    except NotFoundError:
        if not write.in_doubt:
            raise lost from None
        raise StorageUnavailableError(
            f"PUT `{write.location}`: it was perhaps written, and is gone"
        ) from None
    if found.mark == write.mark:
        return found.etag
    if write.etag is not None and write.in_doubt:
        raise StorageUnavailableError(
            f"PUT `{write.location}`: it was perhaps replaced, and has been replaced since"
        )
    raise lost
