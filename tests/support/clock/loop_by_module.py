"""Modules with `VIRTUAL_TIME = True` run on virtual time: a wait of an hour takes no time.

For a `conftest`, which takes both names over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from committer.service.telemetry.log import configure_logs
from tests.support.clock.virtual_time import VirtualTimeLoop

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, LoopFactory] | None:
    module = item.getparent(pytest.Module)
    is_virtual = module is not None and getattr(module.obj, "VIRTUAL_TIME", False)
    return {"virtual": VirtualTimeLoop} if is_virtual else {"real": asyncio.new_event_loop}


@pytest.fixture(autouse=True)
def plain_logs() -> None:
    """Shorten tracebacks: a crash that repeats must not drown in its own rendering."""
    configure_logs("console", "info")
