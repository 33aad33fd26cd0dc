"""Says before a branch is moved where it would be, and which producers that would freeze."""

from __future__ import annotations

from typing import TYPE_CHECKING

from committer.cli.changes.send import Order, parse_changes
from committer.cli.context.command_session import (
    parse_identifier,
    require_branch,
    run_with_parts,
)
from committer.cli.output.printing import counted, say
from committer.errors import PublishError

if TYPE_CHECKING:
    from committer.iceberg.metadata.table_metadata import TableMetadata
    from committer.ports.pointer_swap import LoadedTable
    from committer.service.process.composition import Parts


def announce_move(order: Order, moved: str) -> int:
    """Say where the change of an order moves a branch and which producers that freezes, by the
    table as it is now. Return their number. Errors: `PublishError` where it would be refused.
    """
    changes = parse_changes(order.changes)
    identifier = parse_identifier(order.table)

    async def work(parts: Parts) -> tuple[LoadedTable, int]:
        return await parts.catalog.load(identifier), parts.world.now_ms()

    table, now_ms = run_with_parts(work)
    from committer.iceberg.updates.metadata_update import apply_updates
    from committer.plan.operations.alter import plan_alter
    from committer.plan.operations.conflict import Conflict

    require_branch(table, moved, nothing="changed")
    before = table.metadata
    updates = plan_alter(changes, before, order.branch, now_ms=now_ms)
    if isinstance(updates, Conflict):
        raise PublishError(f"{order.table}: refused: {updates.message}")
    after = apply_updates(before, updates, base_location=None, now_ms=now_ms)
    frozen = sorted(_broken(after) - _broken(before))
    head = after.branch_head(moved)
    where = "nothing" if head is None else f"snapshot {head.snapshot_id}"
    say(f"{order.table}: to {where}, which freezes {counted(len(frozen), 'producer')}")
    for name in frozen:
        say(name)
    return len(frozen)


def _broken(metadata: TableMetadata) -> set[str]:
    from committer.ledger_entry import parse_property_key
    from committer.plan.ledger.ledger import read_ledger

    parsed = map(parse_property_key, read_ledger(metadata).broken)
    return {f"  {one[0]} on branch {one[1]}" for one in parsed if one is not None}
