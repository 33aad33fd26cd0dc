"""Thousands of seeds: whatever befalls them, nothing is lost, doubled, or told untruly."""

from __future__ import annotations

import pytest

from tests.simulation.__main__ import replay_command
from tests.simulation.run import Totals, play_seed

SEEDS = 2_000
SEEDS_A_TEST = 25

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("first_seed", range(1, SEEDS + 1, SEEDS_A_TEST))
def test_no_seed_breaks_a_promise(first_seed: int) -> None:
    totals = Totals()
    for seed in range(first_seed, first_seed + SEEDS_A_TEST):
        run = play_seed(seed)
        totals.add(run)
        assert not run.violations, f"{run.violations[0]}\n{replay_command(seed)}"
    print(totals.line())
    assert totals.commits > SEEDS_A_TEST
    assert totals.fired.total() > SEEDS_A_TEST
