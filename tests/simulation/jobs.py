"""Jobs that change a table: what each reads, and what it asks for.

A job is chosen from a scan, and works when its attempt is known: its think time lies between.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestEntry
from committer.request.needs import Needs, Operation
from tests.simulation.producers import ROWS
from tests.simulation.rows import Row
from tests.simulation.scan import Scan
from tests.simulation.work import Work

_FILES_MAX = 3
_LEVELS = (None, "snapshot", "serializable")
_OUTCOMES = ("quarantine", "fail")
Build = Callable[[Work], None]


class Job(Enum):
    """A job, and the operation that it asks for."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    REWRITE = "rewrite-files"
    OVERWRITE_ALL = "overwrite by filter"
    DELETE_ALL = "delete by filter"
    REPLACE = "replace-partitions"
    REWRITE_MANIFESTS = "rewrite-manifests"
    REWRITE_GROUPS = "rewrite-files in groups"
    REWRITE_NUMBERED = "rewrite-files with a number"
    REWRITE_DELETES = "rewrite-files of deletes"
    DELETE_ROWS = "row-delta that deletes"
    UPDATE_ROWS = "row-delta that updates"
    UPSERT = "row-delta by equality"


OF_FILES = (Job.APPEND, Job.OVERWRITE, Job.OVERWRITE, Job.DELETE, Job.REWRITE)
OF_ROWS = (
    *(5 * (Job.DELETE_ROWS,)),
    *(4 * (Job.UPDATE_ROWS,)),
    *(3 * (Job.UPSERT, Job.APPEND)),
    *(2 * (Job.REWRITE, Job.REWRITE_NUMBERED, Job.REWRITE_GROUPS, Job.REWRITE_DELETES)),
    *(Job.OVERWRITE, Job.OVERWRITE, Job.DELETE, Job.REWRITE_MANIFESTS),
    *(Job.REPLACE, Job.OVERWRITE_ALL, Job.DELETE_ALL),
)


def choose(chance: random.Random, scan: Scan, jobs: Sequence[Job]) -> Build:
    """Choose a job, and what it changes. One that finds nothing to change appends."""
    job = chance.choice(jobs)
    if job in _BY_FILES:
        return _of_files(job, chance, scan)
    build = _BUILDERS[job](chance, scan) if scan.head is not None else None
    return build or _append


def _append(work: Work) -> None:
    work.add_new(ROWS)


# --- Whole files ---------------------------------------------------------------------------------

_BY_FILES: Mapping[Job, Operation] = {
    Job.APPEND: "append",
    Job.OVERWRITE: "overwrite",
    Job.DELETE: "delete",
    Job.REWRITE: "rewrite-files",
}


def _of_files(job: Job, chance: random.Random, scan: Scan) -> Build:
    live = scan.live
    count = {
        Job.APPEND: 0,
        Job.DELETE: 1,
        Job.OVERWRITE: chance.randint(1, 2),
        Job.REWRITE: _FILES_MAX,
    }[job]
    removed = chance.sample(live, min(count, len(live)))
    if not removed:
        return _append

    def build(work: Work) -> None:
        level = chance.choice(_LEVELS)
        work.operation = _BY_FILES[job]
        needs: dict[str, object] = {
            "removed-data-files": [one.file_path for one in removed],
            "on-conflict": chance.choice(_OUTCOMES),
        }
        if job is Job.REWRITE:
            needs |= _base(scan)
            work.add_copies(scan.rows_of_all(removed))
        elif job is Job.OVERWRITE and level is not None:
            # Copy on write: one row is updated, and all others are kept.
            needs |= {**_base(scan), "isolation-level": level}
            _copy_on_write(work, scan.rows_of_all(removed))
        elif job is Job.OVERWRITE:
            work.add_new(ROWS)
        work.needs = Needs.model_validate(needs)

    return build


def _copy_on_write(work: Work, rows: Sequence[Row]) -> None:
    if not rows:
        work.add_new(ROWS)
        return
    updated, *kept = rows
    work.add_copies(kept)
    work.add_updates([updated.key])


def _base(scan: Scan) -> dict[str, object]:
    assert scan.head is not None
    return {
        "base-snapshot-id": scan.head.snapshot_id,
        "base-sequence-number": scan.head.sequence_number,
    }


def _isolation(chance: random.Random) -> dict[str, object]:
    level = chance.choice(_LEVELS)
    return {} if level is None else {"isolation-level": level}


