"""The obligations of the port `Queue`, one test each, in memory and on real servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import pytest

from committer.errors import QueueUnavailableError
from committer.ports.queue import AHEAD_MAX, SHARDS, Delivery, Queue, QueueDepth
from committer.queue.entry_fields import INLINE_BYTES_MAX, RECEIPTS_MAX
from committer.request.receipt_model import Receipt, ReceiptState
from tests.support.servers.queue_servers import (
    OTHER_IDENTITY,
    QueueHarness,
    doorbell,
    numbers,
)

EVER_S = 600.0  # never waited for: something wakes the call, or the test takes too long


async def take(queue: Queue, *, wait_s: float = 0.0, count_max: int = 100) -> list[Delivery]:
    return list(await queue.read(count_max=count_max, wait_s=wait_s))


def seen(deliveries: Sequence[Delivery]) -> list[int]:
    return numbers([delivery.doorbell for delivery in deliveries])


def in_turn(deliveries: Sequence[Delivery]) -> list[Delivery]:
    return [delivery for delivery in deliveries if not delivery.is_ahead]


def tokens(deliveries: Sequence[Delivery]) -> list[str]:
    return [delivery.token for delivery in deliveries]


# --- Announcing and reading ----------------------------------------------------------------------


async def test_a_doorbell_arrives_as_it_was_announced(harness: QueueHarness) -> None:
    sent = [doorbell(1), doorbell(2, content=None), doorbell(3, content=b"", reply_to=None)]
    queue = harness.queue()
    await queue.announce(sent)
    deliveries = await take(queue)
    assert [each.doorbell for each in deliveries] == sent
    assert [each.deliveries for each in deliveries] == [1, 1, 1]


async def test_a_large_content_is_not_copied(harness: QueueHarness) -> None:
    queue = harness.queue()
    await queue.announce([doorbell(1, content=b"x" * INLINE_BYTES_MAX)])
    await queue.announce([doorbell(2, content=b"x" * (INLINE_BYTES_MAX + 1))])
    contents = [each.doorbell.content for each in await take(queue)]
    assert contents == [b"x" * INLINE_BYTES_MAX, None]


async def test_an_announcement_may_be_repeated_and_is_delivered_twice(
    harness: QueueHarness,
) -> None:
    queue = harness.queue()
    await queue.announce([doorbell(1)])
    await queue.announce([doorbell(1)])
    assert seen(await take(queue)) == [1, 1]


async def test_each_doorbell_goes_to_one_consumer(harness: QueueHarness) -> None:
    first, second = harness.queue("one"), harness.queue("two")
    await first.announce([doorbell(number) for number in range(200)])
    found: list[Delivery] = []
    while len(found) < 200:
        found += await take(first, count_max=1)
        found += await take(second, count_max=1)
    assert seen(found) == list(range(200))
    assert len(set(tokens(found))) == 200


async def test_a_read_takes_so_many_of_each_shard(harness: QueueHarness) -> None:
    queue = harness.queue()
    await queue.announce([doorbell(number, shard=number % 2) for number in range(10)])
    assert seen(await take(queue, count_max=3)) == [0, 1, 2, 3, 4, 5]
    assert seen(await take(queue, count_max=3)) == [6, 7, 8, 9]
    assert await take(queue, count_max=3) == []


async def test_a_read_takes_more_of_the_shards_with_long_queues(harness: QueueHarness) -> None:
    queue = harness.queue()
    numbers = [(number, 0) for number in range(20)] + [(number, 1) for number in range(20, 40)]
    await queue.announce(
        [doorbell(number, shard=shard) for number, shard in (*numbers, (40, 2), (41, 2))]
    )
    first = in_turn(await queue.read(count_max=3, wait_s=0, more_max=10))
    assert seen(first) == [*range(8), *range(20, 28), 40, 41]
    assert seen(await queue.read(count_max=3, wait_s=0, more_max=100)) == [
        *range(8, 20),
        *range(28, 40),
    ]
    assert await queue.read(count_max=3, wait_s=0, more_max=100) == []
    assert len(set(tokens(first))) == 18


async def test_the_newest_of_a_long_shard_come_ahead_of_their_turn_once(
    harness: QueueHarness,
) -> None:
    queue, other = harness.queue(), harness.queue("other")
    await queue.announce([doorbell(number, shard=0) for number in range(2 * AHEAD_MAX)])
    await queue.announce([doorbell(1_000, shard=1)])
    first = await queue.read(count_max=3, wait_s=0, more_max=10)
    ahead = [delivery for delivery in first if delivery.is_ahead]
    assert seen(ahead) == list(range(AHEAD_MAX, 2 * AHEAD_MAX))
    assert seen(in_turn(first)) == [*range(13), 1_000]
    assert {delivery.deliveries for delivery in first} == {1}
    await queue.announce([doorbell(2_000, shard=0)])
    second = await queue.read(count_max=3, wait_s=0, more_max=10)
    assert seen(second) == [*range(13, 26), 2_000]
    await queue.acknowledge(tokens([*ahead[5:], *second[-1:]]))
    assert await other.reclaim(idle_s=0.0) != []
    rest = await queue.read(count_max=1_000, wait_s=0)
    assert seen(rest) == list(range(26, AHEAD_MAX + 5))
    assert not any(delivery.is_ahead for delivery in rest)


async def test_every_shard_is_read(harness: QueueHarness) -> None:
    queue = harness.queue()
    await queue.announce([doorbell(number) for number in range(SHARDS)])
    assert seen(await take(queue)) == list(range(SHARDS))


async def test_a_read_waits_for_a_doorbell(harness: QueueHarness) -> None:
    reader, writer = harness.queue("one"), harness.queue("two")
    reading = asyncio.create_task(take(reader, wait_s=EVER_S))
    await harness.until_waiting(reading)
    await writer.announce([doorbell(7)])
    assert seen(await reading) == [7]


async def test_a_read_without_a_doorbell_ends_empty(harness: QueueHarness) -> None:
    queue = harness.queue()
    assert await take(queue) == []
    assert await take(queue, wait_s=0.01) == []


async def test_who_announces_is_told_how_much_waits_in_the_shard_until_it_is_acknowledged(
    harness: QueueHarness,
) -> None:
    queue, one, two = harness.queue("one"), doorbell(0, shard=1), doorbell(1, shard=2)
    assert await queue.announce([]) == 0
    assert await queue.announce([one, one, two]) == 2, "of the fullest shard"
    assert await queue.announce([two]) == 2, "of this shard alone"
    deliveries = await take(queue)
    assert (await queue.backlog(one.table_uuid), await queue.backlog(two.table_uuid)) == (2, 2)
    await queue.acknowledge(tokens(deliveries[:1]))
    assert await queue.backlog(one.table_uuid) + await queue.backlog(two.table_uuid) == 3
    assert await queue.announce([doorbell(number, shard=1) for number in range(300)]) >= 301


async def test_nothing_is_announced_or_acknowledged_without_harm(harness: QueueHarness) -> None:
    queue = harness.queue()
    await queue.announce([])
    await queue.acknowledge([])
    await queue.reply([])
    assert await take(queue) == []


# --- Acknowledging, own history ------------------------------------------------------------------


async def test_what_is_acknowledged_is_forgotten_and_the_rest_comes_back_after_a_restart(
    harness: QueueHarness,
) -> None:
    queue = harness.queue("one")
    await queue.announce([doorbell(number) for number in range(6)])
    deliveries = await take(queue)
    await queue.acknowledge(tokens(deliveries[:4]))
    assert await take(queue) == [], "this client holds the rest"
    assert await take(harness.queue("two")) == [], "and no other client gets it"
    again = await take(harness.queue("one"))
    assert seen(again) == [4, 5]
    assert [each.deliveries for each in again] == [2, 2]


async def test_a_restarted_consumer_gets_old_and_new_doorbells(harness: QueueHarness) -> None:
    before = harness.queue("one")
    await before.announce([doorbell(number, shard=3) for number in range(10)])
    await take(before)
    await before.announce([doorbell(10, shard=3)])
    after, found = harness.queue("one"), list[Delivery]()
    for _ in range(6):
        found += await take(after, count_max=2)
    assert seen(found) == list(range(11))
    assert await take(after) == []


async def test_unknown_tokens_are_ignored_and_acknowledging_may_be_repeated(
    harness: QueueHarness,
) -> None:
    queue = harness.queue()
    await queue.announce([doorbell(1), doorbell(2)])
    deliveries = await take(queue)
    odd = ["", "x", "99:1-0", "01:5", "01:77-7", "01:77-7 ", "٠١:1-1"]
    for _ in range(2):
        await queue.acknowledge([*odd, deliveries[0].token])
    assert await queue.depth() == QueueDepth(waiting=1, pending=1)
    await harness.queue("two").acknowledge(tokens(deliveries))
    assert await queue.depth() == QueueDepth(waiting=0, pending=0)


async def test_depth_counts_what_waits_and_what_is_in_hands(harness: QueueHarness) -> None:
    queue = harness.queue()
    assert await queue.depth() == QueueDepth(waiting=0, pending=0)
    await queue.announce([doorbell(number, shard=number % 2) for number in range(5)])
    assert await queue.depth() == QueueDepth(waiting=5, pending=0)
    deliveries = await take(queue, count_max=1)
    assert await queue.depth() == QueueDepth(waiting=5, pending=2)
    await queue.acknowledge(tokens(deliveries))
    assert await queue.depth() == QueueDepth(waiting=3, pending=0)


# --- Reclaiming ----------------------------------------------------------------------------------


async def test_doorbells_of_a_dead_consumer_are_taken_over(harness: QueueHarness) -> None:
    dead, alive = harness.queue("dead"), harness.queue("alive")
    await dead.announce([doorbell(number) for number in range(300)])
    await dead.announce([doorbell(number, shard=5) for number in range(300, 700)])
    held = await take(dead, count_max=1_000)
    await dead.acknowledge(tokens(held[:1]))
    assert await alive.reclaim(idle_s=1_000) == [], "not before they are idle"
    taken = list(await alive.reclaim(idle_s=0))
    assert seen(taken) == seen(held[1:])
    assert {each.deliveries for each in taken} == {2}
    await alive.acknowledge(tokens(taken))
    assert await alive.depth() == QueueDepth(waiting=0, pending=0)


async def test_a_consumer_does_not_take_over_what_it_holds(harness: QueueHarness) -> None:
    holder, other = harness.queue("one"), harness.queue("two")
    await holder.announce([doorbell(1)])
    await take(holder)
    for _ in range(3):
        assert await holder.reclaim(idle_s=0) == []
    (taken,) = await other.reclaim(idle_s=0)
    assert taken.deliveries == 2, "confirming is no delivery"
    (again,) = await harness.queue("two").reclaim(idle_s=0)
    assert again.doorbell == doorbell(1), "a new client holds nothing yet"


async def test_reclaiming_from_an_empty_server_takes_nothing(harness: QueueHarness) -> None:
    assert await harness.queue().reclaim(idle_s=0) == []


# --- Some of the shards --------------------------------------------------------------------------


async def test_only_the_shards_that_are_named_are_read(harness: QueueHarness) -> None:
    queue = harness.queue()
    await queue.announce([doorbell(number, shard=number % 4) for number in range(8)])
    assert seen(await queue.read(count_max=9, wait_s=0, shards={1, 3})) == [1, 3, 5, 7]
    assert await queue.read(count_max=9, wait_s=0, shards={1, 3}) == []
    assert seen(await queue.read(count_max=9, wait_s=0, shards={0})) == [0, 4]


async def test_only_the_shards_that_are_named_are_taken_over(harness: QueueHarness) -> None:
    former, owner = harness.queue("former"), harness.queue("owner")
    await former.announce([doorbell(number, shard=number % 4) for number in range(8)])
    await take(former)
    assert seen(await owner.reclaim(idle_s=0, shards={1, 3})) == [1, 3, 5, 7]
    assert await owner.reclaim(idle_s=0, shards={1, 3}) == []


async def test_what_was_held_of_a_shard_that_comes_back_is_delivered_again(
    harness: QueueHarness,
) -> None:
    queue = harness.queue()
    await queue.announce([doorbell(1, shard=1), doorbell(2, shard=2)])
    held = await take(queue)
    assert await queue.read(count_max=9, wait_s=0, shards={2}) == []
    (again,) = await take(queue)
    assert (again.doorbell, again.deliveries) == (doorbell(1, shard=1), 2)
    assert await take(queue) == []
    await queue.acknowledge(tokens(held))
    assert await queue.depth() == QueueDepth(waiting=0, pending=0)


async def test_a_doorbell_of_a_shard_that_was_let_go_is_acknowledged_all_the_same(
    harness: QueueHarness,
) -> None:
    queue = harness.queue()
    await queue.announce([doorbell(1, shard=1)])
    held = await take(queue)
    assert await queue.read(count_max=9, wait_s=0, shards={2}) == []
    await queue.acknowledge(tokens(held))
    assert await queue.depth() == QueueDepth(waiting=0, pending=0)


async def test_what_was_let_go_is_delivered_or_taken_over_again(harness: QueueHarness) -> None:
    queue, other = harness.queue("one"), harness.queue("two")
    await queue.announce([doorbell(1, shard=1), doorbell(2, shard=2)])
    held = await take(queue)
    queue.release_shards({1})
    assert seen(await take(queue)) == [1]
    queue.release_shards({1})
    assert seen(await other.reclaim(idle_s=0, shards={1})) == [1]
    queue.release_shards({1})
    assert seen(await queue.reclaim(idle_s=0, shards={1})) == [1]
    assert await take(queue) == []
    await queue.acknowledge(tokens(held))
    assert await queue.depth() == QueueDepth(waiting=0, pending=0)


# --- Faults --------------------------------------------------------------------------------------


async def test_a_flushed_server_delivers_the_next_announcement_to_a_blocked_read(
    harness: QueueHarness,
) -> None:
    reader, writer = harness.queue("one"), harness.queue("two")
    reading = asyncio.create_task(take(reader, wait_s=EVER_S))
    await harness.until_waiting(reading)
    for _ in range(2):
        await harness.flush()
    await writer.announce([doorbell(1)])
    assert seen(await reading) == [1]


async def test_what_was_announced_to_a_flushed_server_is_read_from_the_beginning(
    harness: QueueHarness,
) -> None:
    queue = harness.queue()
    assert await take(queue) == []
    await harness.flush()
    await queue.announce([doorbell(1), doorbell(2)])
    deliveries = await take(queue)
    assert seen(deliveries) == [1, 2]
    await harness.flush()
    await queue.acknowledge(tokens(deliveries))
    assert await queue.reclaim(idle_s=0) == []
    assert await queue.depth() == QueueDepth(waiting=0, pending=0)
    await queue.announce([doorbell(3)])
    assert seen(await take(queue)) == [3]


async def test_a_canceled_read_loses_nothing(harness: QueueHarness) -> None:
    queue, writer = harness.queue("one"), harness.queue("two")
    found: list[Delivery] = []
    for number in range(30):
        reading = asyncio.create_task(take(queue, wait_s=EVER_S))
        await harness.until_waiting(reading)
        announcing = asyncio.create_task(writer.announce([doorbell(number)]))
        for _ in range(number):
            await asyncio.sleep(0)
        reading.cancel()
        await announcing
        with suppress(asyncio.CancelledError):
            found += await reading
    for _ in range(2):
        found += await take(queue)
    assert seen(found) == list(range(30))


async def test_an_outage_is_reported_by_every_call_and_ends_without_a_trace(
    harness: QueueHarness,
) -> None:
    queue = harness.queue()
    await queue.announce([doorbell(number) for number in range(3)])
    deliveries = await take(queue, count_max=1)
    await queue.acknowledge(tokens(deliveries[:1]))
    receipt = Receipt("p", 1, "a", ReceiptState.COMMITTED)
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: queue.announce([doorbell(9)]),
        lambda: queue.backlog(doorbell(9).table_uuid),
        lambda: queue.read(count_max=1, wait_s=1),
        lambda: queue.reclaim(idle_s=0),
        lambda: queue.acknowledge(tokens(deliveries)),
        lambda: queue.reply([("driver", receipt)]),
        lambda: queue.wait_for_receipts("driver", wait_s=1),
        lambda: queue.depth(),
        lambda: queue.probe(),
    ]
    await harness.stop()
    for call in calls:
        with pytest.raises(QueueUnavailableError):
            await call()
    await harness.start()
    assert await queue.depth() == QueueDepth(waiting=2, pending=2)
    for call in calls:
        await call()
    assert await queue.depth() == QueueDepth(waiting=1, pending=0), "read took what was in doubt"
    assert seen(await take(queue)) == [9]


async def test_an_outage_ends_a_blocked_read(harness: QueueHarness) -> None:
    queue = harness.queue()
    reading = asyncio.create_task(take(queue, wait_s=EVER_S))
    await harness.until_waiting(reading)
    await harness.stop()
    with pytest.raises(QueueUnavailableError):
        await reading
    await harness.start()
    await harness.queue("two").announce([doorbell(1)])
    assert seen(await take(queue)) == [1]


# --- Receipts ------------------------------------------------------------------------------------


def receipt(epoch: int, **values: object) -> Receipt:
    values = {"state": ReceiptState.DURABLE, **values}
    return Receipt(producer="p", epoch=epoch, attempt="a", **values)  # type: ignore[arg-type]


RECEIPTS = [
    receipt(1),
    receipt(2, state=ReceiptState.COMMITTED, snapshot_id=2**63 - 1, sequence_number=4),
    receipt(3, state=ReceiptState.QUARANTINED, reason="hash_mismatch", message="ä \n 0"),
    receipt(4, state=ReceiptState.COMMITTED, snapshot_id=1, sequence_number=0, duplicate=True),
]


async def test_receipts_arrive_complete_in_order_and_once(harness: QueueHarness) -> None:
    committer, driver = harness.queue("one"), harness.queue("two")
    await committer.reply([("driver", each) for each in RECEIPTS] + [("other", receipt(9))])
    await committer.reply([("driver", receipt(5))])
    assert await driver.wait_for_receipts("driver", wait_s=0) == [*RECEIPTS, receipt(5)]
    assert await driver.wait_for_receipts("driver", wait_s=0) == []
    assert await driver.wait_for_receipts("other", wait_s=0) == [receipt(9)]
    assert await driver.wait_for_receipts("nobody", wait_s=0.01) == []


async def test_a_waiter_is_woken_by_its_receipt_only(harness: QueueHarness) -> None:
    committer, driver = harness.queue("one"), harness.queue("two")
    waiting = [
        asyncio.create_task(driver.wait_for_receipts(f"driver/{number}", wait_s=EVER_S))
        for number in range(3)
    ]
    await harness.until_waiting(*waiting)
    for number in (2, 0, 1):
        assert not waiting[number].done()
        await committer.reply([(f"driver/{number}", receipt(number))])
        assert await waiting[number] == [receipt(number)]


async def test_a_canceled_wait_loses_no_receipt(harness: QueueHarness) -> None:
    committer, driver = harness.queue("one"), harness.queue("two")
    found: list[Receipt] = []
    for epoch in range(20):
        waiting = asyncio.create_task(driver.wait_for_receipts("driver", wait_s=EVER_S))
        await harness.until_waiting(waiting)
        replying = asyncio.create_task(committer.reply([("driver", receipt(epoch))]))
        for _ in range(epoch):
            await asyncio.sleep(0)
        waiting.cancel()
        await replying
        with suppress(asyncio.CancelledError):
            found += await waiting
    found += await driver.wait_for_receipts("driver", wait_s=0)
    assert found == [receipt(epoch) for epoch in range(20)]


async def test_receipts_that_nobody_takes_are_bounded(harness: QueueHarness) -> None:
    queue = harness.queue()
    await queue.reply([("driver", receipt(epoch)) for epoch in range(3 * RECEIPTS_MAX)])
    found = await queue.wait_for_receipts("driver", wait_s=0)
    assert RECEIPTS_MAX <= len(found) < 2 * RECEIPTS_MAX
    assert found[-1].epoch == 3 * RECEIPTS_MAX - 1


# --- Everything else -----------------------------------------------------------------------------


async def test_a_good_server_passes_the_probe(harness: QueueHarness) -> None:
    await harness.queue().probe()


async def test_closing_may_be_repeated_and_keeps_what_is_pending(harness: QueueHarness) -> None:
    queue = harness.queue("one")
    await queue.announce([doorbell(1)])
    await take(queue)
    await queue.close()
    await queue.close()
    assert seen(await take(harness.queue("one"))) == [1]


# --- Installations -------------------------------------------------------------------------------


async def test_two_installations_on_one_server_share_nothing(harness: QueueHarness) -> None:
    mine, others = harness.queue(), harness.queue(identity=OTHER_IDENTITY)
    await mine.announce([doorbell(1)])
    assert await take(others) == []
    assert await others.depth() == QueueDepth(waiting=0, pending=0)
    await others.announce([doorbell(2)])
    assert (seen(await take(mine)), seen(await take(others))) == ([1], [2])
    assert await mine.reclaim(idle_s=0.0) == await others.reclaim(idle_s=0.0) == []
    receipt = Receipt("p", 1, "a", ReceiptState.DURABLE)
    await others.reply([("driver", receipt)])
    assert await mine.wait_for_receipts("driver", wait_s=0.0) == []
    assert await others.wait_for_receipts("driver", wait_s=0.0) == [receipt]
