"""A client that writes to several tables at once: each of its epochs is one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid5

from committer.errors import FrazilError, NoSuchTableError, PublishError
from committer.request.commit_request import Producer
from committer.request.table_identifier import TableIdentifier
from committer.request.transaction import TableName, Transaction, TransactionTable
from tests.simulation.chance import draws
from tests.simulation.ports import Ports
from tests.simulation.producers import ROWS, build_data_file, open_publisher, write_files
from workers.requests.publisher import Publisher, PublishPolicy
from workers.requests.written_epoch import WrittenEpoch
from workers.sink.fingerprint import epoch_fingerprint

_NAMES = UUID("0b1d8c2e-7c55-5a0b-8f0e-1f3c9a52d6aa")


@dataclass(eq=False)
class Transfers:
    """`forgets`: of so many transactions one request is never published."""

    name: str
    identifiers: Sequence[TableIdentifier]
    epochs: int
    pause_s: float
    forgets: float
    seed: int
    # Durable: what is published, by epoch and table.
    done: int = 0
    published: set[tuple[int, TableIdentifier]] = field(default_factory=set)

    async def run(self, ports: Ports) -> None:
        """Write one transaction after another; a client that restarts goes on with its own."""
        publisher = open_publisher(ports)
        while self.done < self.epochs:
            await ports.world.sleep(self.pause_s * 2 * ports.world.jitter())
            try:
                await self._write(ports, publisher, self.done)
            except (NoSuchTableError, PublishError):
                self.done += 1  # the transaction stays incomplete
                continue
            except FrazilError:
                continue
            self.done += 1

    async def _write(self, ports: Ports, publisher: Publisher, epoch: int) -> None:
        tables = [await publisher.load_table(name) for name in self.identifiers]
        named = (
            TransactionTable(
                table=TableName(namespace=table.identifier.namespace, name=table.identifier.name),
                table_uuid=table.metadata.require_uuid(),
            )
            for table in tables
        )
        transaction = Transaction(id=self._uuid(f"transaction {epoch}"), tables=tuple(named))
        chance, which, *_ = draws(self.seed, f"{self.name} forgets {epoch}")
        forgotten = int(which * len(tables)) if chance < self.forgets else None
        for number, table in enumerate(tables):
            if number == forgotten or (epoch, table.identifier) in self.published:
                continue
            written = WrittenEpoch(
                identifier=table.identifier,
                table_uuid=table.metadata.require_uuid(),
                schema_id=table.metadata.current_schema_id,
                producer=Producer(id=self.name),
                epoch=epoch,
                nonce=self._uuid(f"nonce {epoch} {number}"),
                fingerprint=epoch_fingerprint(epoch),
                files=(),
                transaction=transaction,
            )
            files = [build_data_file(table.metadata, written.attempt, "00000", rows=ROWS)]
            await write_files(ports, files)
            await publisher.publish(replace(written, files=files), PublishPolicy())
            self.published.add((epoch, table.identifier))

    def _uuid(self, what: str) -> UUID:
        return UUID(int=uuid5(_NAMES, f"{self.seed}/{self.name}/{what}").int)
