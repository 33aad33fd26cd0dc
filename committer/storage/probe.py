"""The proof that a storage enforces its conditions, through the port alone: adapters share it."""

from __future__ import annotations

from committer.errors import AlreadyExistsError, InvariantError, SettingsError
from committer.ports.storage import NewObject, Storage


async def prove_conditions(storage: Storage, location: str) -> None:
    """Try to break each condition at `location`, used by this probe only; delete it afterwards.

    Errors: `SettingsError` naming the condition that was ignored.
    """
    try:
        await storage.create((NewObject(location, b"first"),))
        await _must_fail(storage, location, etag=None)
        await _create_must_fail(storage, location)
        stale = (await storage.head(location)).etag
        await storage.replace(location, b"second", etag=stale)
        await _must_fail(storage, location, etag=stale)
        if await storage.get(location) != b"second":
            raise InvariantError(f"`{location}` does not hold what was written to it last")
    finally:
        await storage.delete((location,))


async def _create_must_fail(storage: Storage, location: str) -> None:
    try:
        await storage.create((NewObject(location, b"other"),))
    except AlreadyExistsError:
        return
    raise _ignored(location, "create only if absent")


async def _must_fail(storage: Storage, location: str, *, etag: str | None) -> None:
    try:
        await storage.replace(location, b"other", etag=etag)
    except AlreadyExistsError:
        return
    condition = "replace only if absent" if etag is None else "replace only if unchanged"
    raise _ignored(location, condition)


def _ignored(location: str, condition: str) -> SettingsError:
    return SettingsError(
        f"the storage of `{location}` ignores the condition `{condition}`:"
        " two committers could overwrite one another, so it cannot be used"
    )
