"""Fixtures of the tests of the invariants."""

from __future__ import annotations

import pytest

from tests.simulation.misdeeds import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
