"""A metadata file that has grown too large: an alarm, and longer intervals until it fits again."""

from __future__ import annotations

from itertools import pairwise

import pytest

from committer.plan.batch.batch_policy import METADATA_BYTES_MAX
from committer.service.telemetry.log import configure_logs
from tests.support.builders.request_builders import build_request
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


@pytest.mark.thorough
async def test_commits_come_more_slowly_and_the_log_says_why_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("console", "info")  # to the stream that is captured here
    harness = ServiceHarness(min_interval_ms=0)
    almost = {"padding": "x" * (METADATA_BYTES_MAX - 5_000)}
    table = await harness.create_table(properties=almost)
    times: list[float] = []
    async with harness.running():
        for epoch in range(14):
            await harness.publish(build_request(table, epoch=epoch))
            assert await harness.publisher_queue.wait_for_receipts("query-1", wait_s=60.0)
            times.append(harness.world.monotonic_s())
    waits = [after - before for before, after in pairwise(times)]
    assert waits[0] == 0.0
    assert 1.0 <= waits[-1] <= 1.01
    assert waits == sorted(waits)
    assert capsys.readouterr().err.count("table.metadata_large") == 1
