"""I23 is broken on purpose, and seen to notice; what may wait is seen to be excused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from committer.storage.inbox.inbox import QuarantineRecord
from tests.simulation.faults import Call, Fault, Faults
from tests.simulation.liveness import STANDSTILL_S, Liveness
from tests.simulation.loop import SimLoop
from tests.simulation.misdeeds import Bench
from tests.simulation.process import Stage
from tests.simulation.trace import Trace
from tests.simulation.world import START_MS
from tests.support.builders.request_builders import build_request, ordered
from tests.support.builders.transactions import build_group

WAIT_S = 60.0
STEP_S = 5.0
A_WHILE = int(STANDSTILL_S / STEP_S) + 1


class Watch:
    """Lets time pass for a liveness that watches a bench, on which nothing happens by itself."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self._loop = bench, SimLoop(0)
        self.faults = Faults(0)
        bench.history.now_ms = lambda: START_MS + int(self._loop.time() * 1000)
        trace = Trace(self._loop.time)
        self.stage = Stage(0, self._loop, self.faults, trace, bench.history)
        self.liveness = Liveness(
            bench.invariants, self.stage, (), interval_s=1.0, transaction_wait_s=WAIT_S
        )

    def pass_time(self, steps: int = A_WHILE) -> set[str]:
        """Return what is broken after so many looks."""
        for _ in range(steps):
            self._loop.clock.now_s += STEP_S
            self.liveness.look()
        return self.bench.found()

    def close(self) -> None:
        self._loop.close()


@pytest.fixture
def watch(bench: Bench) -> Iterator[Watch]:
    watch = Watch(bench)
    yield watch
    watch.close()


async def publish(bench: Bench, requests: Sequence[EncodedRequest]) -> None:
    for sealed in requests:
        await bench.inbox.put(sealed)


async def two_tables(bench: Bench) -> list[LoadedTable]:
    return [await bench.create_table(), await bench.create_table(name="db.trains")]


async def test_a_request_that_stands_still_breaks_i23(bench: Bench, watch: Watch) -> None:
    await bench.publish(await bench.create_table())
    assert watch.pass_time(A_WHILE - 1) == set()
    assert watch.pass_time(2) == {"I23"}
    assert len(bench.history.violations) == 1


async def test_the_bound_begins_anew_with_each_fault(bench: Bench, watch: Watch) -> None:
    await bench.publish(await bench.create_table())
    for number in range(3):
        assert watch.pass_time(A_WHILE - 1) == set()
        watch.faults.count(Call("committer-0", "catalog.swap", number), Fault.ERROR_BEFORE)
    watch.stage.outages.add("catalog")
    assert watch.pass_time(3 * A_WHILE) == set()
    watch.stage.outages.clear()
    assert watch.pass_time(A_WHILE + 1) == {"I23"}


async def test_a_request_that_others_pass_without_end_breaks_i23(
    bench: Bench, watch: Watch
) -> None:
    table = await bench.create_table()
    await bench.publish(table, producer="starved")
    for number in range(3 * A_WHILE):
        sealed = await bench.publish(table, producer=f"other-{number}")
        assert watch.pass_time(1) <= {"I23"}
        await bench.commit(table, sealed)
        await bench.inbox.delete([sealed.key])
    assert bench.found() == {"I23"}
    assert {one.text.split("/")[1] for one in bench.history.violations} == {"starved"}


async def test_a_table_of_which_each_request_lands_in_its_turn_breaks_nothing(
    bench: Bench, watch: Watch
) -> None:
    table = await bench.create_table()
    requests = [await bench.publish(table, producer=f"p{one}") for one in range(3 * A_WHILE)]
    watch.liveness.interval_s = STEP_S
    for sealed in requests:
        assert watch.pass_time(1) == set()
        await bench.commit(table, sealed)
        await bench.inbox.delete([sealed.key])


async def test_a_complete_transaction_that_stands_still_breaks_i23(
    bench: Bench, watch: Watch
) -> None:
    first, second = build_group(await two_tables(bench))
    await publish(bench, [first])
    assert watch.pass_time() == set()
    await publish(bench, [second])
    assert watch.pass_time(A_WHILE - 1) == set()
    assert watch.pass_time(2) == {"I23"}


@pytest.mark.parametrize("second_is", ["missing", "refused", "discarded"])
async def test_an_incomplete_transaction_has_its_own_wait_on_top(
    bench: Bench, watch: Watch, second_is: str
) -> None:
    first, second = build_group(await two_tables(bench))
    await publish(bench, [first] if second_is == "missing" else [first, second])
    if second_is != "missing":
        record = QuarantineRecord(
            key=second.key, reason=Reason.PLAN_FAILED.value, message="no", quarantined_at_ms=0
        )
        await bench.quarantine.put(record, second.content)
        await bench.inbox.delete([second.key])
    if second_is == "discarded":
        bench.history.discarded.add(second.key)
        await bench.quarantine.delete([second.key])
    assert watch.pass_time(A_WHILE + int(WAIT_S / STEP_S) - 1) == set()
    assert watch.pass_time(2) == {"I23"}


async def test_an_ordered_epoch_waits_for_a_lower_one_without_a_bound(
    bench: Bench, watch: Watch
) -> None:
    table = await bench.create_table()
    lower, higher = (ordered(build_request(table, epoch=epoch)) for epoch in (0, 1))
    await publish(bench, [lower, higher])
    record = QuarantineRecord(
        key=lower.key, reason=Reason.PLAN_FAILED.value, message="no", quarantined_at_ms=0
    )
    await bench.quarantine.put(record, lower.content)
    await bench.inbox.delete([lower.key])
    assert watch.pass_time(5 * A_WHILE) == set()