def _ask(
    operation: Operation, chance: random.Random, needs: Mapping[str, object], work: Work
) -> None:
    work.operation = operation
    told = {"on-conflict": chance.choice(_OUTCOMES)}
    work.needs = Needs.model_validate({**needs, **told})


# --- By filter, by partition, manifests alone ----------------------------------------------------


def _overwrite_all(chance: random.Random, scan: Scan) -> Build | None:
    def build(work: Work) -> None:
        work.add_new(ROWS)
        needs = {**_base(scan), "row-filter": True, **_isolation(chance)}
        _ask("overwrite", chance, needs, work)

    return build


def _delete_all(chance: random.Random, scan: Scan) -> Build | None:
    return lambda work: _ask("delete", chance, {"row-filter": True}, work)


def _replace(chance: random.Random, scan: Scan) -> Build | None:
    def build(work: Work) -> None:
        work.add_new(ROWS)
        is_append_only = chance.random() < 0.3
        needs = {**_base(scan), **_isolation(chance)}
        needs |= {"append-only": True} if is_append_only else {}
        _ask("replace-partitions", chance, needs, work)

    return build


def _rewrite_manifests(chance: random.Random, scan: Scan) -> Build | None:
    return lambda work: _ask("rewrite-manifests", chance, {}, work)


# --- Rewrites ------------------------------------------------------------------------------------


def _rewrite_groups(chance: random.Random, scan: Scan) -> Build | None:
    removed = chance.sample(scan.live, min(_FILES_MAX, len(scan.live)))
    if len(removed) < 2:
        return None

    def build(work: Work) -> None:
        groups: list[dict[str, object]] = []
        for number, file in enumerate(removed):
            added = work.add_copies(scan.rows_of_all([file]), f"group-{number}")
            paths = [] if added is None else [added.file_path]
            groups.append({"removed-data-files": [file.file_path], "added-data-files": paths})
        needs = {"removed-data-files": [one.file_path for one in removed], "groups": groups}
        _ask("rewrite-files", chance, {**_base(scan), **needs}, work)

    return build


def _rewrite_numbered(chance: random.Random, scan: Scan) -> Build | None:
    """Compact files of the default spec, and keep the number of what was read."""
    own = [one for one in scan.live if one.spec_id == scan.metadata.default_spec_id]
    removed = chance.sample(own, min(_FILES_MAX, len(own)))
    if not removed or scan.metadata.format_version == 1:
        return None

    def build(work: Work) -> None:
        work.add_copies(scan.rows_of_all(removed))
        base = _base(scan)
        needs = {
            **base,
            "removed-data-files": [one.file_path for one in removed],
            "data-sequence-number": base["base-sequence-number"],
        }
        _ask("rewrite-files", chance, needs, work)

    return build


def _rewrite_deletes(chance: random.Random, scan: Scan) -> Build | None:
    """Put the position deletes of several files, or the vectors, into one file."""
    targets = {file.file_path: file for file in scan.live}
    found = [one for one in scan.deletes if _is_by_position(one)]
    if not found:
        return None
    first = chance.choice(found)
    inputs = [one for one in found if _kind(one) == _kind(first)][:_FILES_MAX]
    named = set[str]().union(*(_targets(one, scan) for one in inputs))
    deleted = {
        path: positions for path, positions in scan.by_position.positions.items() if path in named
    }
    # What other delete files hold of the same data files stays with them as well.
    removed = [_named(one.data_file) for one in inputs]
    number = max(one.sequence_number or 0 for one in inputs)

    def build(work: Work) -> None:
        if first.data_file.is_deletion_vector:
            if deleted:
                work.delete_by_vectors([(targets[path], hit) for path, hit in deleted.items()])
        elif deleted:
            work.delete_by_positions(targets[next(iter(deleted))], deleted, "merged")
        needs = {**_base(scan), "removed-delete-files": removed, "data-sequence-number": number}
        _ask("rewrite-files", chance, needs, work)

    return build


def _is_by_position(entry: ManifestEntry) -> bool:
    return entry.data_file.content is DataFileContent.POSITION_DELETES


def _kind(entry: ManifestEntry) -> object:
    file = entry.data_file
    return file.is_deletion_vector, file.spec_id, file.partition


def _targets(entry: ManifestEntry, scan: Scan) -> set[str]:
    file = entry.data_file
    only = referenced_data_file(file)
    return {only} if only else set(scan.written.positions.get(file.file_path, {}))


