"""What the simulation has found in the service: each seed that did, and what it was.

A seed means the same as long as scenarios are drawn the same way. What was mended has a test of
its own beside the code, too.
"""

from __future__ import annotations

import pytest

from tests.simulation.run import play_seed

FOUND = {
    4: "a second write of one micro-batch was taken for the first, which had just landed",
    177: "a doorbell whose object could not be read for a moment was never acknowledged",
    235: "what a consumer held of a shard that it lost and got back was handed to nobody again",
}


@pytest.mark.simulation
@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_stays_mended(seed: int) -> None:
    run = play_seed(seed)
    assert not run.violations, f"once: {FOUND[seed]}; now: {run.violations[0]}"
