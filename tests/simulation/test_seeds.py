"""Thousands of seeds: whatever befalls them, nothing is lost, doubled, or told untruly."""

from __future__ import annotations

import pytest

from tests.simulation.__main__ import replay_command
from tests.simulation.catalogs import SimCatalog
from tests.simulation.run import Totals, play_seed

SEEDS = {
    SimCatalog.DYNAMODB: 1_000,
    SimCatalog.REST: 200,
    SimCatalog.HIVE: 200,
    SimCatalog.FILES: 200,
}
SEEDS_A_TEST = 25
RANGES = [
    pytest.param(
        *(kind, first),
        id=f"{kind.value}-{first}",
        # The second half of each is in `make test-servers`; `make simulate` plays any number.
        marks=pytest.mark.heavy if first > seeds // 2 else (),
    )
    for kind, seeds in SEEDS.items()
    for first in range(1, seeds + 1, SEEDS_A_TEST)
]

pytestmark = pytest.mark.simulation


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
