"""Every request lands once, on each adapter without a server, whatever befalls its swap."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.catalogs.catalogs import open_harness
from tests.support.service.swap_answers import check_answer, faults_of
from tests.support.service.swap_moments import SwapMoment, moments

VIRTUAL_TIME = True
pytestmark = pytest.mark.thorough
ADAPTERS = ("memory", "sqlite", "sqlite-v0", "files")


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_each_request_lands_once_whatever_befalls_its_swap(
    adapter: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    backend = await open_harness(adapter, tmp_path, request.getfixturevalue)
    try:
        for number, moment in enumerate(moments(faults_of(adapter))):
            print(f"{adapter}: {moment}")
            check_answer(adapter, moment, await SwapMoment(backend, f"t{number}", moment).play())
    finally:
        await backend.close()