def _named(file: DataFile) -> dict[str, object]:
    named: dict[str, object] = {"file-path": file.file_path}
    if file.is_deletion_vector:
        named["content-offset"] = file.content_offset
        named["content-size-in-bytes"] = file.content_size_in_bytes
    return named


# --- Rows ----------------------------------------------------------------------------------------


def _delete_rows(chance: random.Random, scan: Scan) -> Build | None:
    return _row_delta(chance, scan, updates=False)


def _update_rows(chance: random.Random, scan: Scan) -> Build | None:
    return _row_delta(chance, scan, updates=True)


def _row_delta(chance: random.Random, scan: Scan, *, updates: bool) -> Build | None:
    chosen = _choose_rows(chance, scan)
    if not chosen or scan.metadata.format_version == 1:
        return None

    def build(work: Work) -> None:
        needs: dict[str, object] = {}
        # A client that only deletes need not say what it has read.
        if updates or chance.random() < 0.8:
            needs |= {**_base(scan), **_isolation(chance)}
        if scan.metadata.format_version > 2:
            needs |= _by_vectors(work, scan, chosen)
        else:
            needs |= _by_positions(work, chosen, is_shared=chance.random() < 0.3)
        if updates:
            work.add_updates(row.key for _, rows in chosen for _, row in rows)
            needs["updates-rows"] = True
        _ask("row-delta", chance, needs, work)

    return build


_Chosen = Sequence[tuple[DataFile, Sequence[tuple[int, Row]]]]


def _choose_rows(chance: random.Random, scan: Scan) -> _Chosen:
    """Choose live rows of one or two files of one partition."""
    with_rows = [file for file in scan.live if scan.rows_of(file)]
    if not with_rows:
        return ()
    # One file is changed by many jobs.
    is_hot = chance.random() < 0.5
    first = min(with_rows, key=lambda one: one.file_path) if is_hot else chance.choice(with_rows)
    alike = [one for one in with_rows if one.spec_id == first.spec_id and one is not first]
    files = [first, *chance.sample(alike, min(len(alike), chance.choice((0, 0, 1))))]
    chosen = []
    for file in files:
        rows = scan.rows_of(file)
        chosen.append((file, chance.sample(rows, min(len(rows), chance.randint(1, 3)))))
    return chosen


def _by_vectors(work: Work, scan: Scan, chosen: _Chosen) -> dict[str, object]:
    """Write vectors with what is deleted already, in the place of those deletes."""
    vectors = [
        (file, scan.by_position.of(file.file_path) | {place for place, _ in rows})
        for file, rows in chosen
    ]
    work.delete_by_vectors(vectors)
    paths = {file.file_path for file, _ in chosen}
    former = [
        _named(entry.data_file)
        for entry in scan.deletes
        if referenced_data_file(entry.data_file) in paths
    ]
    return {"removed-delete-files": former}


def _by_positions(work: Work, chosen: _Chosen, *, is_shared: bool) -> dict[str, object]:
    deleted = {file.file_path: frozenset(place for place, _ in rows) for file, rows in chosen}
    if is_shared:
        work.delete_by_positions(chosen[0][0], deleted)
        return {"referenced-data-files": sorted(deleted)}
    for number, (file, _) in enumerate(chosen):
        path = file.file_path
        work.delete_by_positions(file, {path: deleted[path]}, f"deletes-{number}")
    return {}


def _upsert(chance: random.Random, scan: Scan) -> Build | None:
    """Write rows anew by their keys, as Flink does: it has read nothing."""
    chosen = _choose_rows(chance, scan)
    if not chosen or scan.metadata.format_version == 1:
        return None
    keys = sorted({row.key for _, rows in chosen for _, row in rows})

    def build(work: Work) -> None:
        work.delete_by_keys(keys)
        if chance.random() < 0.7:
            work.add_updates(keys)
        _ask("row-delta", chance, {}, work)

    return build


_BUILDERS: Mapping[Job, Callable[[random.Random, Scan], Build | None]] = {
    Job.OVERWRITE_ALL: _overwrite_all,
    Job.DELETE_ALL: _delete_all,
    Job.REPLACE: _replace,
    Job.REWRITE_MANIFESTS: _rewrite_manifests,
    Job.REWRITE_GROUPS: _rewrite_groups,
    Job.REWRITE_NUMBERED: _rewrite_numbered,
    Job.REWRITE_DELETES: _rewrite_deletes,
    Job.DELETE_ROWS: _delete_rows,
    Job.UPDATE_ROWS: _update_rows,
    Job.UPSERT: _upsert,
}
