"""Service tests run on virtual time: a wait of an hour takes no time at all."""

from __future__ import annotations

import pytest

from tests.virtual_time import VirtualTimePolicy


@pytest.fixture(scope="session")
def event_loop_policy() -> VirtualTimePolicy:
    return VirtualTimePolicy()
