"""The processes that the demo starts, and their certain end.

Each is a session of its own, so Ctrl-C in a terminal reaches the demo alone, which ends them in
order. Should the demo be killed, the kernel ends them (Linux); a Spark's Java ends with its Python.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from committer.demo.programs.tail import last_lines
from committer.errors import FrazilError
from committer.service.process.child_process import ends_with_parent

_LAST_LINES = 15
_LOOK_S = 0.05


class DemoError(FrazilError):
    """The demo cannot go on; what it started is being stopped."""


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A process with all that it started. Its output goes into `log`."""

    name: str
    log: Path
    process: asyncio.subprocess.Process

    @property
    def exit_code(self) -> int | None:
        return self.process.returncode

    def check(self) -> None:
        """Check the process. Errors: `DemoError` with its last words if it has failed."""
        if self.exit_code:
            raise self.failure(f"{self.name} ended with {_ended_with(self.exit_code)}")

    def failure(self, what: str) -> DemoError:
        """Make an error that shows the end of the log."""
        lines = "\n".join(f"  {line}" for line in last_lines(self.log, _LAST_LINES))
        return DemoError(f"{what}; the end of {self.log}:\n{lines}")

    async def stop(self, grace_s: float) -> int:
        """Ask it to end, then insist; return once nothing of it is left. The exit code."""
        self._signal(signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._wait_for_group()
        self._signal(signal.SIGKILL)
        return await self.process.wait()

    async def _wait_for_group(self) -> None:
        await self.process.wait()
        while self._signal(0):  # noqa: ASYNC110  # no event says so
            await asyncio.sleep(_LOOK_S)

    def _signal(self, number: int) -> bool:
        """Send a signal; False if no process of the group is left."""
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


async def start(
    name: str, command: Sequence[str], *, log: Path, environment: Mapping[str, str]
) -> ChildProcess:
    """Start a program. From the main thread: it ends with the thread that started it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *ends_with_parent(command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environment),
            start_new_session=True,
        )
    return ChildProcess(name, log, process)


def _ended_with(code: int) -> str:
    return f"exit code {code}" if code > 0 else signal.Signals(-code).name
