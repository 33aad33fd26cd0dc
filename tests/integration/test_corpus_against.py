"""`python -m tests.corpus --against` publishes hostile cases to a real committer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tests.corpus.cases import REFUSED
from tests.corpus.signatures import KNOWN, SIGNATURES
from tests.support.builders.signing import print_keys
from tests.support.integration.real_harness import RealHarness, real_harness

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]


async def play(harness: RealHarness, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command with the settings of the harness."""
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tests.corpus", "--against", *options],
        cwd=ROOT,
        env=harness.environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )


async def test_a_running_committer_gives_each_case_its_reason_and_lands_the_neighbors() -> None:
    with real_harness(FRAZIL_COMMIT__MIN_INTERVAL_MS="50") as harness:
        async with harness.catalog():
            await harness.start()
        played = await play(harness, "--every", "12")
        assert played.returncode == 0, played.stdout[-3000:] + played.stderr
        rows = [line for line in played.stdout.splitlines() if line.count(" ms ") >= 2]
        assert len(rows) > 90
        assert "good requests landed within" in played.stdout
        assert await harness.outstanding() == []
        assert await harness.quarantined() == [], "the command has cleaned up"


@pytest.mark.heavy
async def test_a_stream_that_is_taken_is_named_and_its_requests_land_all_the_same() -> None:
    with real_harness() as harness:
        async with harness.catalog():
            await harness.start()
        played = await play(harness, "--only", "WRONGTYPE")
        assert played.returncode == 0, played.stdout + played.stderr
        assert "1 of 1 cases as expected" in played.stdout
        assert "2 files are in the tables, expected 2" in played.stdout
        assert "left out: forged signatures, as it knows no keys" in played.stdout
        async with Redis.from_url(harness.settings.queue_url, protocol=2) as redis:
            streams = redis.scan_iter("{frazil:*:[0-9][0-9]}")
            kinds = {await redis.type(key) async for key in streams}
            assert kinds == {b"stream"}
            assert [key async for key in redis.scan_iter("*corpus-*")] == []


@pytest.mark.parametrize("required", [pytest.param("false", marks=pytest.mark.heavy), "true"])
async def test_a_committer_that_knows_keys_is_asked_about_forged_signatures(
    tmp_path: Path, required: str
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_bytes(print_keys(*KNOWN))
    with real_harness(
        FRAZIL_SECURITY__KEYS=str(keys),
        FRAZIL_SECURITY__REQUIRE_SIGNATURE=required,
        FRAZIL_COMMIT__MIN_INTERVAL_MS="50",
    ) as harness:
        async with harness.catalog():
            await harness.start()
        played = await play(harness, "--only", "signature")
        assert played.returncode == 0, played.stdout[-3000:] + played.stderr
        forged = sum("signature" in one.name for one in SIGNATURES)
        others = 0 if required == "true" else sum("signature" in one.name for one in REFUSED)
        count = forged + others
        assert f"{count} of {count} cases as expected" in played.stdout
        assert ("must be signed" in played.stdout) == (required == "true")
