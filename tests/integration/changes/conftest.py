"""One application of Spark for all files that change tables with it: its first statements take as
long as most of a file's tests together.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.changes.harness import ChangesHarness

_running = ExitStack()
_applications: list[ChangesHarness] = []


@pytest.fixture
def harness() -> ChangesHarness:
    # Only here, as it needs PySpark.
    from tests.integration.changes.harness import changes_harness

    if not _applications:
        _applications.append(_running.enter_context(changes_harness()))
    return _applications[0]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Stop the application after the last test of this folder: it sets environment variables."""
    if nextitem is None or nextitem.path.parent != Path(__file__).parent:
        _applications.clear()
        _running.close()
