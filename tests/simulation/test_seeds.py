"""Thousands of seeds: whatever befalls them, nothing is lost, doubled, or told untruly."""

from __future__ import annotations

from typing import get_args

import pytest

from committer.plan.operations.conflict import ConflictCode
from committer.request.needs import Operation
from tests.simulation.__main__ import replay_command
from tests.simulation.catalogs import SimCatalog
from tests.simulation.run import Totals, play_seed
from tests.simulation.scenario import draw_scenario

SEEDS = {
    SimCatalog.DYNAMODB: 1_000,
    SimCatalog.REST: 200,
    SimCatalog.HIVE: 200,
    SimCatalog.FILES: 200,
}
SEEDS_A_TEST = 10
RANGES = [
    pytest.param(
        *(kind, first),
        id=f"{kind.value}-{first}",
        # Most of each are in `make test-servers`; `make simulate` plays any number.
        marks=pytest.mark.heavy if first > seeds // 100 else (),
    )
    for kind, seeds in SEEDS.items()
    for first in range(1, seeds + 1, SEEDS_A_TEST)
]

# Some seconds on an idle machine: a busy one may take a minute for some ranges.
pytestmark = [pytest.mark.simulation, pytest.mark.timeout(300)]


@pytest.mark.parametrize(("kind", "first_seed"), RANGES)
def test_no_seed_breaks_a_promise(kind: SimCatalog, first_seed: int) -> None:
    totals = Totals()
    for seed in range(first_seed, first_seed + SEEDS_A_TEST):
        run = play_seed(seed, kind)
        totals.add(run)
        assert not run.violations, f"{run.violations[0]}\n{replay_command(seed, kind)}"
    print(totals.line())
    assert totals.commits > SEEDS_A_TEST
    assert totals.fired.total() > SEEDS_A_TEST


# The first of those seeds are enough.
SEEDS_OF_OPERATIONS = 150
# The simulated rewrite of manifests names none of them, so nothing is in its way.
NEVER_IN_CONFLICT = {"rewrite-manifests"}
# They are of damaged or expired history, or of a request that is wrong in itself.
NOT_SIMULATED = {
    ConflictCode.OTHER_PARTITION,
    ConflictCode.OTHER_ROWS,
    ConflictCode.PARTIAL_MATCH,
    ConflictCode.HISTORY,
    ConflictCode.UNDECIDED,
}


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_every_operation_lands_and_conflicts_in_some_seed() -> None:
    operations, codes = set(get_args(Operation)), {one.value for one in ConflictCode}
    totals = Totals()
    for seed in range(1, SEEDS_OF_OPERATIONS + 1):
        names = {role.name for role in draw_scenario(seed).roles}
        if names.isdisjoint({"rows-0", "admin-0"}):
            continue
        totals.add(play_seed(seed))
        in_conflict = {operation for operation, _ in totals.conflicts}
        told = {code for _, code in totals.conflicts}
        missing = (
            (operations | {"upkeep"}) - totals.landed.keys(),
            operations - in_conflict - NEVER_IN_CONFLICT,
            codes - told - NOT_SIMULATED,
        )
        if not any(missing):
            return
    raise AssertionError(f"never landed, in conflict, told: {missing}")
