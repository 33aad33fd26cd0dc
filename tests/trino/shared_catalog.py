"""One catalog that a running Frazil and Trino share."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

import pyarrow as pa

from committer.ports.pointer_swap import LoadedTable
from committer.request.commit_request import Fingerprint, Producer
from tests.support.integration.catalog_real_harness import CatalogRealHarness, catalog_real_harness
from tests.support.integration.traffic import POLICIES, write_rows
from tests.support.servers.trino_client import TrinoClient
from workers.arrow.arrow_schema import arrow_schema
from workers.requests.connections import open_connections
from workers.requests.written_epoch import WrittenEpoch

SCHEMA = "db"
Row = Mapping[str, Any]


@dataclass(slots=True)
class SharedCatalog:
    """A committer that runs, and a client of Trino for the same catalog.

    Each test makes tables of its own, by names that no other test uses.
    """

    harness: CatalogRealHarness
    trino: TrinoClient
    _epochs: Iterator[int] = field(default_factory=count)

    def command(self, *words: str) -> str:
        """Run the command `frazil`; return what it prints. Errors: `AssertionError` if it fails."""
        ended = subprocess.run(
            [sys.executable, "-m", "committer", *words],
            env=self.harness.environment(),
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def lines(self, *words: str) -> list[dict[str, Any]]:
        """Run a command that prints lines of JSON."""
        return [json.loads(line) for line in self.command(*words, "--json").splitlines()]

    def create(self, name: str, columns: str, *options: str) -> str:
        """Make a table as a user does; return the name that it has in both."""
        table = f"{SCHEMA}.{name}"
        self.command("table", "create", table, "--schema", columns, *options)
        return table

    def load(self, table: str) -> LoadedTable:
        return asyncio.run(self.harness.load(table))

    def publish(self, table: str, *epochs: Sequence[Row]) -> None:
        """Publish rows, each epoch once the one before has been committed."""
        asyncio.run(self._publish(table, epochs))

    async def _publish(self, name: str, epochs: Sequence[Sequence[Row]]) -> None:
        table = await self.harness.load(name)
        schema = arrow_schema(table.metadata.current_schema)
        for rows in epochs:
            batch = pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=schema)
            await self.commit(write_rows(table, self.next_epoch(table), batch))

    async def commit(self, epoch: WrittenEpoch) -> None:
        """Publish an epoch whose files are written; return when it has been committed."""
        connections = await open_connections(self.harness.settings)
        try:
            await connections.publisher.publish(epoch, POLICIES["committed"])
        finally:
            await connections.close()

    def next_epoch(self, table: LoadedTable) -> WrittenEpoch:
        """Return an epoch without files."""
        epoch = next(self._epochs)
        return WrittenEpoch(
            identifier=table.identifier,
            table_uuid=table.metadata.require_uuid(),
            schema_id=table.metadata.current_schema_id,
            producer=Producer(id="query-1", sequential=True),
            epoch=epoch,
            nonce=uuid4(),
            fingerprint=Fingerprint(kind="spark-offsets", value=f"offsets-{epoch}"),
            files=(),
        )


@contextmanager
def shared_catalog(properties: Mapping[str, str], trino: TrinoClient) -> Iterator[SharedCatalog]:
    """Start a committer on a catalog, given by its properties, that Trino has too."""
    with catalog_real_harness(properties) as harness:
        asyncio.run(harness.start())
        yield SharedCatalog(harness, trino)
