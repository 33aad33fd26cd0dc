"""A harness whose committers are forked from a process that has imported everything, and die where
they are told to. A start takes a fraction of what it takes from nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from tests.integration import dying_committer
from tests.support.integration.real_harness import RealHarness, living_in

# Each commit merges manifests, expires the snapshots before it and drops old metadata files.
PROPERTIES = {
    "commit.manifest.min-count-to-merge": "2",
    "frazil.expire.enabled": "true",
    "history.expire.max-snapshot-age-ms": "1",
    "history.expire.min-snapshots-to-keep": "1",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}
# Another committer soon takes over what one has held without a sign of life.
SETTINGS = {"FRAZIL_COMMIT__MIN_INTERVAL_MS": "20", "FRAZIL_SERVICE__LEASE_S": "1"}
_PRELOADED = [
    "pytest",  # what the parent was started with is imported in each child
    "committer.cli.context.command_session",
    "committer.service.process.startup",
    "sqlalchemy.dialects.sqlite",
    "tests.integration.dying_committer",
]


class Forked:
    """A process of the fork server, as `subprocess` shows one."""

    def __init__(self, process: ForkServerProcess) -> None:
        process.start()
        self._process = process

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("committer", timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


@dataclass(slots=True, kw_only=True)
class DyingHarness(RealHarness):
    """As `RealHarness`. `dies`: where the committer that is launched next dies, and how."""

    dies: dict[str, str] = field(default_factory=dict)

    @property
    def due(self) -> Path:
        """The file whose being there makes calls count."""
        return self.folder / "due"

    @property
    def calls_seen(self) -> Path:
        return self.folder / "calls"

    def environment(self) -> dict[str, str]:
        places = {"DIES_WHEN": str(self.due), "CALLS_SEEN": str(self.calls_seen)}
        return RealHarness.environment(self) | places | self.dies

    def launch(self) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        arguments: Any = (self.environment(), str(self.log_file), str(self.folder))
        process = context.Process(target=dying_committer.run, args=arguments)
        self.committer = Forked(process)

    def tell_when(self, due: bool) -> None:
        """Note whether calls count from now on."""
        if due:
            self.due.touch()
        else:
            self.due.unlink(missing_ok=True)

    def has_died(self) -> bool:
        """Return whether the committer died at its point. Errors: `AssertionError` elsewhere."""
        assert self.committer is not None
        code = self.committer.poll()
        assert code in (None, dying_committer.EXIT_CODE), self.log_file.read_text()[-2000:]
        return code is not None

    def calls(self) -> tuple[dict[str, bool], dict[str, bool]]:
        """Return the calls so far, before they counted and since: their names in order of
        appearance, and whether one was about several objects.
        """
        early: dict[str, bool] = {}
        due: dict[str, bool] = {}
        lines = self.calls_seen.read_text().splitlines() if self.calls_seen.exists() else []
        for line in lines:
            calls, name = due if line[0] == "+" else early, line[2:]
            calls[name] = calls.get(name, False) or line[1] == "*"
        return early, due


@contextmanager
def dying_harness(**variables: str) -> Iterator[DyingHarness]:
    """Start a harness with a queue server and no committer yet. `variables`: more settings."""
    with living_in(lambda folder: DyingHarness(folder, variables)) as harness:
        yield harness
