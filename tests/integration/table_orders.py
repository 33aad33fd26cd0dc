"""The requests of an operator for a table, as the commands of `frazil table` publish them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter

from committer.ledger_entry import MAIN, property_key
from committer.plan.ledger.ledger import read_ledger
from committer.request.alterations import TableChanges
from committer.request.needs import Needs, Operation
from committer.request.receipt_model import ReceiptState
from committer.service.admin.operator_requests import OperatorRequests
from committer.service.upkeep.own_requests import OwnRequests
from committer.storage.inbox.inbox import Inbox, Quarantine
from tests.integration.changing_rows import Changer
from tests.support.integration.real_harness import CATALOG, RealHarness

_CHANGES: TypeAdapter[TableChanges] = TypeAdapter(TableChanges)


@dataclass(frozen=True, slots=True)
class Orders:
    """Publishes to the committer of the table of a changer."""

    changer: Changer

    async def alter(self, *changes: Mapping[str, object], branch: str = MAIN) -> None:
        """Have these changes made, all in one request."""
        await self._carry_out("alter", branch, changes=_CHANGES.validate_python(changes))

    async def pick(self, **needs: object) -> None:
        """Have a snapshot picked to main."""
        await self._carry_out("cherry-pick", MAIN, needs=Needs.model_validate(needs, by_name=True))

    async def _carry_out(
        self,
        operation: Operation,
        branch: str,
        *,
        changes: TableChanges = (),
        needs: Needs | None = None,
    ) -> None:
        tables, queue = self.changer.connections.tables, self.changer.connections.queue
        inbox, storage = tables.settings.inbox, tables.own_storage
        own = OwnRequests(CATALOG, Inbox(storage, inbox), queue, None, tables.world)
        requests = OperatorRequests(own, Quarantine(storage, inbox))
        table = await self.changer.harness.load(self.changer.table_name)
        published = await requests.publish(
            table, operation=operation, branch=branch, changes=changes, needs=needs or Needs()
        )
        receipt = await requests.wait(published, timeout_s=120.0)
        assert receipt is not None
        assert receipt.state is ReceiptState.COMMITTED, receipt.message

    async def thaw(self) -> None:
        """Thaw the changer if the branch has lost epochs of it: these stay lost."""
        changer = self.changer
        table = await changer.harness.load(changer.table_name)
        if property_key(changer.name, changer.branch) not in read_ledger(table.metadata).broken:
            return
        await run_frazil(
            *(changer.harness, "producer", "thaw", changer.table_name, changer.name),
            *("--branch", changer.branch, "--skip-lost", "--yes"),
        )


async def run_frazil(harness: RealHarness, *words: str) -> None:
    """Run a command of `frazil`, which has to succeed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "committer", *words),
        env=os.environ | harness.environment(),
        cwd=harness.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
