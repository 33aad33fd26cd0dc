"""The judge excuses a second landing only where other engines have removed every proof of the
first: the ledger's entry, and the snapshot, before a high-water mark knew of the producer.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from committer.iceberg.updates.metadata_update import RemoveProperties, RemoveSnapshots, Update
from committer.ledger_entry import property_key
from committer.plan.ledger.high_water_mark import HighWaterMark
from committer.plan.ledger.state import TableState
from committer.ports.pointer_swap import LoadedTable
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from tests.simulation.misdeeds import INBOX, OURS, Bench

UNSET = RemoveProperties((property_key("query-1"),))
EXPIRE = RemoveSnapshots((1_001,))
OTHERS, MARK = "others", "mark"
# In each order that other engines remove the proofs in.
ALL_PROOFS = ([(OTHERS, EXPIRE), (OTHERS, UNSET)], [(OTHERS, UNSET), (OTHERS, EXPIRE)])
Steps = Sequence[tuple[str, Update | None]]


@pytest.mark.parametrize("steps", ALL_PROOFS, ids=["expired first", "unset first"])
async def test_what_no_proof_is_left_of_may_land_again(bench: Bench, steps: Steps) -> None:
    assert await _found_of_landing_again(bench, steps) == set()


@pytest.mark.parametrize(
    "steps",
    [
        [(MARK, None), (OTHERS, EXPIRE), (OTHERS, UNSET)],
        [(OTHERS, EXPIRE), (MARK, None), (OTHERS, UNSET)],
        [(OTHERS, UNSET)],
        [(OTHERS, EXPIRE)],
        [(OURS, EXPIRE), (OTHERS, UNSET)],
        [(OTHERS, EXPIRE), (OTHERS, RemoveProperties((property_key("query-2"),)))],
    ],
    ids=[
        "the mark knows it",
        "the mark knows it since the expiry",
        "its snapshot proves it",
        "its entry proves it",
        "Frazil expired it",
        "another entry went",
    ],
)
async def test_what_any_proof_is_left_of_must_not_land_again(bench: Bench, steps: Steps) -> None:
    assert "I3" in await _found_of_landing_again(bench, steps)


async def _found_of_landing_again(bench: Bench, steps: Steps) -> set[str]:
    """Land a request and another's, take these steps, and land the first again."""
    table = await bench.create_table()
    one = await bench.publish(table)
    await bench.commit(table, one)
    table = await bench.commit(table, await bench.publish(table, producer="query-2"))
    for name, update in steps:
        if update is None:
            await _write_mark(bench, table)
            continue
        bench.history.foreign = {OURS} if name == OTHERS else set()
        table = await bench.swap(table, update)
    bench.history.foreign.clear()
    assert bench.found() == set()
    await bench.commit(table, one)
    return bench.found()


async def _write_mark(bench: Bench, table: LoadedTable) -> None:
    store = HighWaterMarkStore.at(bench.server, INBOX)
    assert await store.keep(HighWaterMark.of(TableState.of(table)))
