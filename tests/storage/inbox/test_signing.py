"""Publishing with a file of keys: what is signed, by which key, and how long it stays good."""

from __future__ import annotations

import pytest

from committer.errors import PublishError, SettingsError
from committer.ports.storage import NewObject
from committer.request.request_format import EncodedRequest, read_request
from committer.request.signature import VALID_MS, SigningKey, parse_keys, verify
from tests.support.builders.signing import NEW, OLD, bound, print_keys
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.workers.publishing import Bench, build_bench
from workers.requests.publisher import PublishPolicy

KEYS = "memory:/secrets/keys.toml"
POLICY = PublishPolicy()


async def put_keys(bench: Bench, *keys: SigningKey) -> None:
    await bench.storage.delete((KEYS,))
    await bench.storage.create((NewObject(KEYS, print_keys(*keys)),))


async def signing_bench(*keys: SigningKey) -> Bench:
    storage = MemoryStorage()
    bench = await build_bench(storage=storage, keys=KEYS)
    await put_keys(bench, *keys)
    return bench


async def published(bench: Bench) -> list[EncodedRequest]:
    contents = [await bench.inbox.get(key) for key in await bench.inbox_keys()]
    return [read_request(content) for content in contents]


async def test_a_published_request_is_signed_by_the_first_key_that_may() -> None:
    keys = (bound(NEW, tables=["sales.*"]), OLD)
    bench = await signing_bench(*keys)
    await bench.publisher.publish(bench.written(), POLICY)
    (sealed,) = await published(bench)
    assert sealed.request.key_id == OLD.key_id
    assert sealed.request.not_after_ms == sealed.request.published_at_ms + VALID_MS
    verify(sealed, parse_keys(print_keys(*keys), "here"))


async def test_a_write_that_no_key_is_for_fails_before_it_is_durable() -> None:
    bench = await signing_bench(bound(OLD, tables=["sales.*"]))
    with pytest.raises(PublishError, match=r"no key .* `security.keys` .* table `db.flights`"):
        await bench.publisher.publish(bench.written(), POLICY)
    assert await published(bench) == []


async def test_a_key_that_is_exchanged_is_used_within_a_minute() -> None:
    bench = await signing_bench(OLD)
    await bench.publisher.publish(bench.written(epoch=0), POLICY)
    await put_keys(bench, NEW, OLD)
    await bench.world.sleep(60)
    await bench.publisher.publish(bench.written(epoch=1, attempt=2), POLICY)
    assert [one.request.key_id for one in await published(bench)] == [OLD.key_id, NEW.key_id]


async def test_a_commit_that_is_repeated_later_and_with_another_key_is_one_publication() -> None:
    bench = await signing_bench(OLD)
    await bench.publisher.publish(bench.written(), POLICY)
    (first,) = await published(bench)
    await put_keys(bench, NEW)
    await bench.world.sleep(60)
    await bench.publisher.publish(bench.written(), POLICY)
    (second,) = await published(bench)
    assert second.content == first.content


async def test_without_its_file_of_keys_nothing_is_published() -> None:
    bench = await signing_bench(OLD)
    await bench.storage.delete((KEYS,))
    with pytest.raises(SettingsError, match="the file of keys does not exist"):
        await bench.publisher.publish(bench.written(), POLICY)
    assert await published(bench) == []
