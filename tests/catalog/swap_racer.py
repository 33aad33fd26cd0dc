"""One process of a race: swaps of one table, each from what is current, until enough have won."""

from __future__ import annotations

import asyncio
from multiprocessing.synchronize import Barrier

from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.ports.pointer_swap import Committed, Conflict
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage
from tests.support.builders.table_builders import build_swap


def race(uri: str, table: str, name: str, wins: int, start: Barrier) -> None:
    """Win `wins` swaps once all are ready; each sets the property `<name>-<n>` of the table."""
    start.wait()
    asyncio.run(_race(uri, TableIdentifier.parse(table), name, wins))


async def _race(uri: str, identifier: TableIdentifier, name: str, wins: int) -> None:
    storage = LocalStorage()
    catalog = await SqlCatalog.open(uri=uri, name="frazil", storage=storage)
    won = 0
    while won < wins:
        swap = build_swap(await catalog.load(identifier), properties={f"{name}-{won}": "won"})
        await storage.create(catalog.objects_before(swap))
        match await catalog.swap(swap):
            case Committed():
                won += 1
            case Conflict():
                pass
            case answer:
                raise AssertionError(f"neither won nor lost: {answer}")
    await catalog.close()
    await storage.close()
