"""I21: of each snapshot of the committer, the live rows are those of its parent, without the rows
that its requests delete, with the rows that they add. So no deleted row returns, and no row goes
that no request has deleted.

In particular:
* A rewrite of data files, delete files or manifests changes no row, whatever groups of it land.
* A deletion vector, or a position delete that names its data file, lands only while that file is
  live: else its rows live on elsewhere.
* A row that an update, or an overwrite with isolation, writes again was live just before it, and is
  not after: else it would return, or be there twice.
* At `serializable`, no row is live just before that its client has not read.
* A data file has one vector at most, which is not older than the file and goes with it.

Judged from the entries of the two snapshots, the real vectors, and what the writers say of their
files (`rows.py`): never from what the committer has compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.request.commit_request import CommitRequest
from tests.simulation.contents import Read, SnapshotContents, delete_key
from tests.simulation.rows import (
    DataAt,
    Deleted,
    Positions,
    Row,
    WrittenRows,
    deleted_rows,
    read_vector,
)

_REWRITES = ("rewrite-files", "rewrite-manifests")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that has landed in a snapshot: the files that it adds, and the data files that it
    removes of those that were live before."""

    request: CommitRequest
    files: Sequence[DataFile]
    removed: Collection[str]

    @property
    def name(self) -> str:
        return f"epoch {self.request.epoch} of {self.request.producer.id}"


