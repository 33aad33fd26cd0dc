"""Steps of both acts of the demo: wait for the committer, watch until all requests have landed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rich.console import Console

from committer.demo.demo_view import ProgressView, show_applications
from committer.demo.programs.processes import ChildProcess
from committer.demo.programs.watch import Watch

_DRAIN_TIMEOUT_S = 30.0
_READY_S_MAX = 60.0
# Two Sparks that start on a busy machine are silent for long.
_QUIET_S_MAX = 300.0


async def until_ready(watch: Watch) -> None:
    """Wait until the committer takes requests. Errors: those of `Watch.looks`."""
    async for progress in watch.looks(quiet_s_max=_READY_S_MAX):
        if progress.committer_ready:
            return


async def watch_to_the_end(
    watch: Watch, applications: Sequence[ChildProcess], view: ProgressView, console: Console
) -> None:
    """Show the progress until all applications have ended and all that they published is in the
    table; then end the committer. Errors: those of `Watch.looks`."""
    for child in applications:
        watch.add_application(child)
    show_applications(console, [child.process.pid for child in applications])
    clock = asyncio.get_running_loop().time
    started_s = clock()
    with view as shown:
        async for progress in watch.looks(quiet_s_max=_QUIET_S_MAX):
            done = watch.applications_ended and progress.is_settled
            shown.update(progress, clock() - started_s, last=done)
            if done:
                break
    if await watch.committer.stop(_DRAIN_TIMEOUT_S):
        watch.committer.check()
