"""Hundreds of hostile requests inside the live batches of a running service: each is quarantined
alone, with its reason and a sentence, and its neighbors commit in one snapshot.
"""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Sequence

import pytest

from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from committer.request.signature import SigningKey
from committer.service.ingest.consumer import READ_COUNT_MIN
from tests.corpus.cases import DOORBELLS, LANDING, ON_DISK, REFUSED, TOLD
from tests.corpus.hostile import Hostile, Sent
from tests.corpus.inbox import GARBAGE, forged
from tests.corpus.paths import PATHS
from tests.corpus.signatures import KNOWN, SIGNATURES
from tests.corpus.tables import FLIGHTS, TABLES
from tests.support.builders.bad_requests import good
from tests.support.builders.signing import print_keys, signed
from tests.support.service.outside import add_table, assert_committed_together, put_raw, ring
from tests.support.service.service_harness import KEYS, ServiceHarness

VIRTUAL_TIME = True
NEIGHBORS = ("first", "between", "last")
# With their neighbors they are one read of the queue: a round may begin before the next read.
BATCH = READ_COUNT_MIN - len(NEIGHBORS)


def batches(corpus: Sequence[Hostile]) -> list[Sequence[Hostile]]:
    """Split the corpus, with different kinds of hostility in each batch."""
    count = -(-len(corpus) // BATCH)
    return [corpus[number::count] for number in range(count)]


async def open_harness(*keys: SigningKey) -> tuple[ServiceHarness, LoadedTable]:
    """Open a harness with the table of flights."""
    harness, tables = await open_tables(*keys)
    return harness, tables[FLIGHTS]


async def open_tables(*keys: SigningKey) -> tuple[ServiceHarness, dict[str, LoadedTable]]:
    harness = ServiceHarness(has_keys=bool(keys), require_signature=bool(keys))
    if keys:
        await harness.storage.inner.create((NewObject(KEYS, print_keys(*keys)),))
    return harness, {
        name: await add_table(harness, build(f"db.{name}")) for name, build in TABLES.items()
    }


async def publish_all(
    harness: ServiceHarness,
    tables: dict[str, LoadedTable],
    corpus: Sequence[Hostile],
    *,
    announced: bool,
) -> dict[str, Hostile]:
    """Publish all at once, good ones before, between and behind; return each producer's case."""
    table = tables[FLIGHTS]
    sent: dict[str, Hostile] = {}
    await publish_good(harness, table, NEIGHBORS[0])
    for number, hostile in enumerate(corpus):
        if number == len(corpus) // 2:
            await publish_good(harness, table, NEIGHBORS[1])
        bad = hostile.send(tables[hostile.table], f"bad-{number}")
        await put(harness, bad, announced=announced)
        sent[bad.key] = hostile
    await publish_good(harness, table, NEIGHBORS[2])
    return sent


async def put(harness: ServiceHarness, bad: Sent, *, announced: bool) -> None:
    await harness.storage.inner.create(bad.objects)
    await put_raw(harness, bad.key, bad.content, announce=announced and bad.told is None)
    if bad.told is not None:
        await ring(harness, bad.key, bad.told)


async def publish_good(harness: ServiceHarness, table: LoadedTable, producer: str) -> None:
    right = good(table, producer)
    await harness.publish(signed(right) if harness.has_keys else right)


async def judge(harness: ServiceHarness, sent: dict[str, Hostile]) -> list[str]:
    """Return the requests with another outcome than the right one."""
    records = {record.key: record for record in await harness.quarantined()}
    wrong = [f"{sent[key].name}: not in quarantine" for key in sent.keys() - records.keys()]
    for key, record in records.items():
        hostile = sent[key]
        if record.reason != hostile.reason:
            wrong.append(f"{hostile.name}: {record.reason}: {record.message}")
        elif not is_a_sentence(record.message):
            wrong.append(f"{hostile.name}: says {record.message!r}")
    return wrong


def is_a_sentence(message: str) -> bool:
    return 15 < len(message) <= 1_001 and message.isprintable()


async def assert_neighbors_committed_together(harness: ServiceHarness) -> None:
    await assert_committed_together(harness, NEIGHBORS)
    assert await harness.outstanding() == []
    assert harness.health.conditions == {}


@pytest.mark.thorough
@pytest.mark.parametrize("announced", [True, False], ids=["announced", "found"])
@pytest.mark.parametrize("number", range(len(batches(REFUSED))))
async def test_hostile_requests_go_to_quarantine_and_their_neighbors_land_together(
    number: int, announced: bool
) -> None:
    harness, tables = await open_tables()
    sent = await publish_all(harness, tables, batches(REFUSED)[number], announced=announced)
    await harness.run_until_settled()
    assert await judge(harness, sent) == []
    await assert_neighbors_committed_together(harness)


async def test_what_looks_hostile_and_is_not_lands() -> None:
    harness, tables = await open_tables()
    for number, right in enumerate(LANDING):
        await put(harness, right.send(tables[right.table], f"right-{number}"), announced=True)
    await harness.run_until_settled()
    assert [(one.key, one.message) for one in await harness.quarantined()] == []
    landed = 0
    for table in tables.values():
        metadata = (await harness.catalog.inner.load(table.identifier)).metadata
        head = metadata.current_snapshot
        landed += int((head.summary or {})["total-data-files"]) if head else 0
    assert landed == len(LANDING)
    assert await harness.outstanding() == []


TOLD_ALL = (*GARBAGE, *map(forged, DOORBELLS))


@pytest.mark.parametrize("number", range(len(batches(TOLD_ALL))))
async def test_a_hostile_doorbell_cannot_take_a_request_out_of_the_inbox(number: int) -> None:
    """A client with access to the queue alone announces other content under a request's key."""
    harness, table = await open_harness()
    corpus = batches(TOLD_ALL)[number]
    for index, hostile in enumerate(corpus):
        sent = hostile.send(table, f"query-{index}")
        await put(harness, sent, announced=False)
        await ring(harness, sent.key, sent.content)
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == len(corpus)
    assert await harness.outstanding() == []


async def test_a_hostile_doorbell_without_a_request_leaves_no_trace() -> None:
    harness, table = await open_harness()
    await publish_good(harness, table, NEIGHBORS[0])
    for index, hostile in enumerate(batches(DOORBELLS)[0]):
        told = hostile.send(table, f"query-{index}")
        await ring(harness, told.key, told.content)
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 1
    assert (await harness.publisher_queue.depth()).waiting == 0


@pytest.mark.parametrize("number", range(len(batches(SIGNATURES))))
async def test_hostile_signatures_go_to_quarantine_and_their_neighbors_land_together(
    number: int,
) -> None:
    harness, tables = await open_tables(*KNOWN)
    sent = await publish_all(harness, tables, batches(SIGNATURES)[number], announced=True)
    await harness.run_until_settled()
    assert await judge(harness, sent) == []
    await assert_neighbors_committed_together(harness)


HUGE = ("bomb", "doubles", "announces", "limit", "megabyte", "thousand", "levels", "list of lists")
# One request may have 4 MiB of line, and one block of Avro inflate to 32 MiB.
PEAK_BYTES_MAX = 256 * 1024 * 1024


@pytest.mark.thorough
async def test_what_stands_for_gigabytes_is_refused_in_bounded_memory() -> None:
    huge = [one for one in REFUSED if any(word in one.name for word in HUGE)]
    assert len(huge) >= 12
    harness, tables = await open_tables()
    sent = await publish_all(harness, tables, huge, announced=True)
    tracemalloc.start()
    try:
        await harness.run_until_settled()
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert await judge(harness, sent) == []
    assert peak_bytes < PEAK_BYTES_MAX


def test_the_corpus_is_as_large_as_it_says_and_no_two_are_alike() -> None:
    corpus = (*REFUSED, *SIGNATURES, *ON_DISK, *TOLD)
    names = Counter(hostile.name for hostile in (*corpus, *LANDING))
    assert [name for name, count in names.items() if count > 1] == []
    assert len(corpus) >= 1_000
    assert len(PATHS) >= 100
