"""Publishes each hostile case to a running committer, a good request before it and one behind it.

The command makes tables in a namespace of its own. At the end its requests are removed from the
quarantine, and the tables are dropped; their files stay.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

from committer.cli.committers.committer_status import ask_own_committer
from committer.errors import NotFoundError, QueueKeyTakenError
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Doorbell
from committer.ports.storage import NewObject
from committer.request.request_format import EncodedRequest, line_digest
from committer.request.signature import Keys, choose_key
from committer.service.process.composition import Parts, open_parts, queue_url
from committer.settings.service_settings import Settings
from committer.storage.inbox.inbox_identity import InboxIdentity
from tests.corpus import taken
from tests.corpus.hostile import Hostile, Sent
from tests.corpus.poison import NEIGHBOR_FILES, large_neighbor
from tests.corpus.tables import FLIGHTS, SIGNED, TABLES
from tests.corpus.taken import taken_stream
from tests.support.builders.bad_requests import good
from tests.support.builders.signing import signed

LANDED = "lands"
_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of a case. `found`: a reason code, `lands`, or what else was seen; delays are
    those of the good requests before and behind it, and of a large one, None where one has not
    landed."""

    name: str
    expected: str
    found: str
    delays_ms: tuple[float | None, ...]

    @property
    def is_right(self) -> bool:
        return self.expected == self.found and None not in self.delays_ms


class Against:
    """A running committer, by the settings that it has, and the tables of one run. `keys`: those
    that it verifies signatures with; the first of them that may sign good requests does, if any.
    """

    def __init__(
        self, parts: Parts, tables: dict[str, LoadedTable], keys: Keys, timeout_s: float
    ) -> None:
        self._parts, self.tables, self._timeout_s = parts, tables, timeout_s
        self._identity = InboxIdentity(parts.own_storage, parts.settings.inbox, parts.world)
        example = good(tables[SIGNED], "bad-0").request
        self.key = choose_key(keys, example)
        self.other_keys = [one for one in keys.values() if one.refusal(example)]
        self._sent: list[str] = []
        self.goods = 0

    async def play(self, number: int, hostile: Hostile) -> Row:
        """Publish the case and its neighbors; wait for all verdicts."""
        before = await self._publish_good(f"before-{number}")
        sent = hostile.send(self.tables[hostile.table], f"bad-{number}")
        await self._publish(sent)
        published = [before, await self._publish_good(f"behind-{number}")]
        if hostile.has_large_neighbor:
            published.append(await self._publish_large(f"large-{number}"))
        delays_ms = await asyncio.gather(*(self._delay_ms(*one) for one in published))
        found = await self._verdict(sent)
        expected = LANDED if hostile.reason is None else hostile.reason.value
        return Row(hostile.name, expected, found, tuple(delays_ms))

    async def play_taken_stream(self) -> Row:
        """Take the key of a stream from the committer, which reports it. A request published
        meanwhile lands later; one published after the key is back lands as soon as ever.
        """
        url = queue_url(self._parts.settings)
        assert url is not None, "without a queue there is no such case"
        identity = await self._identity.ensure()
        table_uuid = self.tables[FLIGHTS].metadata.require_uuid()
        async with taken_stream(url, identity, table_uuid) as key:
            during = await self._publish_good("while-taken")
            during_ms, is_named = await asyncio.gather(
                self._delay_ms(*during), self._until(partial(self._is_named, key))
            )
        behind_ms = await self._delay_ms(*await self._publish_good("behind-taken"))
        found = LANDED if is_named else "no condition that names the key"
        return Row(taken.NAME, LANDED, found, (during_ms, behind_ms))

    async def _is_named(self, key: str) -> bool:
        """Return whether the committer reports the key, if its endpoints can be reached."""
        answer = await asyncio.to_thread(ask_own_committer, self._parts.settings)
        if answer is None or answer.status is None:
            return True
        return any(key in component for component in answer.status.conditions)

    async def _publish_good(self, producer: str) -> tuple[str, float]:
        return await self._publish_right(good(self.tables[FLIGHTS], producer), 1)

    async def _publish_large(self, producer: str) -> tuple[str, float]:
        right = large_neighbor(self.tables[FLIGHTS], producer)
        return await self._publish_right(right, NEIGHBOR_FILES)

    async def _publish_right(self, right: EncodedRequest, files: int) -> tuple[str, float]:
        right = right if self.key is None else signed(right, self.key)
        started_s = time.monotonic()
        await self._publish(Sent.of(right))
        self.goods += files
        return right.request.inbox_key, started_s

    async def _publish(self, sent: Sent) -> None:
        """Publish as a client that checks nothing: objects, then the request, then its doorbell."""
        self._sent.append(sent.key)
        location = self._parts.inbox.location(sent.key)
        if sent.make is not None:
            path = Path(location.removeprefix("file://"))
            path.parent.mkdir(parents=True, exist_ok=True)
            sent.make(path)
        else:
            for one in (*sent.objects, NewObject(location, sent.content)):
                await self._parts.storage.create((one,))
        if self._parts.queue is not None:
            told = sent.content if sent.told is None else sent.told
            # As a client does: it is durable, and is found.
            with suppress(QueueKeyTakenError):
                await self._parts.queue.announce(
                    [_bell(sent.key, told, is_small=sent.make is None)]
                )

    async def _delay_ms(self, key: str, started_s: float) -> float | None:
        """Return how long a good request takes to leave the inbox; None if that takes too long."""
        if not await self._until(lambda: self._has_left(key)):
            return None
        return (time.monotonic() - started_s) * 1_000

    async def _verdict(self, sent: Sent) -> str:
        found = "no verdict in time"

        async def is_known() -> bool:
            nonlocal found
            # Looked at first: a record is written before the request leaves the inbox.
            has_landed = sent.make is None and await self._has_left(sent.key)
            try:
                found = (await self._parts.quarantine.record(sent.key)).reason
            except NotFoundError:
                if not has_landed:
                    return False
                found = LANDED
            return True

        await self._until(is_known)
        return found

    async def _has_left(self, key: str) -> bool:
        return not await self._parts.inbox.contains(key)

    async def _until(self, holds: Callable[[], Awaitable[bool]]) -> bool:
        end_s = time.monotonic() + self._timeout_s
        while not await holds():
            if time.monotonic() > end_s:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    async def files(self) -> int:
        """Return how many files the tables have now."""
        found = 0
        for table in self.tables.values():
            head = (await self._parts.catalog.load(table.identifier)).metadata.current_snapshot
            found += int((head.summary or {})["total-data-files"]) if head else 0
        return found

    async def clean(self) -> None:
        """Discard the run's requests in quarantine, and drop its tables."""
        for key in self._sent:
            await self._parts.replays.discard(key)
        for table in self.tables.values():
            await self._parts.catalog.drop_table(table.identifier)


