"""Operators that change a table by requests: refs, columns, properties; and writers that stage
snapshots for an audit, and have them published.

They send what the commands send, by the same code, and do not ask twice what became of it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum

from pydantic import TypeAdapter

from committer.errors import NoSuchTableError, PublishError
from committer.iceberg.metadata.snapshot import MAIN
from committer.ports.pointer_swap import LoadedTable
from committer.request.alterations import TableChanges
from committer.request.commit_request import Fingerprint, Producer
from committer.request.needs import Needs
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.operator_requests import OperatorRequests
from committer.service.upkeep.own_requests import OwnRequests
from tests.simulation.chance import rng
from tests.simulation.ports import Ports
from tests.simulation.producers import CATALOG, ROWS, build_data_file, open_publisher, write_files
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch

AUDIT = "audit"
_CHANGES: TypeAdapter[TableChanges] = TypeAdapter(TableChanges)


class Act(Enum):
    """One thing that an administrator does."""

    SET_PROPERTY = "set a property"
    ADD_COLUMN = "add a column"
    CREATE_TAG = "create a tag"
    REMOVE_TAG = "remove a tag"
    CREATE_BRANCH = "create the branch `audit`"
    FAST_FORWARD = "fast-forward `audit` to main"
    ROLL_BACK = "roll main back by one snapshot"
    APPEND_TO_BRANCH = "append to the branch `audit`"
    STAGE = "stage an append under a `wap.id`"
    PICK = "pick a staged append by its `wap.id`"


# Acts that set no branch back, so that no producer is frozen by them. What is staged is picked
# more than once.
FORWARD = (*(one for one in Act if one is not Act.ROLL_BACK), Act.STAGE, *(3 * (Act.PICK,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdministratorPlan:
    """`acts` one after the other, a pause of about `pause_s` before each."""

    acts: Sequence[Act]
    pause_s: float = 1.0


class Administrator:
    """Administers one table."""

    def __init__(
        self, name: str, identifier: TableIdentifier, plan: AdministratorPlan, *, seed: int
    ) -> None:
        self.name = name
        self._identifier = identifier
        self._plan = plan
        self._chance = rng(seed, name)
        self._next = 0
        self._staged: list[str] = []

    async def run(self, ports: Ports) -> None:
        """Act after act; one that fails is not done again."""
        while self._next < len(self._plan.acts):
            await ports.world.sleep(self._plan.pause_s * 2 * ports.world.jitter())
            act = self._plan.acts[self._next]
            self._next += 1
            with suppress(PublishError, NoSuchTableError):
                await self._do(act, ports)

    async def _do(self, act: Act, ports: Ports) -> None:
        table = await ports.catalog.load(self._identifier)
        if act is Act.STAGE:
            wap_id = f"{self.name}-{self._next}"
            self._staged.append(wap_id)
            await self._append(ports, table, summary={"wap.id": wap_id}, stage_only=True)
        elif act is Act.APPEND_TO_BRANCH:
            await self._append(ports, table, branch=AUDIT)
        elif act is Act.PICK:
            await self._pick(ports, table)
        else:
            changes = _changes_of(act, self._chance, table, self._next)
            if changes:
                await _requests(ports).publish(
                    table,
                    operation="alter",
                    changes=_CHANGES.validate_python(changes),
                    needs=self._needs(),
                )

    async def _pick(self, ports: Ports, table: LoadedTable) -> None:
        if not self._staged:
            return
        wap_id = self._chance.choice(self._staged)
        needs = Needs.model_validate({"wap-id": wap_id, "on-conflict": "fail"})
        await _requests(ports).publish(table, operation="cherry-pick", needs=needs)

    def _needs(self) -> Needs:
        return Needs.model_validate({"on-conflict": self._chance.choice(("fail", "quarantine"))})

    async def _append(
        self,
        ports: Ports,
        table: LoadedTable,
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        stage_only: bool = False,
    ) -> None:
        written = WrittenEpoch(
            identifier=table.identifier,
            table_uuid=table.metadata.require_uuid(),
            schema_id=table.metadata.current_schema_id,
            producer=Producer(id=self.name),
            epoch=self._next,
            nonce=ports.world.uuid(),
            fingerprint=Fingerprint(kind="job", value=f"{self.name} {self._next}"),
            files=(),
            branch=branch,
            summary=summary or {},
            stage_only=stage_only,
        )
        files = [build_data_file(table.metadata, written.attempt, "00000", rows=ROWS)]
        await write_files(ports, files)
        policy = PublishPolicy(on_quarantine="continue")
        await open_publisher(ports).publish(replace(written, files=files), policy)


def _requests(ports: Ports) -> OperatorRequests:
    own = OwnRequests(CATALOG, ports.inbox, ports.queue, None, ports.world)
    return OperatorRequests(own, ports.quarantine)


def _changes_of(
    act: Act, chance: random.Random, table: LoadedTable, number: int
) -> list[dict[str, object]]:
    """Return the changes of an act, as JSON; none if there is nothing to change."""
    tag = f"tag-{chance.randrange(3)}"
    match act:
        case Act.SET_PROPERTY:
            key = f"owner-{chance.randrange(3)}"
            return [{"action": "set-properties", "updates": {key: str(number)}}]
        case Act.ADD_COLUMN:
            name = f"column_{chance.randrange(6)}"
            return [{"action": "add-column", "name": name, "type": "long"}]
        case Act.CREATE_TAG:
            return [{"action": "create-tag", "name": tag}]
        case Act.REMOVE_TAG:
            return [{"action": "remove-snapshot-ref", "ref-name": tag, "type": "tag"}]
        case Act.CREATE_BRANCH:
            return [{"action": "create-branch", "name": AUDIT}]
        case Act.FAST_FORWARD:
            return [{"action": "fast-forward", "branch": AUDIT, "to": MAIN}]
        case Act.ROLL_BACK:
            older = list(table.metadata.branch_history())[1:2]
            return [
                {"action": "rollback-to-snapshot", "snapshot-id": one.snapshot_id} for one in older
            ]
        case _:
            raise ValueError(f"{act} is no change of the table")
