"""The corpus runs on virtual time, as the tests of the service do."""

from __future__ import annotations

from tests.support.clock.loop_by_module import plain_logs, pytest_asyncio_loop_factories

__all__ = ["plain_logs", "pytest_asyncio_loop_factories"]
