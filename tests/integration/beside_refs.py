"""Steps that stage snapshots and pick them, and that move branches and tags."""

from __future__ import annotations

from dataclasses import replace

from committer.ledger_entry import MAIN
from tests.integration.beside_model import Staged
from tests.integration.beside_run import Run
from tests.integration.changing_rows import Changer
from tests.integration.table_orders import Orders
from tests.support.integration.real_harness import CATALOG

BRANCH = "audit"

# --- Staged snapshots ----------------------------------------------------------------------------


async def frazil_stage(run: Run) -> None:
    """Append to a snapshot that no ref names: no rows change."""
    rows, wap_id = run.model.new_rows(), f"wap-{run.model.next_id}"
    snapshot_id = await run.land(await run.changer.stage(rows, wap_id), run.model.main)
    run.model.staged.append(Staged(wap_id, snapshot_id, rows))


async def frazil_publish_staged(run: Run) -> None:
    """Publish a staged snapshot by its `wap.id`."""
    staged = await _staged(run)
    await Orders(run.changer).pick(wap_id=staged.wap_id)
    run.model.main |= staged.rows


async def frazil_publish_unmoved(run: Run) -> None:
    """Publish a snapshot that was staged on main's head: main moves to it."""
    await frazil_stage(run)
    staged = run.model.staged.pop()
    await Orders(run.changer).pick(wap_id=staged.wap_id)
    run.model.main |= staged.rows
    head = (await run.harness.load(run.name)).metadata.current_snapshot
    assert head is not None
    assert head.snapshot_id == staged.snapshot_id


async def frazil_cherry_pick(run: Run) -> None:
    """Pick a staged snapshot by its id, behind another commit."""
    staged = await _staged(run)
    await run.frazil_append()
    await Orders(run.changer).pick(source_snapshot_id=staged.snapshot_id)
    run.model.main |= staged.rows


async def java_cherry_pick(run: Run) -> None:
    """Java picks a snapshot that Frazil has staged."""
    staged = await _staged(run)
    await run.sql(f"CALL {CATALOG}.system.cherrypick_snapshot('{run.name}', {staged.snapshot_id})")
    run.model.main |= staged.rows


async def _staged(run: Run) -> Staged:
    if not run.model.staged:
        await frazil_stage(run)
    staged = run.model.chance.choice(run.model.staged)
    run.model.staged.remove(staged)
    return staged


# --- Branches and tags ---------------------------------------------------------------------------


async def frazil_create_branch(run: Run) -> None:
    """Create the branch on main's head; it replaces the one that there was."""
    if run.branch_changer is not None:
        remove = {"action": "remove-snapshot-ref", "ref-name": BRANCH, "type": "branch"}
        await Orders(run.changer).alter(remove)
    await run.live_ids()
    await Orders(run.changer).alter({"action": "create-branch", "name": BRANCH})
    _reset_branch(run)


async def frazil_replace_branch(run: Run) -> None:
    """Let the branch name main's head, whatever it had."""
    await _branch(run)
    await Orders(run.changer).alter({"action": "replace-branch", "name": BRANCH, "ref": MAIN})
    _reset_branch(run)


async def frazil_append_to_branch(run: Run) -> None:
    changer, rows = await _branch(run), run.model.new_rows()
    await run.land(await changer.append(rows), {**run.model.refs[BRANCH], **rows})


async def frazil_delete_from_branch(run: Run) -> None:
    changer = await _branch(run)
    while not (ids := run.model.some_ids(ref=BRANCH)):
        await frazil_append_to_branch(run)
    await run.land(await changer.delete_rows(ids), run.model.without(ids, ref=BRANCH))


async def frazil_fast_forward(run: Run) -> None:
    """Let main go on to the branch, which has two commits more."""
    await frazil_replace_branch(run)
    await frazil_append_to_branch(run)
    await frazil_delete_from_branch(run)
    change = {"action": "fast-forward", "branch": MAIN, "to": BRANCH}
    await Orders(run.changer).alter(change)
    run.model.main = run.model.refs[BRANCH]


async def frazil_tag(run: Run) -> None:
    """Let the tag name main's head: it keeps its rows whatever main does."""
    await run.live_ids()
    await Orders(run.changer).alter(
        {"action": "remove-snapshot-ref", "ref-name": "kept", "type": "tag", "if-exists": True},
        {"action": "create-tag", "name": "kept"},
    )
    run.model.refs["kept"] = dict(run.model.main)


async def _branch(run: Run) -> Changer:
    if run.branch_changer is None:
        await frazil_create_branch(run)
    assert run.branch_changer is not None
    return run.branch_changer


def _reset_branch(run: Run) -> None:
    """Go on with main's rows, and a producer that the branch's history need not have."""
    name = f"{run.changer.name}-{BRANCH}-{run.model.chance.getrandbits(32)}"
    run.branch_changer = replace(run.changer, name=name, branch=BRANCH, epochs=0, receipts=[])
    run.model.refs[BRANCH] = dict(run.model.main)


# --- Rollbacks -----------------------------------------------------------------------------------


async def frazil_rollback(run: Run) -> None:
    """Roll main back to one of the snapshots before its head."""
    snapshot_id = await _ancestor(run)
    change = {"action": "rollback-to-snapshot", "snapshot-id": snapshot_id}
    await Orders(run.changer).alter(change)
    await _rolled_back(run, snapshot_id)


async def frazil_set_current_snapshot(run: Run) -> None:
    """Let main name any of the snapshots that it has had, of its history or not."""
    await _ancestor(run)
    snapshot_id = run.model.chance.choice(list(run.model.snapshots))
    change = {"action": "set-current-snapshot", "snapshot-id": snapshot_id}
    await Orders(run.changer).alter(change)
    await _rolled_back(run, snapshot_id)


async def java_rollback(run: Run) -> None:
    """Java rolls main back, which Frazil's ledger tells of its producers."""
    snapshot_id = await _ancestor(run)
    await run.sql(f"CALL {CATALOG}.system.rollback_to_snapshot('{run.name}', {snapshot_id})")
    await _rolled_back(run, snapshot_id)


async def _ancestor(run: Run) -> int:
    """Return one of the last snapshots before main's head, whose rows are known."""
    await run.frazil_append()
    metadata = (await run.harness.load(run.name)).metadata
    head = metadata.current_snapshot
    assert head is not None
    before = [one.snapshot_id for one in metadata.ancestors(head.parent_snapshot_id)]
    known = [one for one in before if one in run.model.snapshots]
    if not known:
        await run.compare()
        return await _ancestor(run)
    return run.model.chance.choice(known[:5])


async def _rolled_back(run: Run, snapshot_id: int) -> None:
    run.model.main = run.model.snapshots[snapshot_id]
    await Orders(run.changer).thaw()
