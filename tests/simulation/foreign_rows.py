"""What other engines do to rows: they delete some of a file, and rewrite files without what is
deleted, with the delete files that are of these alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from tests.simulation.contents import delete_key
from tests.simulation.engine import Change, NewManifest, Worker
from tests.simulation.scan import Scan, scan_branch
from tests.simulation.work import Work
from tests.support.iceberg.manifest_builders import added_entry

_Key = tuple[str, int | None, int | None]


async def delete_rows(worker: Worker) -> Change | None:
    """Delete one or two rows of a file, by a vector or by positions."""
    scan = await scan_branch(worker)
    with_rows = [file for file in scan.live if scan.rows_of(file)]
    if not with_rows or scan.metadata.format_version == 1:
        return None
    file = worker.chance.choice(with_rows)
    rows = scan.rows_of(file)
    new = frozenset(place for place, _ in worker.chance.sample(rows, min(2, len(rows))))
    work = _work(worker, scan)
    if scan.metadata.format_version == 2:
        work.delete_by_positions(file, {file.file_path: new}, "foreign")
        return await _change(worker, "delete", work, ())
    work.delete_by_vectors([(file, scan.by_position.of(file.file_path) | new)])
    return await _change(worker, "delete", work, _deletes_of(scan, [file]))


async def apply_deletes(worker: Worker) -> Change | None:
    """Rewrite files that have deleted rows into one without these."""
    scan = await scan_branch(worker)
    spec_id = scan.metadata.default_spec_id
    hit = [file for file in scan.live if scan.deleted.of(file.file_path)]
    chosen = [file for file in hit if file.spec_id == spec_id][:3]
    if not chosen:
        return None
    work = _work(worker, scan)
    work.add_copies(scan.rows_of_all(chosen), "foreign")
    gone = [delete_key(file) for file in chosen] + _deletes_of(scan, chosen)
    return await _change(worker, "replace", work, gone)


def _work(worker: Worker, scan: Scan) -> Work:
    return Work(worker.metadata, worker.ports.world.uuid(), scan.written)


def _deletes_of(scan: Scan, files: Iterable[DataFile]) -> list[_Key]:
    """Return the position deletes that are for one of these data files alone."""
    paths = {file.file_path for file in files}
    deletes = (entry.data_file for entry in scan.deletes)
    return [delete_key(one) for one in deletes if referenced_data_file(one) in paths]


async def _change(
    worker: Worker, operation: str, work: Work, gone: Collection[_Key]
) -> Change | None:
    """Add the files of a work, and rewrite the manifests that list a file which is gone."""
    snapshot_id = worker.new_snapshot_id()
    manifests = _additions(worker, work.files, snapshot_id)
    kept = []
    removed: list[DataFile] = []
    for row in await worker.rows():
        entries = [one for one in await worker.entries(row) if one.is_live]
        hit = [one.data_file for one in entries if delete_key(one.data_file) in gone]
        if not hit:
            kept.append(row)
            continue
        removed += hit
        rewritten = [_carried(one, gone, snapshot_id) for one in entries]
        number, spec_id = len(manifests), row.partition_spec_id
        manifests.append(worker.manifest(rewritten, number, spec_id, snapshot_id, row.content))
    counts = Counter(_counts(work.files, "added", "added"))
    counts.update(_counts(removed, "deleted", "removed"))
    snapshot = worker.snapshot(operation, dict(counts), manifests, kept, snapshot_id)
    change = worker.change(snapshot, manifests, ())
    return replace(change, objects=(*work.objects, *change.objects))


def _additions(worker: Worker, files: Sequence[DataFile], snapshot_id: int) -> list[NewManifest]:
    found: list[NewManifest] = []
    for content in ManifestContent:
        own = [one for one in files if one.manifest_content is content]
        if own:
            entries = [added_entry(one) for one in own]
            spec_id = own[0].spec_id
            found.append(worker.manifest(entries, len(found), spec_id, snapshot_id, content))
    return found


def _carried(entry: ManifestEntry, gone: Collection[_Key], snapshot_id: int) -> ManifestEntry:
    if delete_key(entry.data_file) in gone:
        return replace(entry, status=ManifestEntryStatus.DELETED, snapshot_id=snapshot_id)
    return replace(entry, status=ManifestEntryStatus.EXISTING)


def _counts(files: Iterable[DataFile], data: str, other: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for file in files:
        size = file.content_size_in_bytes or file.file_size_in_bytes
        found[f"{other}-files-size"] += size
        if file.content is DataFileContent.DATA:
            found[f"{data}-data-files"] += 1
            found[f"{data}-records"] += file.record_count
            continue
        found[f"{other}-delete-files"] += 1
        kind = "dvs" if file.is_deletion_vector else "position-delete-files"
        found[f"{other}-{kind}"] += 1
        found[f"{other}-position-deletes"] += file.record_count
    return found
