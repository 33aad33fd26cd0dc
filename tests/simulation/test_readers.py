"""I17: what a run has left of a table, read by engines that know nothing of us."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation.export import export, rehoused
from tests.simulation.scenario import draw_scenario
from tests.simulation.simulation import Simulation
from tests.support.integration.readers import expected, seen_by_duckdb, seen_by_pyiceberg

SEEDS_A_TEST = 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "first_seed", [1, *(pytest.param(first, marks=pytest.mark.heavy) for first in (10, 20))]
)
def test_other_engines_read_what_the_model_has(first_seed: int, tmp_path: Path) -> None:
    read = sum(
        _read_by_others(seed, tmp_path / str(seed))
        for seed in range(first_seed, first_seed + SEEDS_A_TEST)
    )
    assert read >= SEEDS_A_TEST


def _read_by_others(seed: int, folder: Path) -> int:
    """Play a seed, and have its tables read; how many."""
    drawn = draw_scenario(seed)
    # Delete files have no content in a simulation: I21 judges what they delete.
    roles = tuple(role for role in drawn.roles if not role.name.startswith("rows-"))
    scenario = replace(drawn, roles=roles)
    simulation = Simulation(replace(scenario, tables=tuple(rehoused(scenario, folder))))
    assert simulation.run().violations == ()
    read = 0
    for table in scenario.tables:
        view = simulation.invariants.view(table.identifier)
        head = view.metadata.current_snapshot
        # Where older metadata was put back its files may be gone, and readers differ on paths that
        # are there twice.
        if head is None or view.is_restored or view.again or view.current is None:
            continue
        live = view.contents.of(head).live
        # All landed files, except those that other engines have replaced since.
        assert view.landed_paths() - view.taken <= live.keys(), seed
        rows = {path: file.record_count for path, file in live.items()}
        wanted = expected(len(live), export(simulation.servers, view.metadata, rows))
        assert seen_by_pyiceberg(view.current) == wanted, (seed, table.identifier)
        assert seen_by_duckdb(view.current) == wanted, (seed, table.identifier)
        read += 1
    return read
