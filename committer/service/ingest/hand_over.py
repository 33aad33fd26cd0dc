"""Ends the work on shards that this committer gives up or has lost."""

from __future__ import annotations

from committer.service.ingest.intake import Intake
from committer.service.settle.settler import Settler


class TableHandOver:
    """Stops the tables of released shards and settles their finished requests."""

    def __init__(self, intake: Intake, settler: Settler) -> None:
        self._intake = intake
        self._settler = settler

    async def release_shards(self, shards: frozenset[int]) -> None:
        """Return when nothing of these shards is under way any more."""
        if await self._intake.release_shards(shards):
            # So that landed requests are not delivered to the next owner.
            await self._settler.flush()
