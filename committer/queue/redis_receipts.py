"""Receipts on their way back: one short-lived stream per reply address.

    {frazil:<identity>:NN}:receipts:<reply-to>    NN spreads the addresses over the shards

At most about `RECEIPTS_MAX` receipts, gone `RECEIPTS_S_MAX` after the last. They are a faster copy
of the ledger's answer: a reader that loses one reads the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from committer.queue.entry_fields import (
    RECEIPTS_MAX,
    RECEIPTS_S_MAX,
    decode_receipt,
    encode_receipt,
)
from committer.queue.redis_connection import RedisConnection, is_key_taken, raise_first
from committer.queue.redis_keys import receipts_key
from committer.request.receipt_model import Receipt

_BLOCKED_MAX = 100


class RedisReceipts:
    """Sends receipts, and takes those of the addresses that this client waits at."""

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        self._taken: dict[str, list[bytes]] = {}
        # Keys that hold something else; they go by themselves, as every reply bounds their life.
        self.blocked: set[str] = set()

    async def reply(self, identity: str, receipts: Sequence[tuple[str, Receipt]]) -> None:
        """Send receipts; one whose key holds something else is dropped:
        its waiter asks the table."""
        keyed = [(receipts_key(identity, reply_to), receipt) for reply_to, receipt in receipts]
        answers = await self._connection.commands(_appends(keyed))
        for (key, _), answer in zip(keyed, answers, strict=False):
            if is_key_taken(answer) and len(self.blocked) < _BLOCKED_MAX:
                self.blocked.add(key)
        raise_first(answer for answer in answers if not is_key_taken(answer))

    async def wait(self, key: str, *, wait_s: float) -> list[Receipt]:
        """Return receipts, and delete them at the next call:
        until then a canceled call loses nothing."""
        taken = self._taken.get(key)
        forget = [("XDEL", key, *taken)] if taken else []
        block = ("BLOCK", max(1, round(wait_s * 1_000))) if wait_s > 0 else ()
        read = ("XREAD", *block, "STREAMS", key, "0")
        answer = await self._connection.block(wait_s, *forget, read)
        self._taken.pop(key, None)
        entries: list[Any] = answer[0][1] if answer else []
        if entries:
            self._taken[key] = [entry[0] for entry in entries]
        return list(_decoded(entries))


def _appends(keyed: Sequence[tuple[str, Receipt]]) -> Iterator[tuple[Any, ...]]:
    for key, receipt in keyed:
        words = (word for pair in encode_receipt(receipt).items() for word in pair)
        yield ("XADD", key, "MAXLEN", "~", RECEIPTS_MAX, "*", *words)
    for key in dict.fromkeys(key for key, _ in keyed):
        yield ("EXPIRE", key, RECEIPTS_S_MAX)


def _decoded(entries: Sequence[Any]) -> Iterator[Receipt]:
    for _, pairs in entries:
        try:
            yield decode_receipt(dict(zip(pairs[::2], pairs[1::2], strict=True)))
        except ValueError:
            continue  # of an unknown version: the ledger has the answer
