"""Asks the catalog now and then whether it answers: an idle committer has no other way to know.

A call that fails for one table says nothing about the catalog, so readiness rests on this question
alone. The inbox is listed by the reconciler, which says how that went.
"""

from __future__ import annotations

from committer.errors import FrazilError, InvalidMetadataError, NoSuchTableError
from committer.ports.catalog import Catalog
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from committer.service.telemetry.health import Health

INTERVAL_S = 30.0
AWAY_INTERVAL_S = 5.0
# That there is no such table is an answer. One read of a pointer is the cheapest question there is.
ASKED = TableIdentifier(("frazil",), "reachability")


class CatalogProbe:
    """Keeps the condition `catalog` up to date until cancelled."""

    def __init__(self, *, catalog: Catalog, world: World, health: Health) -> None:
        self._catalog = catalog
        self._world = world
        self._health = health

    async def run(self) -> None:
        """Ask for ever, more often while there is no answer. The start has just asked."""
        interval_s = INTERVAL_S
        while True:
            await self._world.sleep(interval_s)
            interval_s = INTERVAL_S if await self.ask() else AWAY_INTERVAL_S

    async def ask(self) -> bool:
        """Ask once, and note the answer."""
        try:
            await self._catalog.current_location(ASKED)
        except (NoSuchTableError, InvalidMetadataError):
            pass
        except FrazilError as error:
            self._health.unavailable("catalog", error, now="waiting for it")
            return False
        self._health.returned("catalog")
        return True
