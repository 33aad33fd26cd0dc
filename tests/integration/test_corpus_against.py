"""`python -m tests.corpus --against` publishes hostile cases to a real committer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from tests.integration.real_house import RealHouse, real_house

ROOT = Path(__file__).parents[2]


async def play(house: RealHouse, *options: str) -> subprocess.CompletedProcess[str]:
    """The command, by the settings of the house."""
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tests.corpus", "--against", *options],
        cwd=ROOT,
        env=house.environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )


async def test_a_running_committer_gives_each_case_its_reason_and_lands_the_neighbours() -> None:
    with real_house(FRAZIL_COMMIT__MIN_INTERVAL_MS="50") as house:
        async with house.catalog():
            await house.start()
        played = await play(house, "--every", "12")
        assert played.returncode == 0, played.stdout[-3000:] + played.stderr
        rows = [line for line in played.stdout.splitlines() if line.count(" ms ") >= 2]
        assert len(rows) > 90
        assert "good requests landed within" in played.stdout
        assert await house.outstanding() == []
        assert await house.quarantined() == [], "the command has cleaned up"
