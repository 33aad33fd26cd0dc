"""Steps of both acts of the demo: wait for the committer, watch until all requests have landed."""

from __future__ import annotations

import asyncio

from committer.demo.demo_view import ProgressView
from committer.demo.programs.watch import Watch

DRAIN_TIMEOUT_S = 30.0
_READY_S_MAX = 60.0
# Two Sparks that start on a busy machine are silent for long.
_QUIET_S_MAX = 300.0


async def until_ready(watch: Watch) -> None:
    """Wait until the committer takes requests. Errors: those of `Watch.looks`."""
    async for progress in watch.looks(quiet_s_max=_READY_S_MAX):
        if progress.committer_ready:
            return


async def watch_to_the_end(watch: Watch, view: ProgressView) -> None:
    """Show the progress until all applications have ended and all that they published is in the
    table. Errors: those of `Watch.looks`."""
    clock = asyncio.get_running_loop().time
    started_s = clock()
    with view as shown:
        async for progress in watch.looks(quiet_s_max=_QUIET_S_MAX):
            done = watch.applications_ended and progress.is_settled
            shown.update(progress, clock() - started_s, last=done)
            if done:
                return
