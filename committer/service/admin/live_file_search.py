"""Finds files that are live in a table, for an operator's command before it publishes them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from committer.plan.ledger.state import TableState
from committer.plan.operations.conflict import Conflict
from committer.plan.operations.head import Head, MissingObjectsError, ObjectRange, Objects
from committer.plan.operations.live_files import AddedFiles, check_not_live
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import Storage

# So many manifests are in memory at a time.
MANIFESTS_AT_ONCE = 16


async def find_live(
    storage: Storage, table: LoadedTable, branch: str, added: AddedFiles
) -> Conflict | None:
    """Return the conflict of adding files to a branch, some manifests of it at a time.

    Errors: those of `check_not_live` and `Storage.get`.
    """
    snapshot = table.metadata.branch_head(branch)
    if snapshot is None or snapshot.manifest_list is None:
        return None  # a table without manifest lists is the committer's to refuse
    state = TableState.of(table)
    content = await storage.get(snapshot.manifest_list)
    rows = state.with_head(snapshot.snapshot_id, content).heads[snapshot.snapshot_id]
    for start in range(0, len(rows), MANIFESTS_AT_ONCE):
        some = rows[start : start + MANIFESTS_AT_ONCE]
        head = Head(table.metadata, branch, snapshot, some, Objects())
        conflict = await _answered(storage, added, head)
        if conflict is not None:
            return conflict
    return None


async def _answered(storage: Storage, added: AddedFiles, head: Head) -> Conflict | None:
    try:
        return check_not_live((added,), head)
    except MissingObjectsError as missing:
        wanted = sorted(missing.needs)
    contents = await asyncio.gather(*(_read(storage, one) for one in wanted))
    objects = Objects(dict(zip(wanted, contents, strict=True)))
    return check_not_live((added,), replace(head, objects=objects))


async def _read(storage: Storage, wanted: ObjectRange) -> bytes:
    return await storage.get(wanted.location, offset=wanted.offset, length=wanted.length)
