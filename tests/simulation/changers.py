"""Producers that change a table which they have read a while ago: whole files of it, or its rows.

What they ask for may conflict with what has come since: then they are told so, and go on with
another epoch, as a job that runs again. The publisher is the real one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from committer.errors import FrazilError, NoSuchTableError, NotFoundError, PublishError
from committer.iceberg.metadata.snapshot import MAIN
from committer.ports.pointer_swap import LoadedTable
from committer.request.commit_request import Fingerprint, Producer
from committer.request.table_identifier import TableIdentifier
from tests.simulation.chance import rng
from tests.simulation.engine import Worker
from tests.simulation.jobs import OF_FILES, Job, choose
from tests.simulation.ports import Ports
from tests.simulation.producers import open_publisher
from tests.simulation.scan import scan_branch
from tests.simulation.work import Work
from workers.requests.publisher import Publisher, PublishPolicy
from workers.requests.written_epoch import WrittenEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangerPlan:
    """The plan of a query. `waits`: each epoch for the answer to the last, as Spark's jobs do.
    `think_s_max`: from a job's scan to its request. `is_ordered`: its epochs land in order.
    `jobs`: each as often as it is drawn.
    """

    epochs: int = 8
    pause_s: float = 1.0
    think_s_max: float = 8.0
    waits: bool = True
    is_ordered: bool = False
    is_sequential: bool = True
    jobs: Sequence[Job] = OF_FILES
    branch: str = MAIN


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
            except (PublishError, NotFoundError):
                pass  # the job has failed, and the next one is another
            self._next_epoch = epoch + 1

    async def _job(self, ports: Ports, publisher: Publisher, epoch: int) -> None:
        chance = rng(self._seed, f"{self.name} job {epoch}")
        table = await ports.catalog.load(self._identifier)
        scan = await scan_branch(Worker(ports, table, chance), self._plan.branch)
        build = choose(chance, scan, self._plan.jobs)
        await ports.world.sleep(chance.random() ** 3 * self._plan.think_s_max)
        written = self._written(ports, table, epoch)
        work = Work(table.metadata, written.attempt, ports.history.written)
        build(work)
        await work.write(ports)
        written = replace(written, files=work.files, operation=work.operation, needs=work.needs)
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
            branch=self._plan.branch,
        )
