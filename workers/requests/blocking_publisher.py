"""The publisher for processes without an event loop: Spark's Python workers on the driver.

Spark reuses those processes, but makes a new writer for each micro-batch, so connections are kept
here, per process and settings. A forked process starts with none: sockets are not shared.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from committer.errors import FrazilError
from committer.place_threads import PlaceLoop
from committer.ports.pointer_swap import LoadedTable
from committer.ports.table_credentials import VendedCredential
from committer.request.table_identifier import TableIdentifier
from workers.requests.open_tables import open_tables
from workers.settings.worker_settings import WorkerSettings

if TYPE_CHECKING:
    from committer.creation.create_table import NewTable
    from committer.request.receipt_model import Receipt
    from workers.requests.connections import Connections
    from workers.requests.publisher import PublishPolicy
    from workers.requests.written_epoch import WrittenEpoch

_log = logging.getLogger("frazil.workers")


class BlockingPublisher:
    """A publisher with an event loop of its own. Used by one thread at a time.

    The first request imports and opens the inbox and the queue, as the process that plans a write
    only looks at tables; the first look at a table opens the catalog.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self._tables = open_tables(settings)
        self._runner = asyncio.Runner(loop_factory=PlaceLoop)
        self._connections: Connections | None = None

    def now_ms(self) -> int:
        """Return the time of the wall clock, in Unix milliseconds."""
        return self._tables.world.now_ms()

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Load a table, as `Publisher.load_table`."""
        return self._runner.run(self._tables.cache.current(identifier))

    def create_table(self, new: NewTable) -> LoadedTable:
        """Create a table, and log which snapshots it keeps.

        Errors: as `committer.creation.create_table.create_table`.
        """
        from committer.creation.create_table import create_table
        from committer.creation.retention_notice import retention_notice

        tables, settings = self._tables, self._tables.settings
        catalog = self._runner.run(tables.catalog())
        created = self._runner.run(
            create_table(
                catalog,
                tables.world,
                new,
                place=settings.place,
                inbox=settings.inbox,
                locations=settings.locations,
            )
        )
        if notice := retention_notice(new, catalog.capabilities):
            _log.warning("%s", notice)
        return created

    def credential(self, location: str) -> VendedCredential | None:
        """Return what the catalog has vended for a location of the table that was loaded last."""
        return self._runner.run(self._tables.storage.credential(location))

    def publish(self, written: WrittenEpoch, policy: PublishPolicy) -> Receipt:
        """Publish an epoch, as `Publisher.publish`."""
        return self._runner.run(self._publish(written, policy))

    async def _publish(self, written: WrittenEpoch, policy: PublishPolicy) -> Receipt:
        if self._connections is None:
            from workers.requests.connections import connect

            self._connections = connect(self._tables)
        return await self._connections.publisher.publish(written, policy)

    def close(self) -> None:
        self._runner.run((self._connections or self._tables).close())
        self._runner.close()


# Publishers not in use at the moment, by process and settings. Threads of one process (the
# streams of a driver) take different ones.
_idle: dict[tuple[int, WorkerSettings], list[BlockingPublisher]] = {}


@contextmanager
def borrow_publisher(settings: WorkerSettings) -> Iterator[BlockingPublisher]:
    """Lend a publisher of this process, opened if all are in use, and kept for the next caller."""
    idle = _idle.setdefault((os.getpid(), settings), [])
    publisher = idle.pop() if idle else BlockingPublisher(settings)
    try:
        yield publisher
    except FrazilError:
        idle.append(publisher)
        raise
    except BaseException:
        publisher.close()
        raise
    else:
        idle.append(publisher)
