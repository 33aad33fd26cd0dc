"""The queue on Redis Streams (Redis ≥ 7, Valkey ≥ 8).

    {frazil:<identity>:NN}                        stream of shard NN, 00 … 63; group `frazil`
    {frazil:<identity>:NN}:receipts:<reply-to>    see `redis_receipts`

Names of keys: `redis_keys`. All keys of a shard share its hash tag. Fields of the entries:
`entry_fields`. How it works:

* The answer of a read may get lost: its doorbells are then pending for this consumer, which never
  saw them, and no read of new entries returns them. So the queue remembers the doorbells that its
  caller holds and, after every failed call and at the start, searches for further pending entries.
* A missing stream or group is made at id 0, never at `$`, which would skip what is there.
* A shard's key with another type of value (`SET` by another program) is named in `taken_keys`, and
  checked again every few seconds; the other shards continue.
* Entries are never trimmed, and deleted when acknowledged, in one atomic step. An entry that
  vanished while it was pending was deleted by another program: counted in `lost`.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

from redis.exceptions import OutOfMemoryError, ResponseError

from committer.errors import FrazilError, QueueKeyTakenError, QueueUnavailableError
from committer.ports.installation import Identity
from committer.ports.queue import (
    AHEAD_MAX,
    ALL_SHARDS,
    Delivery,
    Doorbell,
    QueueDepth,
    shard_of,
)
from committer.queue.entry_fields import decode_doorbell, encode_doorbell
from committer.queue.redis_connection import (
    RedisConnection,
    is_group_gone,
    is_key_taken,
    raise_first,
)
from committer.queue.redis_keys import ensure_identity, find_identity, receipts_key, shard_key
from committer.queue.redis_receipts import RedisReceipts
from committer.request.receipt_model import Receipt

GROUP = "frazil"
_STREAM = "stream"
_DOORBELLS_A_PIPELINE = 128
_CLAIMED_MAX = 1_024
_SCANNED_MAX = 100
_FORGOTTEN_MAX = 1_000
_ATTEMPTS_MAX = 3
_TAKEN_AGAIN_S = 2.0

# One step: XACK alone would leave the entry in the stream for ever, XDEL alone its trace in the
# group. Not a MULTI, in which a full server refuses every command, so no committer could drain it.
_FORGET = """
redis.call("XACK", KEYS[1], unpack(ARGV))
redis.call("XDEL", KEYS[1], unpack(ARGV, 2))
"""


_TOKEN = re.compile(r"([0-5][0-9]|6[0-3]):([0-9]{1,20}-[0-9]{1,20})")

_Ids = dict[int, list[bytes]]
_Answer = TypeVar("_Answer")


class RedisQueue:
    """`url`: `redis://`, `rediss://` or `unix://`, with options of redis-py as its query.

    `identity` is that of the inbox, which the keys have in their names: read before the first call.
    `consumer` names this process among the consumers; a name that stays the same over restarts
    gets its doorbells back at once. `answer_s_max`: how long the server may take, beyond waiting
    that was asked for. One task reads at a time. `lost` counts doorbells that were deleted in the
    server while pending, `malformed` entries that are none; both are dropped.
    """

    def __init__(
        self, url: str, *, identity: Identity, consumer: str, answer_s_max: float = 5.0
    ) -> None:
        self._connection = RedisConnection(url, answer_s_max=answer_s_max)
        self._identity = identity
        self._named_by = ""
        self._keys: tuple[str, ...] = ()  # of the shards, once the identity is known
        self._shard_of_key: dict[bytes, int] = {}
        self._receipts = RedisReceipts(self._connection)
        self._consumer = consumer
        self._reading = asyncio.Lock()
        self._held: defaultdict[int, set[bytes]] = defaultdict(set)
        self._ahead: dict[int, bytes] = {}  # the newest id of a long shard that was looked at
        self._shards: tuple[int, ...] = ALL_SHARDS
        self._let_go_meanwhile: set[int] = set()  # since the read under way began
        self._has_groups = False
        self._doubts = 1  # calls that may have left something unseen; the start is one
        self._settled = 0  # the last doubt that a read has cleared up
        self._taken: dict[str, str] = {}
        self._taken_looked_s = 0.0
        self.lost = 0
        self.malformed = 0

    # --- Ringing ---------------------------------------------------------------------------------

    async def announce(self, doorbells: Sequence[Doorbell]) -> int:
        await self._name_keys()
        backlog = 0
        with self._connection.explained():
            for start in range(0, len(doorbells), _DOORBELLS_A_PIPELINE):
                chunk = doorbells[start : start + _DOORBELLS_A_PIPELINE]
                backlog = max(backlog, await self._append(chunk))
        return backlog

    async def _append(self, doorbells: Sequence[Doorbell]) -> int:
        """Append doorbells. Return the length of the longest stream:
        acknowledged entries are deleted."""
        keys = {self._keys[shard_of(doorbell.table_uuid)] for doorbell in doorbells}
        answers = await self._connection.commands(
            [*map(self._appended, doorbells), *(("XLEN", key) for key in keys)]
        )
        if any(map(is_key_taken, answers)):
            for message in (await self._connection.taken(dict.fromkeys(keys, _STREAM))).values():
                raise QueueKeyTakenError(message)
        raise_first(answers)
        return max(map(int, answers[len(doorbells) :]))

    def _appended(self, doorbell: Doorbell) -> tuple[Any, ...]:
        pairs = encode_doorbell(doorbell).items()
        words: Iterable[bytes] = (word for pair in pairs for word in pair)
        return ("XADD", self._keys[shard_of(doorbell.table_uuid)], "*", *words)

    async def backlog(self, table_uuid: UUID) -> int:
        if not await self._has_keys():
            return 0
        with self._connection.explained():
            key = self._keys[shard_of(table_uuid)]
            (length,) = await self._connection.results([("XLEN", key)])
            return int(length)

    # --- Reading ---------------------------------------------------------------------------------

    async def read(
        self,
        *,
        count_max: int,
        wait_s: float,
        shards: Collection[int] = ALL_SHARDS,
        more_max: int = 0,
    ) -> Sequence[Delivery]:
        await self._name_keys()
        async with self._reading:
            wanted = self._turn_to(shards)
            self._let_go_meanwhile.clear()
            settled, doubt = self._doubt()
            with self._connection.explained():
                await self._look_at_taken()
                if not settled:
                    unseen = await self._with_groups(lambda: self._read_unseen(wanted, count_max))
                    if unseen:
                        return self._hold(unseen)
                deliveries = await self._read_new(wanted, count_max, wait_s)
                more, ahead = await self._read_more(_longer(deliveries, count_max), more_max)
            self._settled = doubt
            return [*self._hold(deliveries + more), *ahead]

    def _turn_to(self, shards: Collection[int]) -> tuple[int, ...]:
        """Read these shards from now on; of a new one, deliveries from before may be pending."""
        wanted = tuple(sorted(shards))
        if wanted != self._shards:
            self.release_shards(set(self._shards).difference(wanted))
            if not set(wanted).issubset(self._shards):
                self._doubts += 1
            self._shards = wanted
        return wanted

    def _doubt(self) -> tuple[bool, int]:
        """Return whether all was settled so far,
        and the doubt that this call is until it ends well."""
        settled = self._settled == self._doubts
        self._doubts += 1
        return settled, self._doubts

    # A shard may be released at any moment, so a read keeps to its first set of shards.

    async def _read_unseen(self, shards: Sequence[int], count_max: int) -> list[Delivery]:
        """Read doorbells that are pending for this consumer but never reached the caller."""
        usable = self._usable(shards)
        questions = [
            (
                *("XPENDING", self._keys[shard], GROUP, "-", "+"),
                *(count_max + len(self._held[shard]), self._consumer),
            )
            for shard in usable
        ]
        answers = await self._connection.results(questions)
        unseen: _Ids = {}
        for shard, rows in zip(usable, answers, strict=True):
            unseen[shard] = [row[0] for row in rows if row[0] not in self._held[shard]][:count_max]
        return await self._claim(unseen)

    async def _read_new(
        self, shards: Sequence[int], count_max: int, wait_s: float
    ) -> list[Delivery]:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + wait_s

        async def read() -> Any:
            left_s = max(0.0, end_s - loop.time())
            usable = self._usable(shards)
            if not usable:
                await asyncio.sleep(min(left_s, _TAKEN_AGAIN_S))
                return ()
            if self._taken:
                left_s = min(left_s, _TAKEN_AGAIN_S)
            block = ("BLOCK", max(1, round(left_s * 1_000))) if left_s else ()
            words = ("GROUP", GROUP, self._consumer, "COUNT", count_max, *block)
            keys = (self._keys[shard] for shard in usable)
            ids = (">",) * len(usable)
            return await self._connection.block(
                left_s, ("XREADGROUP", *words, "STREAMS", *keys, *ids)
            )

        deliveries: list[Delivery] = []
        for key, entries in await self._with_groups(read) or ():
            shard = self._shard_of_key[key]
            deliveries += await self._deliver(shard, {entry[0]: (entry[1], 1) for entry in entries})
        return deliveries

    async def _read_more(
        self, longer: Collection[int], more_max: int
    ) -> tuple[list[Delivery], list[Delivery]]:
        """Read more of these shards. Return the newest doorbells of those with more still, too."""
        count = more_max // len(longer) if longer else 0
        if not count:
            return [], []
        more = await self._read_new(sorted(longer), count, 0.0)
        return more, await self._look_ahead(_longer(more, count))

    async def _look_ahead(self, longer: Mapping[int, bytes]) -> list[Delivery]:
        """Return the newest doorbells of these shards after the last id that was read of each: they
        have been delivered to no consumer. Each is returned once.
        """
        ahead: list[Delivery] = []
        before = {
            shard: max(last, self._ahead.get(shard, last), key=_order)
            for shard, last in longer.items()
        }
        answers = await self._connection.commands(
            ("XREVRANGE", self._keys[shard], "+", b"(" + last, "COUNT", AHEAD_MAX)
            for shard, last in before.items()
        )
        for shard, entries in zip(before, answers, strict=True):
            # The next read in turn reports what is wrong with a shard.
            if entries and not isinstance(entries, Exception):
                self._ahead[shard] = entries[0][0]
                copies = {id_: (pairs, 1) for id_, pairs in reversed(entries)}
                ahead += await self._deliver(shard, copies)
        return [replace(delivery, is_ahead=True) for delivery in ahead]

    async def reclaim(
        self, *, idle_s: float, shards: Collection[int] = ALL_SHARDS
    ) -> Sequence[Delivery]:
        """Take over idle deliveries, and renew the claim on all held ones.

        Takes some thousand doorbells a call; call again for more.
        """
        await self._name_keys()
        async with self._reading:
            self._let_go_meanwhile.clear()
            settled, doubt = self._doubt()
            with self._connection.explained():
                idle_ms = round(idle_s * 1_000)
                deliveries = await self._with_groups(lambda: self._reclaim(idle_ms, shards))
            self._settled = doubt if settled else self._settled
            return self._hold(deliveries)

    async def _reclaim(self, idle_ms: int, shards: Collection[int]) -> list[Delivery]:
        """Claim by JUSTID: so confirming held doorbells is no delivery, and copies none of them."""
        cursors: dict[int, bytes] = dict.fromkeys(self._usable(sorted(shards)), b"0-0")
        claimed: _Ids = defaultdict(list)
        options = ("COUNT", _SCANNED_MAX, "JUSTID")
        while cursors and sum(map(len, claimed.values())) < _CLAIMED_MAX:
            answers = await self._connection.results(
                ("XAUTOCLAIM", self._keys[shard], GROUP, self._consumer, idle_ms, cursor, *options)
                for shard, cursor in cursors.items()
            )
            for shard, (cursor, ids, deleted) in zip(list(cursors), answers, strict=True):
                self.lost += len(deleted)
                claimed[shard] += (id_ for id_ in ids if id_ not in self._held[shard])
                cursors[shard] = cursor
            cursors = {shard: cursor for shard, cursor in cursors.items() if cursor != b"0-0"}
        return await self._claim(claimed)

    async def _claim(self, ids: _Ids) -> list[Delivery]:
        """Fetch pending entries by id with their number of deliveries; count the missing ones."""
        wanted = {shard: each for shard, each in ids.items() if each}
        answers = await self._connection.results(
            ("XCLAIM", self._keys[shard], GROUP, self._consumer, 0, *each)
            for shard, each in wanted.items()
        )
        deliveries: list[Delivery] = []
        for (shard, each), rows in zip(wanted.items(), answers, strict=True):
            found = [row for row in rows if row and row[1] is not None]
            self.lost += len(each) - len(found)
            counts = await self._delivery_counts(shard, [row[0] for row in found])
            entries = {id_: (pairs, counts.get(id_, 1)) for id_, pairs in found}
            deliveries += await self._deliver(shard, entries)
        return deliveries

    async def _delivery_counts(self, shard: int, ids: Sequence[bytes]) -> dict[bytes, int]:
        answers = await self._connection.results(
            ("XPENDING", self._keys[shard], GROUP, id_, id_, 1) for id_ in ids
        )
        return {row[0]: row[3] for rows in answers for row in rows}

    async def _deliver(
        self, shard: int, entries: Mapping[bytes, tuple[Sequence[bytes], int]]
    ) -> list[Delivery]:
        deliveries, rubbish = [], []
        for id_, (pairs, count) in entries.items():
            try:
                doorbell = decode_doorbell(dict(zip(pairs[::2], pairs[1::2], strict=True)))
            except ValueError:
                rubbish.append(id_)
            else:
                deliveries.append(Delivery(_token(shard, id_), doorbell, count))
        if rubbish:
            self.malformed += len(rubbish)
            await self._forget({shard: rubbish})
        return deliveries

    def _hold(self, deliveries: list[Delivery]) -> list[Delivery]:
        """Hold deliveries. Nothing is awaited between this and the caller: a doorbell that it does
        not get is not held. Nor are doorbells of shards that were released in the meantime: they
        return when the shard is read again.
        """
        for delivery in deliveries:
            parsed = _parse_token(delivery.token)
            if parsed and parsed[0] not in self._let_go_meanwhile:
                self._held[parsed[0]].add(parsed[1])
        return deliveries

    # --- Acknowledging ---------------------------------------------------------------------------

    def release_shards(self, shards: Collection[int]) -> None:
        self._let_go_meanwhile.update(shards)
        for shard in shards:
            self._held.pop(shard, None)
            self._ahead.pop(shard, None)
        # Named again, they are as new.
        self._shards = tuple(shard for shard in self._shards if shard not in shards)

    async def acknowledge(self, tokens: Sequence[str]) -> None:
        """Acknowledge doorbells; after an error they are not held any more,
        so they are delivered again."""
        ids: _Ids = defaultdict(list)
        for token in tokens:
            if parsed := _parse_token(token):
                ids[parsed[0]].append(parsed[1])
        for shard, each in ids.items():
            self._held[shard].difference_update(each)
        try:
            await self._name_keys()
            with self._connection.explained():
                await self._forget(ids)
        except FrazilError:
            self._doubts += 1
            raise

    async def _forget(self, ids: Mapping[int, Sequence[bytes]]) -> None:
        answers = await self._connection.commands(
            ("EVAL", _FORGET, 1, self._keys[shard], GROUP, *each[start : start + _FORGOTTEN_MAX])
            for shard, each in ids.items()
            for start in range(0, len(each), _FORGOTTEN_MAX)
        )
        # A key with another value has nothing to forget.
        raise_first(answer for answer in answers if not is_key_taken(answer))

    # --- Receipts, state -------------------------------------------------------------------------

    async def reply(self, receipts: Sequence[tuple[str, Receipt]]) -> None:
        identity = await self._name_keys()
        with self._connection.explained():
            await self._receipts.reply(identity, receipts)

    async def wait_for_receipts(self, reply_to: str, *, wait_s: float) -> Sequence[Receipt]:
        key = receipts_key(await self._name_keys(), reply_to)
        with self._connection.explained():
            return await self._receipts.wait(key, wait_s=wait_s)

    async def depth(self) -> QueueDepth:
        if not await self._has_keys():
            return QueueDepth(waiting=0, pending=0)
        with self._connection.explained():
            lengths = await self._connection.commands(("XLEN", key) for key in self._keys)
            lengths = [answer for answer in lengths if not is_key_taken(answer)]
            raise_first(lengths)
            summaries = await self._connection.commands(
                ("XPENDING", key, GROUP) for key in self._keys
            )
            raise_first(each for each in summaries if not _is_missing(each))
        return QueueDepth(
            waiting=sum(lengths),
            pending=sum(each[0] for each in summaries if not _is_missing(each)),
        )

    async def probe(self) -> None:
        with self._connection.explained():
            await self._connection.probe()

    async def close(self) -> None:
        with self._connection.explained():
            await self._connection.close()

    # --- Names of keys ---------------------------------------------------------------------------

    async def _name_keys(self) -> str:
        """Name the keys, once. Return the identity in them, which is made where there is none."""
        if not self._keys:
            self._name(await ensure_identity(self._identity, self._connection))
        return self._named_by

    async def _has_keys(self) -> bool:
        """Name the keys, unless the inbox has no identity yet: then no key exists."""
        if not self._keys:
            identity = await find_identity(self._identity, self._connection)
            if identity is None:
                return False
            self._name(identity)
        return True

    def _name(self, identity: str) -> None:
        self._named_by = identity
        self._keys = tuple(shard_key(identity, shard) for shard in ALL_SHARDS)
        self._shard_of_key = {key.encode(): shard for shard, key in enumerate(self._keys)}

    # --- Keys that something else has taken ------------------------------------------------------

    def taken_keys(self) -> Mapping[str, str]:
        return self._taken

    def _usable(self, shards: Iterable[int]) -> list[int]:
        return [shard for shard in shards if self._keys[shard] not in self._taken]

    async def _look_at_taken(self) -> None:
        """Check every few seconds whether those keys are still taken,
        and the keys of receipts once reported.
        """
        now_s = asyncio.get_running_loop().time()
        blocked = self._receipts.blocked
        if not (self._taken or blocked) or now_s - self._taken_looked_s < _TAKEN_AGAIN_S:
            return
        self._taken_looked_s = now_s
        await self._find_taken({*self._taken, *blocked})
        blocked.intersection_update(self._taken)

    async def _find_taken(self, keys: Iterable[str]) -> None:
        """Look at these keys. A shard that has come back is read as a new one is."""
        looked_at = dict.fromkeys(keys, _STREAM)
        found = await self._connection.taken(looked_at)
        if any(key in self._taken and key not in found for key in looked_at):
            self._has_groups = False
            self._doubts += 1
        self._taken = {key: why for key, why in self._taken.items() if key not in looked_at} | found

    # --- Groups ----------------------------------------------------------------------------------

    async def _with_groups(self, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Make the call; where a stream or group is missing, make that and call again."""
        for _ in range(_ATTEMPTS_MAX):
            if not self._has_groups:
                await self._make_groups()
            try:
                return await call()
            except ResponseError as error:
                if is_key_taken(error):
                    await self._find_taken(self._keys)
                elif not is_group_gone(error):
                    raise
                self._has_groups = False
        raise QueueUnavailableError(
            f"the queue server {self._connection.server} has lost its streams, and has no memory"
            " for new ones or loses them again and again"
        )

    async def _make_groups(self) -> None:
        answers = await self._connection.commands(
            ("XGROUP", "CREATE", key, GROUP, "0", "MKSTREAM") for key in self._keys
        )
        raise_first(each for each in answers if not (_may_have_group(each) or is_key_taken(each)))
        if any(map(is_key_taken, answers)):
            await self._find_taken(self._keys)
        for shard, answer in enumerate(answers):
            if not isinstance(answer, Exception):
                self._held[shard].clear()  # a new group: the held doorbells do not belong to it
        self._has_groups = True


