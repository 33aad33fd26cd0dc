"""A client that makes every kind of change to the rows of a table, with real files.

The table has the columns id, region and text, and others beside, and is partitioned by `region`, or
by it and others. The client knows which rows there are from its caller's model, and where they are
from the files themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from uuid import uuid4

from committer.ledger_entry import MAIN
from committer.request.commit_request import Fingerprint, Producer
from committer.request.needs import Needs, Operation
from committer.request.receipt_model import Receipt
from tests.integration.changing_state import ChangingState, Rows
from tests.support.integration.real_harness import RealHarness
from workers.requests.connections import Connections
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch

_POLICY = PublishPolicy(wait="committed", wait_timeout_s=120.0, on_quarantine="continue")


@dataclass(slots=True)
class Changer:
    """Publishes one change after another of a branch as producer `name`, and waits for each."""

    harness: RealHarness
    connections: Connections
    table_name: str
    name: str
    branch: str = MAIN
    epochs: int = 0
    receipts: list[Receipt] = field(default_factory=list)

    async def publish(self, written: WrittenEpoch) -> Receipt:
        """Publish a change that was written; its receipt says what became of it."""
        receipt = await self.connections.publisher.publish(written, _POLICY)
        self.receipts.append(receipt)
        return receipt

    # --- Changes, written on the table as it is now ----------------------------------------------

    async def append(self, rows: Rows) -> WrittenEpoch:
        state = await self.state()
        return state.with_rows(self.epoch(state), rows)

    async def stage(self, rows: Rows, wap_id: str) -> WrittenEpoch:
        """Append to a snapshot that no ref names."""
        written = await self.append(rows)
        return replace(written, stage_only=True, summary={"wap.id": wap_id})

    async def delete_rows(self, ids: Iterable[int], *, isolation: str = "snapshot") -> WrittenEpoch:
        """Delete by positions: deletion vectors in version 3, position delete files before."""
        state = await self.state()
        epoch = self.epoch(state)
        files, removed, named = state.position_deletes(epoch, set(ids))
        needs = state.based(
            isolation_level=isolation, removed_delete_files=removed, referenced_data_files=named
        )
        return replace(epoch, operation="row-delta", files=files, needs=needs)

    async def update_rows(self, rows: Rows) -> WrittenEpoch:
        """Delete these ids by positions, and write the rows anew."""
        state = await self.state()
        epoch = self.epoch(state)
        files, removed, named = state.position_deletes(epoch, set(rows))
        added = state.with_rows(epoch, rows).files
        needs = state.based(
            updates_rows=True,
            isolation_level="snapshot",
            removed_delete_files=removed,
            referenced_data_files=named,
        )
        return replace(epoch, operation="row-delta", files=[*added, *files], needs=needs)

    async def upsert_rows(self, rows: Rows) -> WrittenEpoch:
        """Delete these ids by equality, in the partitions of the rows, and write the rows."""
        state = await self.state()
        epoch = self.epoch(state)
        added = state.with_rows(epoch, rows).files
        files = [*added, *state.equality_deletes(epoch, rows)]
        return replace(epoch, operation="row-delta", files=files)

    async def overwrite_region(self, region: str, rows: Rows) -> WrittenEpoch:
        """Overwrite a region by a filter, as a static overwrite of its partition does."""
        return await self._replace("overwrite", region, rows)

    async def delete_region(self, region: str) -> WrittenEpoch:
        return await self._replace("delete", region, {})

    async def _replace(self, operation: Operation, region: str, rows: Rows) -> WrittenEpoch:
        state = await self.state()
        epoch = self.epoch(state)
        filter = {"type": "eq", "term": "region", "value": region}
        is_overwrite = operation == "overwrite"
        level = {"isolation_level": "serializable"} if is_overwrite else {}
        fit = {"added_files_match_filter": True} if is_overwrite else {}
        needs = state.based(row_filter=filter, **level, **fit)
        return replace(state.with_rows(epoch, rows), operation=operation, needs=needs)

    async def replace_partitions(self, rows: Rows) -> WrittenEpoch:
        """Replace the partitions of these rows by them."""
        state = await self.state()
        return replace(state.with_rows(self.epoch(state), rows), operation="replace-partitions")

    async def delete_files(self, region: str) -> WrittenEpoch:
        """Delete the files of a region by their names."""
        state = await self.state()
        needs = state.based(removed_data_files=state.data_of(region))
        return replace(self.epoch(state), operation="delete", needs=needs)

    async def compact(self, region: str, rows: Rows, *, with_number: bool = True) -> WrittenEpoch:
        """Rewrite all files of a region, whose live rows these are, to one. `with_number`: the new
        one gets the data sequence number of the state that was read."""
        state = await self.state()
        number = {"data_sequence_number": state.sequence_number} if with_number else {}
        needs = state.based(removed_data_files=state.data_of(region), **number)
        written = state.with_rows(self.epoch(state), rows)
        return replace(written, operation="rewrite-files", needs=needs)

    async def copy_on_write(self, region: str, rows: Rows) -> WrittenEpoch:
        """Replace the files of a region by name: these are the rows afterwards."""
        state = await self.state()
        needs = state.based(
            removed_data_files=state.data_of(region),
            isolation_level="serializable",
            conflict_filter={"type": "eq", "term": "region", "value": region},
        )
        written = state.with_rows(self.epoch(state), rows)
        return replace(written, operation="overwrite", needs=needs)

    async def rewrite_manifests(self, paths: Iterable[str] = ()) -> WrittenEpoch:
        """Cluster these manifests, or all of data."""
        needs = Needs(rewritten_manifests=tuple(paths))
        return replace(self.epoch(await self.state()), operation="rewrite-manifests", needs=needs)

    # ---------------------------------------------------------------------------------------------

    async def state(self) -> ChangingState:
        return ChangingState.of(await self.harness.load(self.table_name), self.branch)

    def epoch(self, state: ChangingState) -> WrittenEpoch:
        """Return the next epoch, without files."""
        epoch, self.epochs = self.epochs, self.epochs + 1
        metadata = state.table.metadata
        return WrittenEpoch(
            identifier=state.table.identifier,
            table_uuid=metadata.require_uuid(),
            schema_id=metadata.current_schema_id,
            producer=Producer(id=self.name, sequential=True),
            epoch=epoch,
            nonce=uuid4(),
            fingerprint=Fingerprint(kind="model", value=f"{self.name}/{epoch}"),
            files=(),
            branch=self.branch,
        )
