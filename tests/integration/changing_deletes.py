"""A client that writes the delete files of a table anew, with real files: rows stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow.parquet as pq

from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestEntry
from committer.iceberg.scan.plan_files import plan_files
from committer.request.needs import RemovedDeleteFile
from tests.integration.changing_rows import Changer
from tests.integration.changing_state import ChangingState, positions_of, read, vector_of
from tests.support.integration.readers import local
from workers.requests.written_epoch import WrittenEpoch

Positions = Mapping[str, set[int]]


async def join_positions(changer: Changer) -> WrittenEpoch:
    """Write the position deletes of each data file as one delete file."""
    state = await changer.state()
    removed = state.deletes(DataFileContent.POSITION_DELETES)
    return _rewritten(changer, state, removed, _deleted_by_position(state))


async def convert_equality(changer: Changer) -> WrittenEpoch:
    """Replace all equality deletes by position deletes of the rows that they delete."""
    state = await changer.state()
    removed = state.deletes(DataFileContent.EQUALITY_DELETES)
    return _rewritten(changer, state, removed, _deleted_by_equality(state))


def _rewritten(
    changer: Changer, state: ChangingState, removed: Sequence[ManifestEntry], hit: Positions
) -> WrittenEpoch:
    epoch = changer.epoch(state)
    gone = [RemovedDeleteFile.of(entry.data_file) for entry in removed]
    if state.has_vectors:
        files, replaced = state.united_vectors(epoch, hit)
        gone += [one for one in replaced if one not in gone]
    else:
        files = [state.position_file(epoch, path, at) for path, at in hit.items()]
    # As the new delete files are none but of data that is as old, this number brings no row back.
    number = max(entry.sequence_number or 0 for entry in removed)
    needs = state.based(removed_delete_files=tuple(gone), data_sequence_number=number)
    return replace(epoch, operation="rewrite-files", files=files, needs=needs)


def _deleted_by_position(state: ChangingState) -> Positions:
    found = _tasks(state, DataFileContent.POSITION_DELETES)
    return {path: _positions(path, deletes) for path, deletes in found.items()}


def _positions(path: str, deletes: Iterable[DataFile]) -> set[int]:
    found: set[int] = set()
    for file in deletes:
        if file.is_deletion_vector:
            found |= set(vector_of(file))
        else:
            rows = pq.read_table(local(file.file_path)).to_pylist()
            found |= {row["pos"] for row in rows if local(row["file_path"]) == local(path)}
    return found


def _deleted_by_equality(state: ChangingState) -> Positions:
    found = {}
    for path, deletes in _tasks(state, DataFileContent.EQUALITY_DELETES).items():
        ids = {each for file in deletes for each in _ids(file)}
        if positions := positions_of(path, ids):
            found[path] = set(positions)
    return found


def _ids(deletes: DataFile) -> list[int]:
    found: list[int] = pq.read_table(local(deletes.file_path)).column("id").to_pylist()
    return found


def _tasks(state: ChangingState, content: DataFileContent) -> dict[str, list[DataFile]]:
    """Return the data files that such deletes apply to, with these."""
    tasks = plan_files(state.table.metadata, read=read, ref=state.branch)
    found = {
        task.file.file_path: [one for one in task.delete_files if one.content is content]
        for task in tasks
    }
    return {path: deletes for path, deletes in found.items() if deletes}
