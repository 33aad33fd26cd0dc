"""Polls the catalog: an idle committer has no other way to know whether it answers.

A call that fails for one table says nothing about the catalog, so readiness rests on this question
alone. The inbox is listed by the reconciler, which says how that went.
"""

from __future__ import annotations

from committer.errors import FrazilError, InvalidMetadataError, NoSuchTableError
from committer.place_threads import caller
from committer.ports.catalog import Catalog
from committer.request.table_identifier import TableIdentifier
from committer.service.telemetry.health import Health

INTERVAL_S = 30.0
AWAY_INTERVAL_S = 5.0
# One read of a pointer is the cheapest call. "No such table" proves that the catalog answers.
ASKED = TableIdentifier(("frazil",), "reachability")


async def keep_asking(catalog: Catalog, health: Health) -> None:
    """Keep the condition `catalog` up to date until canceled: ask more often while there is no
    answer. The start has just asked.
    """
    caller.set("the catalog")  # of this task
    interval_s = INTERVAL_S
    while True:
        await health.world.sleep(interval_s)
        interval_s = INTERVAL_S if await _answers(catalog, health) else AWAY_INTERVAL_S


async def _answers(catalog: Catalog, health: Health) -> bool:
    """Ask once, and note the answer."""
    try:
        await catalog.current_location(ASKED)
    except (NoSuchTableError, InvalidMetadataError):
        pass
    except FrazilError as error:
        health.unavailable("catalog", error, mitigation="retrying")
        return False
    health.recovered("catalog")
    return True
