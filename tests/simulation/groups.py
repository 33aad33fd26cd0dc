"""Clients whose transactions meet: over the same tables in any order, with second attempts of one
epoch, with members in conflict, missing ones, and doorbells that ring late or never.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID, uuid5

from committer.errors import FrazilError, NoSuchTableError, PublishError
from committer.iceberg.entry.data_file import DataFile
from committer.ports.pointer_swap import LoadedTable
from committer.request.commit_request import Producer
from committer.request.needs import Needs
from committer.request.table_identifier import TableIdentifier
from committer.request.transaction import TableName, Transaction, TransactionTable
from tests.simulation.chance import rng
from tests.simulation.ports import Ports
from tests.simulation.producers import ROWS, build_data_file, open_publisher, write_files
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch
from workers.sink.fingerprint import epoch_fingerprint

_NAMES = UUID("6a0c7a55-91f4-52e5-8a36-2d5f0c7b8e13")
_POLICY = PublishPolicy(on_quarantine="continue")
_SILENT_S_MAX = 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """The plan of a client. Shares are of its transactions, or of its requests.

    `repeats`: a member has a second attempt of its epoch. `conflicts`: a member removes a file of
    the epoch before, which may be gone or may never have landed. `forgets`: a member is never
    published. `holds`: a doorbell rings late, or never.
    """

    epochs: int = 6
    pause_s: float = 0.5
    repeats: float = 0.0
    conflicts: float = 0.0
    forgets: float = 0.0
    holds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Member:
    """One attempt of the request of one table, drawn once: a client that restarts sends the same.

    `removes_under`: `on-conflict` of a member that removes; None: it appends. `is_held`: its
    doorbell does not ring at first. `silent_s`: until it does; None: never.
    """

    table: LoadedTable
    number: int
    attempt: int
    removes_under: str | None = None
    is_held: bool = False
    silent_s: float | None = None

    @property
    def name(self) -> str:
        return f"{self.number} {self.attempt}"


class GroupWriter:
    """One client: each of its epochs is one transaction over all of its tables."""

    def __init__(
        self, name: str, identifiers: Sequence[TableIdentifier], plan: GroupPlan, *, seed: int
    ) -> None:
        self.name = name
        self._identifiers = identifiers
        self._plan = plan
        self._seed = seed
        # Durable: the epochs that are published, and the members of the one under way.
        self._done = 0
        self._published: set[str] = set()

    async def run(self, ports: Ports) -> None:
        """Write one transaction after another; a client that restarts goes on with its own."""
        async with asyncio.TaskGroup() as ringing:
            while self._done < self._plan.epochs:
                await ports.world.sleep(self._plan.pause_s * 2 * ports.world.jitter())
                # A client that is refused gives up: the transaction stays incomplete.
                try:
                    await self._write(ports, ringing)
                except (NoSuchTableError, PublishError):
                    pass
                except FrazilError:
                    continue
                self._done += 1
                self._published.clear()

    async def _write(self, ports: Ports, ringing: asyncio.TaskGroup) -> None:
        publisher, silent = open_publisher(ports), open_publisher(ports, rings=False)
        tables = [await publisher.load_table(name) for name in self._identifiers]
        transaction = self._transaction(tables, self._done)
        for member in self._members(tables):
            if member.name in self._published:
                continue
            written = await self._written(ports, member, transaction)
            await (silent if member.is_held else publisher).publish(written, _POLICY)
            self._published.add(member.name)
            if member.is_held and member.silent_s is not None:
                ringing.create_task(_ring_late(ports, written, member.silent_s))

    def _members(self, tables: Sequence[LoadedTable]) -> list[_Member]:
        """Draw the requests of this epoch, in the order in which they are published."""
        plan, chance = self._plan, rng(self._seed, f"{self.name} {self._done}")
        odd, lot = chance.randrange(len(tables)), chance.random()
        is_forgotten = lot < plan.forgets
        is_in_conflict = not is_forgotten and lot < plan.forgets + plan.conflicts
        members = []
        for number, table in enumerate(tables):
            if is_forgotten and number == odd:
                continue
            removes = is_in_conflict and number == odd and self._done > 0
            for attempt in range(1 + (chance.random() < plan.repeats)):
                policy = chance.choice(("fail", "quarantine"))
                is_held, rings = chance.random() < plan.holds, chance.random() < 0.5
                silent_s = _SILENT_S_MAX * chance.random() ** 2 if rings else None
                under = policy if removes else None
                members.append(_Member(table, number, attempt, under, is_held, silent_s))
        chance.shuffle(members)
        return members

    def _transaction(self, tables: Sequence[LoadedTable], epoch: int) -> Transaction:
        named = (
            TransactionTable(
                table=TableName(namespace=table.identifier.namespace, name=table.identifier.name),
                table_uuid=table.metadata.require_uuid(),
            )
            for table in tables
        )
        return Transaction(id=self._uuid(f"transaction {epoch}"), tables=tuple(named))

    async def _written(
        self, ports: Ports, member: _Member, transaction: Transaction
    ) -> WrittenEpoch:
        written = self._unwritten(member, transaction, self._done)
        if member.removes_under is None:
            files = [self._file(member.table, written)]
            await write_files(ports, files)
            return replace(written, files=files)
        # The file of the epoch before: of its first attempt.
        earlier = self._unwritten(replace(member, attempt=0), transaction, self._done - 1)
        path = self._file(member.table, earlier).file_path
        needs = {"removed-data-files": [path], "on-conflict": member.removes_under}
        return replace(written, operation="delete", needs=Needs.model_validate(needs))

    def _unwritten(self, member: _Member, transaction: Transaction, epoch: int) -> WrittenEpoch:
        return WrittenEpoch(
            identifier=member.table.identifier,
            table_uuid=member.table.metadata.require_uuid(),
            schema_id=member.table.metadata.current_schema_id,
            producer=Producer(id=self.name, sequential=False),
            epoch=epoch,
            nonce=self._uuid(f"nonce {epoch} {member.name}"),
            fingerprint=epoch_fingerprint(epoch),
            files=(),
            transaction=transaction,
        )

    def _file(self, table: LoadedTable, written: WrittenEpoch) -> DataFile:
        return build_data_file(table.metadata, written.attempt, "00000", rows=ROWS)

    def _uuid(self, what: str) -> UUID:
        return UUID(int=uuid5(_NAMES, f"{self._seed}/{self.name}/{what}").int)


async def _ring_late(ports: Ports, written: WrittenEpoch, silent_s: float) -> None:
    """Publish once more, as a client whose connection to the queue was away."""
    await ports.world.sleep(silent_s)
    with suppress(FrazilError):
        await open_publisher(ports).publish(written, _POLICY)