@asynccontextmanager
async def opened(settings: Settings, timeout_s: float) -> AsyncIterator[Against]:
    """Open the parts of a committer with these settings, and create tables in its catalog."""
    # Another name than the committer's: a queue has one consumer of each.
    queue = settings.queue.model_copy(update={"consumer": f"corpus-{uuid4().hex[:8]}"})
    parts = await open_parts(settings.model_copy(update={"queue": queue}), create=False)
    try:
        namespace = f"corpus_{uuid4().hex[:12]}"
        tables = {
            name: build(f"{namespace}.{name}", warehouse=settings.catalog.warehouse)
            for name, build in TABLES.items()
        }
        await parts.catalog.create_namespace((namespace,))
        for table in tables.values():
            await parts.catalog.create_table(table)
        keys = await parts.key_file.read() if parts.key_file is not None else {}
        yield Against(parts, tables, keys, timeout_s)
    finally:
        await parts.close()


async def play_all(against: Against, cases: Sequence[Hostile], at_once: int) -> AsyncIterator[Row]:
    """Yield the row of each case, in their order; so many cases are under way at a time."""
    free = asyncio.Semaphore(at_once)

    async def play(number: int, hostile: Hostile) -> Row:
        async with free:
            return await against.play(number, hostile)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(play(*one)) for one in enumerate(cases)]
        for task in tasks:
            yield await task


def _bell(key: str, content: bytes, *, is_small: bool) -> Doorbell:
    return Doorbell(
        table_uuid=UUID(key.partition("/")[0]),
        inbox_key=key,
        digest=line_digest(content),
        content=content if is_small and len(content) <= 64 * 1024 else None,
        reply_to="corpus",
    )
