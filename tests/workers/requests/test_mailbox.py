from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest

from committer.errors import AccessError, QueueUnavailableError
from committer.real_world import RealWorld
from committer.request.commit_request import CommitRequest, Producer
from committer.request.receipt_model import Receipt, ReceiptState
from tests.support.memory.memory_queue import MemoryQueue, MemoryServer
from tests.support.workers.publishing import nonce_of
from workers.requests.mailbox import Mailbox


class WatchedQueue(MemoryQueue):
    """Counts who waits at the server at a time."""

    reading = 0
    reading_max = 0

    async def wait_for_receipts(self, reply_to: str, *, wait_s: float) -> Sequence[Receipt]:
        self.reading += 1
        self.reading_max = max(self.reading, self.reading_max)
        try:
            return await super().wait_for_receipts(reply_to, wait_s=wait_s)
        finally:
            self.reading -= 1


class Post:
    """A mailbox, and the committer that writes to it."""

    def __init__(self) -> None:
        self.server = MemoryServer(world=RealWorld())
        self.queue = WatchedQueue(self.server, consumer="reader")
        self.mailbox = Mailbox(self.queue, RealWorld(), "here")

    def take(
        self, producer: str, attempt: int = 1, wait_s: float = 30
    ) -> asyncio.Task[Receipt | None]:
        known: Any = {"producer": Producer(id=producer), "epoch": 0, "attempt": nonce_of(attempt)}
        request = CommitRequest.model_construct(**known)
        return asyncio.create_task(self.mailbox.take(request, wait_s=wait_s))

    async def send(self, *receipts: Receipt) -> None:
        await MemoryQueue(self.server, consumer="committer").reply(
            [("here", each) for each in receipts]
        )
        await settle()


def receipt(
    producer: str,
    epoch: int = 0,
    state: ReceiptState = ReceiptState.COMMITTED,
    attempt: int = 1,
) -> Receipt:
    return Receipt(producer, epoch, str(nonce_of(attempt)), state)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_many_wait_and_one_reads_for_all() -> None:
    post = Post()
    tasks = {name: post.take(name) for name in "abcd"}
    await settle()
    await post.send(receipt("c"), receipt("b", 9))
    assert tasks["c"].done()
    assert not tasks["a"].done()
    # The reader leaves: another one reads on.
    await post.send(receipt("a"))
    await post.send(receipt("d"), receipt("b"))
    assert await asyncio.gather(*tasks.values()) == [receipt(name) for name in "abcd"]
    assert post.queue.reading_max == 1
    assert post.queue.reading == 0


async def test_a_reader_that_is_canceled_hands_on() -> None:
    post = Post()
    first, second = post.take("a"), post.take("b")
    await settle()
    first.cancel()
    await settle()
    await post.send(receipt("b"))
    assert await second == receipt("b")


async def test_a_receipt_that_came_while_its_waiter_looked_elsewhere_is_kept() -> None:
    post = Post()
    other = post.take("other")
    assert await post.take("mine", wait_s=0.01) is None
    await post.send(receipt("mine"), receipt("other"))
    assert await other == receipt("other")
    assert await post.take("mine", wait_s=0.01) == receipt("mine")
    assert await post.take("mine", wait_s=0.01) is None, "it is taken once"


async def test_who_reads_gives_up_in_time_and_who_waits_too() -> None:
    post = Post()
    tasks = [post.take("a", wait_s=0.01), post.take("b", wait_s=0.02)]
    assert await asyncio.gather(*tasks) == [None, None]


async def test_a_receipt_of_an_earlier_attempt_is_not_that_of_a_later_one() -> None:
    post = Post()
    assert await post.take("a", wait_s=0.01) is None
    second = post.take("a", attempt=2)
    await settle()
    await post.send(receipt("a", state=ReceiptState.QUARANTINED))
    assert not second.done()
    await post.send(receipt("a", attempt=2))
    assert await second == receipt("a", attempt=2)


async def test_durable_is_no_final_receipt() -> None:
    post = Post()
    task = post.take("a")
    await settle()
    await post.send(receipt("a", state=ReceiptState.DURABLE))
    assert not task.done()
    await post.send(receipt("a", state=ReceiptState.QUARANTINED))
    assert await task == receipt("a", state=ReceiptState.QUARANTINED)


async def test_a_queue_that_is_away_is_an_error_for_everybody() -> None:
    unheard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    post = Post()
    tasks = [post.take("a"), post.take("b")]
    await settle()
    post.server.available = False
    post.server.wake()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [QueueUnavailableError] * 2
    del tasks, answers
    gc.collect()
    assert unheard == []


async def test_a_queue_that_denies_its_key_is_as_one_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def deny(reply_to: str, *, wait_s: float) -> Sequence[Receipt]:
        await asyncio.sleep(0)
        raise AccessError("NOPERM")

    post = Post()
    monkeypatch.setattr(post.queue, "wait_for_receipts", deny)
    tasks = [post.take("a"), post.take("b")]
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [QueueUnavailableError] * 2
