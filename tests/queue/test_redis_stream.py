"""The Redis queue beyond the port: lost answers, refusals, keys, rubbish."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from committer.errors import (
    AccessError,
    QueueKeyTakenError,
    QueueUnavailableError,
    SettingsError,
)
from committer.ports.leases import Renewal
from committer.ports.queue import QueueDepth
from committer.queue.entry_fields import RECEIPTS_S_MAX
from committer.queue.redis_keys import shard_key
from committer.queue.redis_stream import RedisQueue
from committer.request.receipt_model import Receipt, ReceiptState
from tests.support.faults.fault_proxy import Fault, FaultProxy
from tests.support.servers.queue_servers import (
    IDENTITY,
    REDIS_KINDS,
    RedisHarness,
    doorbell,
    numbers,
)

EVER_S = 600.0  # never waited for: something wakes the call, or the test takes too long
pytestmark = pytest.mark.parametrize("running", REDIS_KINDS, indirect=True)
KEY_7 = f"{{frazil:{IDENTITY}:07}}"
RECEIPT = Receipt("p", 1, "a", ReceiptState.DURABLE)


@pytest.fixture
async def proxy(harness: RedisHarness) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(harness.socket) as proxy:
        yield proxy


def through(proxy: FaultProxy, harness: RedisHarness, *, answer_s_max: float = 5.0) -> RedisQueue:
    return harness.queue(url=f"redis://{proxy.host}:{proxy.port}", answer_s_max=answer_s_max)


async def take(queue: RedisQueue) -> list[int]:
    return seen(await queue.read(count_max=100, wait_s=0))


def seen(deliveries: object) -> list[int]:
    assert isinstance(deliveries, list)
    return numbers([delivery.doorbell for delivery in deliveries])


# --- Lost answers --------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.CUT_ANSWER, Fault.CUT_REQUEST])
async def test_an_announcement_whose_answer_was_lost_is_not_resent_by_itself_and_may_be_repeated(
    harness: RedisHarness, proxy: FaultProxy, fault: Fault
) -> None:
    queue = through(proxy, harness)
    await queue.announce([doorbell(0)])
    proxy.spoil(b"XADD", fault)
    with pytest.raises(QueueUnavailableError):
        await queue.announce([doorbell(1)])
    arrived = [1] if fault is Fault.CUT_ANSWER else []
    assert (await queue.depth()).waiting == 1 + len(arrived)
    await queue.announce([doorbell(1)])
    assert await take(queue) == sorted([0, *arrived, 1])


@pytest.mark.parametrize("command", [b"XREADGROUP", b"XPENDING", b"XCLAIM", b"XGROUP"])
async def test_doorbells_whose_delivery_was_lost_come_with_the_next_read(
    harness: RedisHarness, proxy: FaultProxy, command: bytes
) -> None:
    await harness.queue().announce([doorbell(number) for number in range(3)])
    if command == b"XCLAIM":
        await take(harness.queue())  # a consumer of our name held them and died
    queue = through(proxy, harness)
    proxy.spoil(command, Fault.CUT_ANSWER)
    with pytest.raises(QueueUnavailableError):
        await take(queue)
    await harness.queue().announce([doorbell(3)])
    assert sorted(await take(queue) + await take(queue)) == [0, 1, 2, 3]
    assert await take(queue) == []


async def test_a_canceled_read_whose_answer_is_on_its_way_loses_nothing(
    harness: RedisHarness, proxy: FaultProxy
) -> None:
    queue = through(proxy, harness)
    assert await take(queue) == []
    await harness.queue().announce([doorbell(1)])
    held = proxy.spoil(b"XREADGROUP", Fault.HOLD_ANSWER)
    reading = asyncio.create_task(queue.read(count_max=1, wait_s=EVER_S))
    await held.wait()
    reading.cancel()
    with suppress(asyncio.CancelledError):
        await reading
    held.release()
    assert await take(queue) == [1]
    assert await take(queue) == []


@pytest.mark.parametrize("command", [b"XPENDING", b"XREADGROUP"])
async def test_a_shard_may_be_let_go_while_it_is_read_and_comes_whole_when_it_is_read_again(
    harness: RedisHarness, proxy: FaultProxy, command: bytes
) -> None:
    queue = through(proxy, harness)
    await harness.queue().announce([doorbell(1, shard=1), doorbell(2, shard=2)])
    held = proxy.spoil(command, Fault.HOLD_ANSWER)
    reading = asyncio.create_task(queue.read(count_max=9, wait_s=EVER_S, shards=(1, 2)))
    await held.wait()
    queue.release_shards((1,))
    held.release()
    assert 2 in seen(await reading)
    assert seen(await queue.read(count_max=9, wait_s=0, shards=(1, 2))) == [1]


@pytest.mark.parametrize("command", [b"XAUTOCLAIM", b"XCLAIM"])
async def test_doorbells_whose_take_over_was_lost_come_with_the_next_read(
    harness: RedisHarness, proxy: FaultProxy, command: bytes
) -> None:
    dead = harness.queue("dead")
    await dead.announce([doorbell(1)])
    await take(dead)
    queue = through(proxy, harness)
    assert await take(queue) == []
    proxy.spoil(command, Fault.CUT_ANSWER)
    with pytest.raises(QueueUnavailableError):
        await queue.reclaim(idle_s=0)
    assert await take(queue) == [1]


@pytest.mark.parametrize("fault", [Fault.CUT_ANSWER, Fault.CUT_REQUEST])
async def test_doorbells_whose_acknowledgment_failed_are_delivered_again_or_gone(
    harness: RedisHarness, proxy: FaultProxy, fault: Fault
) -> None:
    queue = through(proxy, harness)
    await queue.announce([doorbell(1)])
    (delivery,) = await queue.read(count_max=1, wait_s=0)
    assert await take(queue) == []
    proxy.spoil(b"EVAL", fault)
    with pytest.raises(QueueUnavailableError):
        await queue.acknowledge([delivery.token])
    assert await take(queue) == ([1] if fault is Fault.CUT_REQUEST else [])
    await queue.acknowledge([delivery.token])
    assert await queue.depth() == QueueDepth(waiting=0, pending=0)


async def test_a_failing_acknowledgment_during_a_blocked_read_is_not_forgotten(
    harness: RedisHarness, proxy: FaultProxy
) -> None:
    queue = through(proxy, harness)
    await queue.announce([doorbell(1)])
    (delivery,) = await queue.read(count_max=1, wait_s=0)
    assert await take(queue) == []
    reading = asyncio.create_task(queue.read(count_max=1, wait_s=EVER_S))
    await harness.until_waiting(reading)
    proxy.spoil(b"EVAL", Fault.CUT_REQUEST)
    with pytest.raises(QueueUnavailableError):
        await queue.acknowledge([delivery.token])
    await harness.queue().announce([doorbell(2)])
    assert seen(await reading) == [2]
    assert await take(queue) == [1]


async def test_a_server_that_never_answers_is_an_outage_in_bounded_time(
    harness: RedisHarness, proxy: FaultProxy
) -> None:
    queue = through(proxy, harness, answer_s_max=0.05)
    await queue.depth()
    calls: dict[bytes, Callable[[], Awaitable[Any]]] = {
        b"XADD": lambda: queue.announce([doorbell(1)]),
        b"XREADGROUP": lambda: queue.read(count_max=1, wait_s=0.01),
        b"XREAD": lambda: queue.wait_for_receipts("driver", wait_s=0.01),
    }
    for command, call in calls.items():
        proxy.spoil(command, Fault.HOLD_ANSWER)
        with pytest.raises(QueueUnavailableError):
            await call()


async def test_answers_of_a_canceled_call_never_reach_another(
    harness: RedisHarness, proxy: FaultProxy
) -> None:
    queue = through(proxy, harness)
    held = proxy.spoil(b"XADD", Fault.HOLD_ANSWER)
    announcing = asyncio.create_task(queue.announce([doorbell(1)]))
    await held.wait()
    announcing.cancel()
    with suppress(asyncio.CancelledError):
        await announcing
    held.release()
    for _ in range(3):
        assert await queue.depth() == QueueDepth(waiting=1, pending=0)


# --- Refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl", "allkeys-random"])
async def test_a_server_that_may_evict_is_refused_with_the_line_to_set(
    harness: RedisHarness, policy: str
) -> None:
    await harness.redis.config_set("maxmemory-policy", policy)
    try:
        with pytest.raises(SettingsError, match=f"{policy}.*CONFIG SET maxmemory-policy noevict"):
            await harness.queue().probe()
    finally:
        await harness.redis.config_set("maxmemory-policy", "noeviction")


async def test_missing_and_wrong_passwords_are_access_errors_without_the_password(
    harness: RedisHarness,
) -> None:
    await harness.redis.config_set("requirepass", "right-secret")
    try:
        for secret in ("", ":wrong-secret@"):
            queue = harness.queue(url=f"unix://{secret}{harness.socket}")
            for call in (queue.probe(), queue.announce([doorbell(1)])):
                with pytest.raises(AccessError) as caught:
                    await call
                assert "secret" not in str(caught.value)
        await harness.queue(url=f"unix://:right-secret@{harness.socket}").probe()
    finally:
        await harness.redis.config_set("requirepass", "")


async def test_a_user_who_may_not_read_gets_an_access_error(harness: RedisHarness) -> None:
    await harness.redis.execute_command(
        "ACL", "SETUSER", "p", "on", ">x", "~*", "+xadd", "+xlen", "+client"
    )
    queue = harness.queue(url=f"unix://p:x@{harness.socket}")
    await queue.announce([doorbell(1)])
    with pytest.raises(AccessError, match="permission"):
        await take(queue)
    await harness.redis.execute_command("ACL", "DELUSER", "p")


async def test_a_full_server_is_an_outage_for_writers_while_readers_drain_it(
    harness: RedisHarness,
) -> None:
    await harness.queue().read(count_max=1, wait_s=0)
    queue = harness.queue("just started")
    await queue.announce([doorbell(1)])
    await harness.redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(QueueUnavailableError, match="memory"):
            await queue.announce([doorbell(2)])
        (delivery,) = await queue.read(count_max=1, wait_s=0)
        await queue.acknowledge([delivery.token])
    finally:
        await harness.redis.config_set("maxmemory", 0)
    assert await queue.depth() == QueueDepth(waiting=0, pending=0)


async def test_a_full_server_keeps_the_members_that_drain_it(harness: RedisHarness) -> None:
    await harness.redis.config_set("maxmemory", 1)
    try:
        one = harness.leases("one")
        seen = await one.renew(Renewal(30.0, is_new=True, claim=frozenset({1})))
        assert list(seen.leases) == [1]
        assert (await one.renew(Renewal(30.0, release=frozenset({1})))).leases == {}
    finally:
        await harness.redis.config_set("maxmemory", 0)


# --- Keys and entries ----------------------------------------------------------------------------


async def test_keys_and_fields_are_the_documented_ones(harness: RedisHarness) -> None:
    queue = harness.queue()
    await queue.announce([doorbell(7, content=None, reply_to=None)])
    await queue.reply([("driver", RECEIPT)])
    keys = sorted(await harness.redis.keys())
    assert keys[0] == KEY_7.encode()
    assert keys[1].startswith(f"{{frazil:{IDENTITY}:".encode())
    assert keys[1].endswith(b"}:receipts:driver")
    assert 0 < await harness.redis.ttl(keys[1]) <= RECEIPTS_S_MAX
    ((_, fields),) = await harness.redis.xrange(KEY_7)
    assert sorted(fields) == [b"digest", b"inbox-key", b"table-uuid"]
    await take(queue)
    streams = [key for key in await harness.redis.keys() if b"receipts" not in key]
    assert sorted(streams) == [shard_key(IDENTITY, shard).encode() for shard in range(64)]
    assert (await harness.redis.xinfo_groups(shard_key(IDENTITY, 0)))[0]["name"] == b"frazil"


async def test_rubbish_in_a_stream_is_dropped_and_counted(harness: RedisHarness) -> None:
    queue = harness.queue()
    await harness.redis.xadd(shard_key(IDENTITY, 1), {"a": "b"})
    await queue.announce([doorbell(1)])
    rubbish = {"table-uuid": b"\xff", "inbox-key": "", "digest": ""}
    await harness.redis.xadd(shard_key(IDENTITY, 1), rubbish)
    assert await take(queue) == [1]
    assert queue.malformed == 2
    assert await queue.depth() == QueueDepth(waiting=1, pending=1)


async def test_a_pending_doorbell_that_was_deleted_is_counted_as_lost(
    harness: RedisHarness,
) -> None:
    dead = harness.queue("dead")
    await dead.announce([doorbell(1, shard=1), doorbell(2, shard=1), doorbell(3)])
    await take(dead)
    await harness.redis.xtrim(shard_key(IDENTITY, 1), maxlen=1, approximate=False)
    other = harness.queue("other")
    assert seen(await other.reclaim(idle_s=0)) == [2, 3]
    assert other.lost == 1
    await harness.redis.delete(shard_key(IDENTITY, 3))
    await harness.redis.xtrim(shard_key(IDENTITY, 1), maxlen=0, approximate=False)
    again = harness.queue("other")
    assert await take(again) == []
    assert again.lost == 1
    assert await again.depth() == QueueDepth(waiting=0, pending=0)


async def test_one_missing_stream_does_not_stop_the_others(harness: RedisHarness) -> None:
    queue = harness.queue()
    assert await take(queue) == []
    await queue.announce([doorbell(1), doorbell(2)])
    await harness.redis.delete(shard_key(IDENTITY, 9))
    assert await take(queue) == [1, 2]
    await harness.redis.xgroup_destroy(shard_key(IDENTITY, 1), "frazil")
    assert await take(queue) == [1], "a new group starts at the beginning"


async def test_blocked_reads_do_not_delay_commands(harness: RedisHarness) -> None:
    queue = harness.queue()
    blocked = [
        asyncio.create_task(queue.wait_for_receipts(f"driver-{number}", wait_s=EVER_S))
        for number in range(40)
    ]
    await harness.until_waiting(*blocked)
    await queue.announce([doorbell(1)])
    assert await take(queue) == [1]
    await queue.reply([(f"driver-{number}", RECEIPT) for number in range(40)])
    assert await asyncio.gather(*blocked) == [[RECEIPT]] * 40


async def test_two_reads_at_once_share_the_doorbells(harness: RedisHarness) -> None:
    queue = harness.queue()
    await queue.announce([doorbell(number) for number in range(20)])
    both = await asyncio.gather(*(queue.read(count_max=9, wait_s=0) for _ in range(2)))
    assert numbers([each.doorbell for part in both for each in part]) == list(range(20))


# --- Canceled calls -----------------------------------------------------------------------------


async def test_a_call_that_is_canceled_at_any_moment_ends_as_canceled(
    harness: RedisHarness,
) -> None:
    """A consumer whose cancellation got lost in a call would read on for ever, and never stop."""
    queue = harness.queue()
    await queue.depth()  # connected
    for steps in range(1_000):
        call = asyncio.create_task(queue.depth())
        for _ in range(steps):
            await asyncio.sleep(0)
        if not call.cancel():
            break
        with pytest.raises(asyncio.CancelledError):
            await call
    assert call.done() and steps > 1


# --- Keys that something else has taken ----------------------------------------------------------


@pytest.fixture
def looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("committer.queue.redis_stream._TAKEN_AGAIN_S", 0.0)


@pytest.mark.usefixtures("looked_at_once")
@pytest.mark.parametrize("is_read_before", [False, True])
async def test_a_stream_that_something_else_has_taken_is_named_and_the_others_go_on(
    harness: RedisHarness, is_read_before: bool
) -> None:
    queue, publisher = harness.queue(), harness.queue("publisher")
    if is_read_before:
        await publisher.announce([doorbell(7), doorbell(8)])
        assert await take(queue) == [7, 8]
    await harness.redis.set(KEY_7, "mine")
    said = f"`{re.escape(KEY_7)}` .* holds a string, .*`DEL "
    with pytest.raises(QueueKeyTakenError, match=said):
        await publisher.announce([doorbell(7)])
    await publisher.announce([doorbell(8)])
    assert await take(queue) == [8]
    assert list(queue.taken_keys()) == [KEY_7]
    assert "expected a stream" in queue.taken_keys()[KEY_7]
    assert await queue.reclaim(idle_s=0.0, shards=[7, 9]) == []
    await queue.acknowledge(["07:1-1", "08:1-1"])
    assert (await queue.depth()).waiting == 1 + is_read_before
    await harness.redis.delete(KEY_7)
    await publisher.announce([doorbell(7)])
    assert await take(queue) == [7]
    assert queue.taken_keys() == {}


@pytest.mark.usefixtures("looked_at_once")
async def test_a_read_of_nothing_but_taken_streams_waits_and_comes_back(
    harness: RedisHarness,
) -> None:
    queue = harness.queue()
    await harness.redis.lpush(KEY_7, "mine")
    assert await queue.read(count_max=1, wait_s=0.01, shards=[7]) == []
    assert "holds a list" in queue.taken_keys()[KEY_7]


async def test_a_stream_that_is_taken_during_a_read_ends_the_read_in_no_error(
    harness: RedisHarness,
) -> None:
    queue = harness.queue()
    assert await take(queue) == []
    reading = asyncio.create_task(queue.read(count_max=1, wait_s=EVER_S))
    await harness.until_waiting(reading)
    await harness.redis.set(KEY_7, "mine")
    await harness.queue("publisher").announce([doorbell(8)])
    assert seen(await reading) == [8]


@pytest.mark.usefixtures("looked_at_once")
async def test_a_receipt_whose_key_is_taken_is_dropped_and_the_key_named(
    harness: RedisHarness,
) -> None:
    queue = harness.queue()
    await queue.reply([("p-1", RECEIPT)])
    (key,) = [name.decode() for name in await harness.redis.keys("*receipts*")]
    await harness.redis.set(key, "mine")
    await queue.reply([("p-1", RECEIPT), ("p-2", RECEIPT)])
    assert len(await queue.wait_for_receipts("p-2", wait_s=0.0)) == 1
    with pytest.raises(QueueUnavailableError):
        await queue.wait_for_receipts("p-1", wait_s=0.0)
    await take(queue)
    assert list(queue.taken_keys()) == [key]
    await harness.redis.delete(key)
    await take(queue)
    assert queue.taken_keys() == {}


@pytest.mark.parametrize("name", ["members", "shards", "changes"])
async def test_a_key_of_the_leases_that_is_taken_is_named(harness: RedisHarness, name: str) -> None:
    leases, key = harness.leases(), f"{{frazil:{IDENTITY}:leases}}:{name}"
    await leases.renew(Renewal(30.0, is_new=True, claim=frozenset({1})))
    await harness.redis.set(key, "mine")
    with pytest.raises(QueueKeyTakenError, match=f"`{re.escape(key)}` .* holds a string"):
        await leases.renew(Renewal(30.0, claim=frozenset({2})))
    await harness.redis.delete(key)
    await leases.renew(Renewal(30.0, claim=frozenset({3})))
