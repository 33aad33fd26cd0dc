"""The service runs on virtual time where a module asks for it."""

from __future__ import annotations

from tests.support.clock.loop_by_module import plain_logs, pytest_asyncio_loop_factories

__all__ = ["plain_logs", "pytest_asyncio_loop_factories"]