def _longer(deliveries: Sequence[Delivery], count_max: int) -> dict[int, bytes]:
    """Return the shards of which a read has returned as many as it may, and their last ids."""
    if len(deliveries) < count_max:
        return {}
    parsed = list(filter(None, (_parse_token(delivery.token) for delivery in deliveries)))
    counts = Counter(shard for shard, _ in parsed)
    return {shard: id_ for shard, id_ in parsed if counts[shard] >= count_max}


def _order(id_: bytes) -> tuple[int, ...]:
    """Return the place of an id in its stream: milliseconds, then a number."""
    return tuple(map(int, id_.split(b"-")))


def _token(shard: int, id_: bytes) -> str:
    return f"{shard:02d}:{id_.decode()}"


def _parse_token(token: str) -> tuple[int, bytes] | None:
    """Parse a token; None for text that `_token` never makes."""
    if match := _TOKEN.fullmatch(token):
        return int(match[1]), match[2].encode()
    return None


def _may_have_group(answer: Any) -> bool:
    """Return whether there may be a group: a full server refuses to make one even if there is one,
    which can still be read."""
    return isinstance(answer, OutOfMemoryError) or str(answer).startswith("BUSYGROUP")


def _is_missing(answer: Any) -> bool:
    return isinstance(answer, ResponseError) and (is_group_gone(answer) or is_key_taken(answer))
