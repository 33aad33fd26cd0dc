"""Modules with `VIRTUAL_TIME = True` run on virtual time, as those of the service do."""

from tests.support.clock.loop_by_module import plain_logs, pytest_asyncio_loop_factories

__all__ = ["plain_logs", "pytest_asyncio_loop_factories"]
