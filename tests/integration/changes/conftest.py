"""One application of Spark for all files that change tables with it: its first statements take as
long as most of a file's tests together.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.changes.harness import ChangesHarness

_running = ExitStack()
_applications: list[ChangesHarness] = []


@pytest.fixture
def shared_application() -> ChangesHarness:
    # Only here, as it needs PySpark.
    from tests.integration.changes.harness import changes_harness

    if not _applications:
        _applications.append(_running.enter_context(changes_harness()))
    return _applications[0]


@pytest.fixture
def harness(shared_application: ChangesHarness) -> ChangesHarness:
    return shared_application


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End the application behind the last of its tests: it has set variables of the process."""
    if (
        not isinstance(nextitem, pytest.Function)
        or "shared_application" not in nextitem.fixturenames
    ):
        _applications.clear()
        _running.close()
