"""Every request lands once, on each catalog's real server, whatever befalls its swap."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.support.catalogs.catalogs import open_harness
from tests.support.service.swap_answers import check_answer, faults_of
from tests.support.service.swap_moments import SwapMoment, moments

pytestmark = [pytest.mark.server, pytest.mark.heavy, pytest.mark.timeout(600)]
ADAPTERS = ("postgres", "postgres-v0", "rest", "glue", "s3tables", "dynamodb", "hive", "hive-2")


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_each_request_lands_once_whatever_befalls_its_swap(
    adapter: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    backend = await open_harness(adapter, tmp_path, request.getfixturevalue)
    try:
        for number, moment in enumerate(moments(faults_of(adapter))):
            print(f"{adapter}: {moment}")
            played = SwapMoment(backend, f"t{number}", moment, start_ms=_start_ms())
            check_answer(adapter, moment, await played.play())
    finally:
        await backend.close()


def _start_ms() -> int:
    """Return when the loop's time was 0: some servers compare times with their own clock."""
    return time.time_ns() // 1_000_000 - int(asyncio.get_running_loop().time() * 1000)
