"""Receipts on their way back: one short-lived stream per reply address.

    {frazil:NN}:receipts:<reply-to>    NN spreads the addresses over the shards

At most about `RECEIPTS_MAX` receipts, gone `RECEIPTS_S_MAX` after the last. They are a faster copy
of the ledger's answer: a reader that loses one reads the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

from committer.ports.queue import SHARDS
from committer.queue.entry_fields import (
    RECEIPTS_MAX,
    RECEIPTS_S_MAX,
    decode_receipt,
    encode_receipt,
)
from committer.queue.redis_connection import RedisConnection, is_key_taken, raise_first
from committer.request.receipt_model import Receipt

_BLOCKED_MAX = 100


class RedisReceipts:
    """Sends receipts, and takes those of the addresses that this client waits at."""

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        self._taken: dict[str, list[bytes]] = {}
        # Keys that hold something else; they go by themselves, as every reply bounds their life.
        self.blocked: set[str] = set()

    async def reply(self, receipts: Sequence[tuple[str, Receipt]]) -> None:
        """Send receipts; one whose key holds something else is dropped:
        its waiter asks the table."""
        answers = await self._connection.commands(_appends(receipts))
        for (reply_to, _), answer in zip(receipts, answers, strict=False):
            if is_key_taken(answer) and len(self.blocked) < _BLOCKED_MAX:
                self.blocked.add(_key(reply_to))
        raise_first(answer for answer in answers if not is_key_taken(answer))

    async def wait(self, reply_to: str, *, wait_s: float) -> list[Receipt]:
        """Return receipts, and delete them at the next call:
        until then a canceled call loses nothing."""
        key = _key(reply_to)
        taken = self._taken.get(reply_to)
        forget = [("XDEL", key, *taken)] if taken else []
        block = ("BLOCK", max(1, round(wait_s * 1_000))) if wait_s > 0 else ()
        read = ("XREAD", *block, "STREAMS", key, "0")
        answer = await self._connection.block(wait_s, *forget, read)
        self._taken.pop(reply_to, None)
        entries: list[Any] = answer[0][1] if answer else []
        if entries:
            self._taken[reply_to] = [entry[0] for entry in entries]
        return list(_decoded(entries))


def _appends(receipts: Sequence[tuple[str, Receipt]]) -> Iterator[tuple[Any, ...]]:
    for reply_to, receipt in receipts:
        words = (word for pair in encode_receipt(receipt).items() for word in pair)
        yield ("XADD", _key(reply_to), "MAXLEN", "~", RECEIPTS_MAX, "*", *words)
    for reply_to in dict.fromkeys(reply_to for reply_to, _ in receipts):
        yield ("EXPIRE", _key(reply_to), RECEIPTS_S_MAX)


def _decoded(entries: Sequence[Any]) -> Iterator[Receipt]:
    for _, pairs in entries:
        try:
            yield decode_receipt(dict(zip(pairs[::2], pairs[1::2], strict=True)))
        except ValueError:
            continue  # of an unknown version: the ledger has the answer


def _key(reply_to: str) -> str:
    return f"{{frazil:{crc32(reply_to.encode()) % SHARDS:02d}}}:receipts:{reply_to}"
