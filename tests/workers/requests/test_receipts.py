"""What the ledger of a table tells of an epoch before it is published again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from committer.request.commit_request import Fingerprint
from tests.support.workers.publishing import Bench, build_bench
from workers.requests.receipts import landed_before
from workers.requests.written_epoch import WrittenEpoch


async def found(bench: Bench, written: WrittenEpoch) -> bool:
    table = await bench.publisher.load_table(written.identifier)
    return landed_before(table.metadata, written) is not None


async def test_another_attempt_at_an_epoch_that_landed_has_landed_before() -> None:
    bench = await build_bench()
    assert not await found(bench, bench.written(epoch=1))
    await bench.land(bench.written(epoch=1), attempt=1)
    assert await found(bench, bench.written(epoch=1, attempt=2))
    assert not await found(bench, bench.written(epoch=2, attempt=2))


@pytest.mark.parametrize(
    "other",
    [
        lambda written: replace(written, branch="audit"),
        lambda written: replace(written, table_uuid=UUID(int=77)),
        lambda written: replace(written, fingerprint=Fingerprint(kind="spark-offsets", value="x")),
    ],
)
async def test_what_is_another_epoch_in_any_way_has_not_landed(
    other: Callable[[WrittenEpoch], WrittenEpoch],
) -> None:
    bench = await build_bench()
    written = bench.written(epoch=1)
    await bench.land(written, attempt=1)
    assert not await found(bench, other(written))


async def test_an_epoch_whose_content_the_ledger_forgot_is_not_taken_for_the_same() -> None:
    bench = await build_bench()
    await bench.land(bench.written(epoch=1), attempt=1, is_remembered=False)
    assert not await found(bench, bench.written(epoch=1, attempt=2))
