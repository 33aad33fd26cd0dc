"""Producers that replace, delete and rewrite files of a table that they have read a while ago.

What they ask for may conflict with what has come since: then they are told so, and go on with
another epoch, as a job that runs again. The publisher is the real one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from committer.errors import FrazilError, NoSuchTableError, PublishError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ports.pointer_swap import LoadedTable
from committer.request.commit_request import Fingerprint, Producer
from committer.request.needs import Needs, Operation
from committer.request.table_identifier import TableIdentifier
from tests.simulation.chance import rng
from tests.simulation.engine import Worker
from tests.simulation.ports import Ports
from tests.simulation.producers import ROWS, build_data_file, open_publisher, write_files
from workers.requests.publisher import Publisher, PublishPolicy
from workers.requests.written_epoch import WrittenEpoch

_OPERATIONS: tuple[Operation, ...] = ("append", "overwrite", "overwrite", "delete", "rewrite-files")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangerPlan:
    """The plan of a query. `waits`: each epoch for the answer to the last, as Spark's jobs do.
    `think_s_max`: from a job's scan to its request. `is_ordered`: its epochs land in order."""

    epochs: int = 8
    pause_s: float = 1.0
    think_s_max: float = 8.0
    waits: bool = True
    is_ordered: bool = False
    is_sequential: bool = True


class Changer:
    """One query of jobs that change a table."""

    def __init__(
        self, name: str, identifier: TableIdentifier, plan: ChangerPlan, *, seed: int
    ) -> None:
        self.name = name
        self._identifier = identifier
        self._plan = plan
        self._seed = seed
        self._next_epoch = 0

    async def run(self, ports: Ports) -> None:
        """Run job after job. One that fails in the middle runs again, on the table as it is then;
        its epoch may have landed, or come to land, with what its first run has asked for."""
        publisher = open_publisher(ports)
        while self._next_epoch < self._plan.epochs:
            await ports.world.sleep(self._plan.pause_s * 2 * ports.world.jitter())
            epoch = self._next_epoch
            try:
                await self._job(ports, publisher, epoch)
            except NoSuchTableError:
                return
            except PublishError:
                pass  # the job has failed, and the next one is another
            self._next_epoch = epoch + 1

    async def _job(self, ports: Ports, publisher: Publisher, epoch: int) -> None:
        chance = rng(self._seed, f"{self.name} job {epoch}")
        table = await ports.catalog.load(self._identifier)
        worker = Worker(ports, table, chance)
        live = await _live(worker)
        operation, removed = _choice(chance, live)
        await ports.world.sleep(chance.random() ** 3 * self._plan.think_s_max)
        written = self._written(ports, table, epoch)
        files = _files(table.metadata, written, operation, removed)
        needs = _needs(chance, table.metadata, operation, removed)
        written = replace(written, files=files, operation=operation, needs=needs)
        await write_files(ports, files)
        policy = PublishPolicy(
            on_quarantine="continue",
            wait="committed" if self._plan.waits else "durable",
            wait_timeout_s=60.0,
        )
        receipt = await publisher.publish(written, policy)
        ports.history.told(self.name, receipt)
        if chance.random() < 0.15:
            # The client library has sent it once more: its answer was lost.
            with suppress(FrazilError):
                await publisher.publish(written, policy)

    def _written(self, ports: Ports, table: LoadedTable, epoch: int) -> WrittenEpoch:
        return WrittenEpoch(
            identifier=table.identifier,
            table_uuid=table.metadata.require_uuid(),
            schema_id=table.metadata.current_schema_id,
            producer=Producer(
                id=self.name,
                sequential=self._plan.is_sequential,
                ordered=self._plan.is_ordered,
            ),
            epoch=epoch,
            nonce=ports.world.uuid(),
            fingerprint=Fingerprint(kind="job", value=f"{self.name} {epoch}"),
            files=(),
        )


async def _live(worker: Worker) -> list[DataFile]:
    entries = [one for row in await worker.rows() for one in await worker.entries(row)]
    return [one.data_file for one in entries if one.is_live]


def _choice(
    chance: random.Random, live: Sequence[DataFile]
) -> tuple[Operation, Sequence[DataFile]]:
    operation = chance.choice(_OPERATIONS)
    count = {"append": 0, "delete": 1, "overwrite": chance.randint(1, 2)}.get(operation, 3)
    chosen = chance.sample(list(live), min(count, len(live)))
    return (operation, chosen) if chosen else ("append", ())


def _files(
    metadata: TableMetadata,
    written: WrittenEpoch,
    operation: Operation,
    removed: Sequence[DataFile],
) -> list[DataFile]:
    """Return the files that the job writes: a rewrite keeps all rows."""
    if operation == "delete":
        return []
    rows = sum(one.record_count for one in removed) if operation == "rewrite-files" else ROWS
    return [build_data_file(metadata, written.attempt, "00000", rows=rows)]


def _needs(
    chance: random.Random,
    metadata: TableMetadata,
    operation: Operation,
    removed: Sequence[DataFile],
) -> Needs:
    head = metadata.branch_head()
    if operation == "append" or head is None:
        return Needs()
    needs: dict[str, object] = {
        "removed-data-files": [one.file_path for one in removed],
        "on-conflict": chance.choice(("quarantine", "fail")),
    }
    level = chance.choice((None, "snapshot", "serializable"))
    if operation == "rewrite-files" or (level is not None and operation == "overwrite"):
        needs |= {
            "base-snapshot-id": head.snapshot_id,
            "base-sequence-number": head.sequence_number,
        }
    if level is not None and operation == "overwrite":
        needs["isolation-level"] = level
    return Needs.model_validate(needs)
