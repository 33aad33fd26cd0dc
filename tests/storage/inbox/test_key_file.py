"""The file of keys: read again while the process runs, and kept while it cannot be."""

from __future__ import annotations

import pytest

from committer.errors import SettingsError
from committer.ports.storage import NewObject
from committer.storage.inbox.key_file import KeyFile
from tests.support.builders.signing import NEW, OLD, print_keys
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_storage import MemoryStorage

LOCATION = "memory:/secrets/keys.toml"


async def replace(storage: MemoryStorage, content: bytes) -> None:
    await storage.delete((LOCATION,))
    await storage.create((NewObject(LOCATION, content),))


async def test_keys_are_read_again_once_they_are_older_than_asked() -> None:
    storage, world = MemoryStorage(), ManualWorld()
    file = KeyFile(storage, LOCATION, world)
    await replace(storage, print_keys(OLD))
    assert list(await file.keys(age_s_max=10)) == [OLD.key_id]
    await replace(storage, print_keys(OLD, NEW))
    assert list(await file.keys(age_s_max=10)) == [OLD.key_id]
    await world.sleep(10)
    assert list(await file.keys(age_s_max=10)) == [OLD.key_id, NEW.key_id]


@pytest.mark.parametrize("content", [None, b"keys = 5"])
async def test_known_keys_stay_while_the_file_cannot_be_read(content: bytes | None) -> None:
    storage, world = MemoryStorage(), ManualWorld()
    file = KeyFile(storage, LOCATION, world)
    await replace(storage, print_keys(OLD))
    await file.read()
    await storage.delete((LOCATION,))
    if content is not None:
        await replace(storage, content)
    await world.sleep(10)
    assert list(await file.keys(age_s_max=10)) == [OLD.key_id]


async def test_without_any_key_a_file_that_cannot_be_read_is_an_error() -> None:
    file = KeyFile(MemoryStorage(), LOCATION, ManualWorld())
    with pytest.raises(SettingsError, match=r"`security.keys`: `memory:/secrets.*does not exist"):
        await file.keys(age_s_max=10)
