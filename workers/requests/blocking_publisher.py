"""The publisher for processes without an event loop: Spark's Python workers on the driver.

Spark reuses those processes, but makes a new writer for each micro-batch, so connections are kept
here, per process and settings. A forked process starts with none: sockets are not shared.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

from committer.creation.create_table import NewTable
from committer.errors import FrazilError
from committer.ports.pointer_swap import LoadedTable
from committer.ports.table_credentials import VendedCredential
from committer.request.receipt_model import Receipt
from committer.request.table_identifier import TableIdentifier
from workers.requests.connections import open_connections
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch
from workers.settings.worker_settings import WorkerSettings


class BlockingPublisher:
    """A publisher with an event loop of its own. Used by one thread at a time."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        try:
            self._connections = self._runner.run(open_connections(settings))
        except BaseException:
            self._runner.close()
            raise

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Load a table, as `Publisher.load_table`."""
        return self._runner.run(self._connections.publisher.load_table(identifier))

    def create_table(self, new: NewTable) -> LoadedTable:
        """Create a table. Errors: as `committer.creation.create_table.create_table`."""
        return self._runner.run(self._connections.create_table(new))

    def credential(self, location: str) -> VendedCredential | None:
        """Return what the catalog has vended for a location of the table that was loaded last."""
        return self._runner.run(self._connections.storage.credential(location))

    def publish(self, written: WrittenEpoch, policy: PublishPolicy) -> Receipt:
        """Publish an epoch, as `Publisher.publish`."""
        return self._runner.run(self._connections.publisher.publish(written, policy))

    def close(self) -> None:
        self._runner.run(self._connections.close())
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