@dataclass(slots=True)
class _Effect:
    """What the requests of a snapshot do to its parent: `dead` places, by path."""

    dead: dict[str, set[int]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def kill(self, path: str, positions: Collection[int]) -> None:
        self.dead.setdefault(path, set()).update(positions)


class RowRules:
    """Judges the snapshots of one table."""

    def __init__(self, written: WrittenRows, read: Read) -> None:
        self._written, self._read = written, read
        self._deleted: dict[int, Deleted] = {}
        self._vectors: dict[tuple[str, int | None, int | None], Positions] = {}

    def check(
        self,
        before: SnapshotContents | None,
        after: SnapshotContents,
        requests: Sequence[Asked],
        base_of: dict[int, SnapshotContents],
    ) -> Iterator[str]:
        """Check one snapshot against its parent. `base_of`: what clients may have read, by id."""
        step = _Step(self, before, after)
        yield from step.problems()
        for one in requests:
            if one.request.operation not in _REWRITES:
                yield from self._check_request(step, one, base_of)
        yield from step.difference(requests)

    def _check_request(
        self, step: _Step, one: Asked, base_of: dict[int, SnapshotContents]
    ) -> Iterator[str]:
        effect = self._effect(step, one)
        yield from (f"{one.name} {text}" for text in effect.problems)
        for path, positions in effect.dead.items():
            step.effect.kill(path, positions)
        needs = one.request.needs
        is_copy = one.request.operation == "overwrite" and needs.isolation_level is not None
        if needs.updates_rows or is_copy:
            yield from self._written_again(step, one, effect)
        read = base_of.get(needs.base_snapshot_id or 0)
        is_checked = needs.isolation_level == "serializable" and needs.conflict_filter is None
        if is_checked and read is not None and one.request.operation != "replace-partitions":
            unread = step.old_rows() - self.live_rows(read)
            if unread:
                yield f"{one.name} is serializable, and has not read {min(unread)}"

    def _effect(self, step: _Step, one: Asked) -> _Effect:
        effect = _Effect()
        named = set(one.request.needs.referenced_data_files)
        for file in one.files:
            if file.content is DataFileContent.EQUALITY_DELETES:
                for key in self._written.keys.get(file.file_path, ()):
                    for path, position in self._written.places(key):
                        if step.reaches(file, path):
                            effect.kill(path, (position,))
                continue
            if file.content is DataFileContent.DATA:
                continue
            positions = self.positions_of(file)
            only = referenced_data_file(file)
            for path, hit in positions.items():
                effect.kill(path, hit)
                if path not in step.old_live and (path == only or path in named):
                    effect.problems.append(f"deletes rows of {path}, which is not live")
        for path in one.removed:
            if path in step.old_live:
                effect.kill(path, range(step.old_live[path].record_count))
        return effect

    def _written_again(self, step: _Step, one: Asked, effect: _Effect) -> Iterator[str]:
        dead = {
            row
            for path, positions in effect.dead.items()
            for position, row in step.old_rows_of(path)
            if position in positions
        }
        keys = {row.key for row in dead}
        for file in one.files:
            if file.content is not DataFileContent.DATA:
                continue
            for row in self._written.rows(file.file_path, file.record_count):
                is_copied = row.written_in != file.file_path
                is_updated = row.key[0] != file.file_path
                if (is_copied and row not in dead) or (is_updated and row.key not in keys):
                    yield f"{one.name} writes {row} again, which it does not delete or was deleted"

    # --- What a reader finds ---------------------------------------------------------------------

    def deleted(self, contents: SnapshotContents) -> Deleted:
        snapshot_id = contents.snapshot.snapshot_id
        known = self._deleted.get(snapshot_id)
        if known is None:
            known = deleted_rows(
                lambda path: _data_at(contents, path), contents.deletes, self._written, self.vector
            )
            self._deleted[snapshot_id] = known
        return known

    def rows_of(self, contents: SnapshotContents, path: str) -> Iterator[tuple[int, Row]]:
        """Yield the live rows of a live data file, with their positions."""
        gone = self.deleted(contents).of(path)
        rows = self._written.rows(path, contents.live[path].record_count)
        return ((place, row) for place, row in enumerate(rows) if place not in gone)

    def live_rows(self, contents: SnapshotContents) -> set[Row]:
        return {row for path in contents.live for _, row in self.rows_of(contents, path)}

    def positions_of(self, file: DataFile) -> dict[str, Positions]:
        """Return what a position delete file or a vector deletes of each data file."""
        if file.is_deletion_vector:
            return {file.referenced_data_file or "": self.vector(file)}
        return dict(self._written.positions.get(file.file_path, {}))

    def vector(self, file: DataFile) -> Positions:
        key = delete_key(file)
        known = self._vectors.get(key)
        if known is None:
            content = self._read(file.file_path)
            # That it is not there breaks I6.
            known = frozenset() if content is None else read_vector(file, content)
            self._vectors[key] = known
        return known

    def added_rows(self, file: DataFile) -> Sequence[Row]:
        return self._written.rows(file.file_path, file.record_count)


class _Step:
    """A snapshot and its parent."""

    def __init__(
        self, rules: RowRules, before: SnapshotContents | None, after: SnapshotContents
    ) -> None:
        self._rules, self._before, self._after = rules, before, after
        self.old_live = {} if before is None else before.live
        self.effect = _Effect()

    def old_rows_of(self, path: str) -> Iterator[tuple[int, Row]]:
        if self._before is None or path not in self.old_live:
            return iter(())
        return self._rules.rows_of(self._before, path)

    def reaches(self, delete: DataFile, path: str) -> bool:
        """Return whether an equality delete file may apply to a data file of the parent."""
        live = self.old_live.get(path)
        if live is None:
            return False
        scope = delete.spec_id, delete.partition
        return not delete.partition or scope == (live.spec_id, live.partition)

    def old_rows(self) -> set[Row]:
        return set() if self._before is None else self._rules.live_rows(self._before)

    def problems(self) -> Iterator[str]:
        if not self._after.deletes:
            return
        known = () if self._before is None else self._rules.deleted(self._before).problems
        yield from (one for one in self._rules.deleted(self._after).problems if one not in known)
        removed = self.old_live.keys() - self._after.live.keys()
        for entry in self._after.deletes:
            file = entry.data_file
            if file.is_deletion_vector and file.referenced_data_file in removed:
                yield f"the deletion vector of {file.referenced_data_file} stays without it"

    def difference(self, requests: Sequence[Asked]) -> Iterator[str]:
        """Compare what is live with what ought to be, in the files that have changed."""
        old, new = self.old_live, self._after.live
        changed = (old.keys() ^ new.keys()) | self.effect.dead.keys() | self._deleted_otherwise()
        expected: Counter[Row] = Counter()
        for path in changed & old.keys():
            dead = self.effect.dead.get(path, ())
            expected.update(row for place, row in self.old_rows_of(path) if place not in dead)
        for one in requests:
            if one.request.operation in _REWRITES:
                continue
            for file in one.files:
                if file.content is DataFileContent.DATA and file.file_path not in old:
                    expected.update(self._rules.added_rows(file))
        found: Counter[Row] = Counter()
        for path in changed & new.keys():
            found.update(row for _, row in self._rules.rows_of(self._after, path))
        if returned := found - expected:
            yield f"{returned.total()} rows return or are there twice: {min(returned)}"
        if gone := expected - found:
            yield f"{gone.total()} rows are gone that nobody has deleted: {min(gone)}"

    def _deleted_otherwise(self) -> set[str]:
        """Return the files of which other rows are deleted than before."""
        if not self._after.deletes and (self._before is None or not self._before.deletes):
            return set()
        old = self._rules.deleted(self._before).positions if self._before else {}
        new = self._rules.deleted(self._after).positions
        return {path for path in {*old, *new} if old.get(path) != new.get(path)}


def _data_at(contents: SnapshotContents, path: str) -> DataAt | None:
    file = contents.live.get(path)
    if file is None:
        return None
    scope = file.spec_id, file.partition
    return DataAt(path, scope, file.record_count, file.sequence_number or 0)
