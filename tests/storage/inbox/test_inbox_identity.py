"""The identity of an inbox: the first process makes it, and it stays the same for all after."""

from __future__ import annotations

import asyncio
import re

import pytest

from committer.errors import SettingsError
from committer.ports.storage import NewObject
from committer.real_world import RealWorld
from committer.storage.inbox.inbox_identity import InboxIdentity
from tests.support.memory.memory_storage import MemoryStorage

ROOT = "memory://requests"


def identity_in(storage: MemoryStorage, root: str = ROOT) -> InboxIdentity:
    return InboxIdentity(storage, root, RealWorld())


async def test_looking_for_an_identity_makes_none() -> None:
    storage = MemoryStorage()
    assert await identity_in(storage).find() is None
    assert [found async for found in storage.list(ROOT)] == []


async def test_first_makes_the_identity_and_all_others_get_the_same() -> None:
    storage = MemoryStorage()
    first, second = identity_in(storage), identity_in(storage, f"{ROOT}/")
    made = await asyncio.gather(first.ensure(), second.ensure())
    assert made[0] == made[1] == await identity_in(storage).find()
    assert re.fullmatch("[0-9a-f]{32}", made[0])
    assert await storage.get(first.location) == f"{made[0]}\n".encode()


async def test_two_inboxes_have_two_identities() -> None:
    made = [await identity_in(MemoryStorage()).ensure() for _ in range(2)]
    assert made[0] != made[1], "of one location, on two machines"


async def test_identity_is_read_once() -> None:
    storage = MemoryStorage()
    identity = identity_in(storage)
    made = await identity.ensure()
    await storage.delete((identity.location,))
    assert (await identity.ensure(), await identity.find()) == (made, made)
    assert await identity_in(storage).find() is None


@pytest.mark.parametrize("content", [b"", b"mine\n", b"0" * 33, b"\xff" * 64])
async def test_object_that_is_no_identity_is_named_with_the_remedy(content: bytes) -> None:
    storage = MemoryStorage()
    identity = identity_in(storage)
    await storage.create((NewObject(identity.location, content),))
    for call in (identity.find, identity.ensure):
        with pytest.raises(SettingsError, match=f"`{identity.location}` is no identity .*delete"):
            await call()
