"""Whether a table holds what was published, exactly once, whatever has happened meanwhile.

Of the attempts at one epoch exactly one is in the table, whole. Another attempt with its
fingerprint was superseded: it is nowhere. One with another fingerprint is in quarantine. The
receipts are true, and readers that are not ours see the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from committer.ports.pointer_swap import LoadedTable
from committer.request.receipt_model import ReceiptState
from tests.support.integration.readers import Contents, LiveFile, expected, live_files, seen_by_all
from tests.support.integration.real_harness import RealHarness
from tests.support.integration.traffic import RealProducer, Written


@dataclass(frozen=True, slots=True)
class Exactness:
    """The findings, for a test to print."""

    contents: Contents
    requests: int
    superseded: int
    quarantined: int
    receipts: int


async def check_exactly_once(
    harness: RealHarness, name: str, published: Sequence[RealProducer]
) -> Exactness:
    """Check the table of an idle committer with all readers. Errors: `AssertionError`."""
    found = await check_files(harness, await harness.load(name), published)
    seen = await seen_by_all(harness, name)
    assert seen == dict.fromkeys(seen, found.contents)
    return found


async def check_files(
    harness: RealHarness,
    table: LoadedTable,
    published: Sequence[RealProducer],
    read: Callable[[str], bytes] | None = None,
) -> Exactness:
    """Check all but the contents that other readers see. `read`: reads an object of the table;
    None: they are on this disk."""
    live = live_files(table, read or harness.read)
    by_path = {file.path: file for file in live}
    assert len(by_path) == len(live), "a file is in the table twice"
    landed, losers = _winners(published, by_path)
    wanted = {path for one in landed for path in one.paths}
    assert wanted == by_path.keys(), "there are files that no producer has published"
    clashes = {one.inbox_key for one in losers if not _is_replay(one, landed)}
    table_uuid = str(table.metadata.table_uuid)
    in_quarantine = [
        record.key for record in await harness.quarantined() if record.key.startswith(table_uuid)
    ]
    assert sorted(in_quarantine) == sorted(clashes)
    ids = [each for one in landed for each in one.ids]
    receipts = sum(_check_receipts(producer, landed, by_path) for producer in published)
    return Exactness(
        expected(len(live), ids),
        requests=len(landed) + len(losers),
        superseded=len(losers) - len(clashes),
        quarantined=len(clashes),
        receipts=receipts,
    )


def _winners(
    published: Sequence[RealProducer], live: dict[str, LiveFile]
) -> tuple[list[Written], list[Written]]:
    """Return the attempts in the table, one for each epoch, and all others."""
    landed, losers = [], []
    for producer in published:
        attempts = defaultdict(list)
        for one in producer.written:
            attempts[one.epoch.epoch].append(one)
        for epoch, tries in attempts.items():
            winners = [one for one in tries if not live.keys().isdisjoint(one.paths)]
            what = f"epoch {epoch} of {producer.name}"
            assert winners, f"{what} is lost"
            assert len(winners) == 1, f"{what} has landed {len(winners)} times"
            assert live.keys() >= set(winners[0].paths), f"{what} has landed in part"
            landed += winners
            losers += [one for one in tries if one is not winners[0]]
    return landed, losers


def _is_replay(loser: Written, landed: Sequence[Written]) -> bool:
    """Return whether the landed attempt stands for the same content."""
    [winner] = [one for one in landed if _identity(one) == _identity(loser)]
    return winner.epoch.fingerprint == loser.epoch.fingerprint


def _identity(written: Written) -> tuple[str, int]:
    return written.epoch.producer.id, written.epoch.epoch


def _check_receipts(
    producer: RealProducer, landed: Sequence[Written], live: dict[str, LiveFile]
) -> int:
    """Check that a committed receipt names the snapshot and sequence number of the files."""
    mine = {one.epoch.epoch: one for one in landed if one.epoch.producer.id == producer.name}
    for epoch, receipt in producer.receipts.items():
        if producer.wait == "durable":
            assert receipt.state == ReceiptState.DURABLE
            continue
        assert receipt.state == ReceiptState.COMMITTED
        for path in mine[epoch].paths:
            assert receipt.snapshot_id == live[path].snapshot_id
            assert receipt.sequence_number == live[path].sequence_number
    return len(producer.receipts)
