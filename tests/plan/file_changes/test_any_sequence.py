"""Any sequence of operations leaves what a model of the branch says, to us and to PyIceberg."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.iceberg.deletes.delete_index import DeleteIndex
from committer.iceberg.entry.data_file import DataFile, ManifestEntry, ManifestEntryStatus
from committer.iceberg.expressions.expression import ALWAYS_TRUE, EqualTo, Reference
from committer.plan.operations.change import RemovedDelete
from tests.plan.branches import (
    Branch,
    data_file,
    equality_delete,
    name_of,
    position_delete,
)
from tests.support.iceberg.foreign_reader import pyiceberg_entries

CARRIERS = ("AA", "BB", "CC")
ROWS = 10


@dataclass
class Model:
    """What is live: of each data file its carrier, its number and its row id, by its name; of each
    delete file its number; of each data file the positions that vectors delete."""

    carriers: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    row_ids: dict[str, int] = field(default_factory=dict)
    positions: dict[str, set[int]] = field(default_factory=dict)

    def add(self, name: str, carrier: str, number: int) -> None:
        self.carriers[name], self.numbers[name] = carrier, number

    def remove(self, *names: str) -> None:
        for name in names:
            del self.carriers[name], self.numbers[name]
            self.positions.pop(name, None)
            self.row_ids.pop(name, None)


class Run:
    """Draws operations, lands them, and keeps the model."""

    def __init__(self, draw: Callable[[st.SearchStrategy[object]], object], version: int) -> None:
        self.draw, self.branch, self.model = draw, Branch.build(version), Model()
        self.count = 0
        self.added: list[DataFile] = []
        self.number: int | None = None

    @property
    def version(self) -> int:
        return self.branch.metadata.format_version

    def step(self) -> None:
        operations = [self.append, self.remove, self.overwrite, self.replace_partitions]
        operations += [self.rewrite, self.delete_carrier, self.cluster]
        if self.version > 1:
            operations += [self.upsert]
        operations += [self.position_deletes] if self.version == 2 else []
        operations += [self.vectors, self.vectors] if self.version == 3 else []
        applied = self.applied() if self.version > 1 else {}
        self.draw(st.sampled_from(operations))()  # type: ignore[operator]
        self.check(applied)

    # --- Operations ------------------------------------------------------------------------------

    def new_files(self, number: int | None = None) -> list[DataFile]:
        carriers = self.draw(st.lists(st.sampled_from(CARRIERS), min_size=1, max_size=3))
        assert isinstance(carriers, list)
        files = []
        for carrier in carriers:
            self.count += 1
            files.append(data_file(f"f{self.count}", carrier, rows=ROWS))
        self.added, self.number = files, number
        return files

    def landed(self) -> None:
        """Note the files that the last change has added."""
        number = self.branch.snapshot.sequence_number if self.number is None else self.number
        for file in self.added:
            self.model.add(name_of(file.file_path), str(file.partition[0]), number)

    def some(self) -> list[str]:
        names = sorted(self.model.carriers)
        found = self.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
        assert isinstance(found, list)
        return found

    def append(self) -> None:
        self.branch.append(*self.new_files())
        self.landed()

    def remove(self) -> None:
        names = self.some()
        self.branch.land(self.branch.change("delete", removed=names))
        self.model.remove(*names)

    def overwrite(self) -> None:
        names, files = self.some(), self.new_files()
        self.branch.land(self.branch.change("overwrite", *files, removed=names))
        self.model.remove(*names)
        self.landed()

    def replace_partitions(self) -> None:
        files = self.new_files()
        self.branch.land(self.branch.change("replace-partitions", *files))
        gone = {file.partition[0] for file in files}
        self.model.remove(*[one for one, of in self.model.carriers.items() if of in gone])
        self.landed()

    def delete_carrier(self) -> None:
        carrier = self.draw(st.sampled_from((*CARRIERS, None)))
        row_filter = ALWAYS_TRUE if carrier is None else EqualTo(Reference("carrier"), carrier)
        self.branch.land(self.branch.change("delete", row_filter=row_filter))
        of = self.model.carriers
        self.model.remove(*[one for one in of if carrier in (None, of[one])])

    def rewrite(self) -> None:
        names = self.some()
        if not names:
            return
        newest = max(self.model.numbers[name] for name in names)
        last = self.branch.snapshot.sequence_number
        number = self.draw(st.sampled_from([None, newest, last])) if self.version > 1 else None
        assert number is None or isinstance(number, int)
        files = self.new_files(number)
        change = self.branch.change("rewrite-files", *files, removed=names)
        self.branch.land(replace(change, data_sequence_number=number))
        self.model.remove(*names)
        self.landed()

    def cluster(self) -> None:
        self.branch.land(self.branch.change("rewrite-manifests"))

    def upsert(self) -> None:
        files = self.new_files()
        self.count += 1
        delete = equality_delete(f"e{self.count}", str(files[0].partition[0]), ids=(1, 5))
        self.branch.land(self.branch.change("row-delta", *files, delete))
        self.landed()

    def position_deletes(self) -> None:
        names = self.some()
        self.count += 1
        deletes = [
            position_delete(f"p{self.count}-{one}", self.model.carriers[one], of=one)
            for one in names
        ]
        self.branch.land(self.branch.change("row-delta", *deletes))

    def vectors(self) -> None:
        """Land vectors of one or two requests in one step; some name those that they replace."""
        changes = []
        for _ in range(2 if self.draw(st.booleans()) else 1):
            self.count += 1
            found: dict[str, set[int]] = {}
            for name in self.some():
                some = self.draw(st.sets(st.integers(0, ROWS - 1), min_size=1))
                assert isinstance(some, set)
                found[name] = some
            named: set[RemovedDelete] = set()
            for name in found:
                if self.model.positions.get(name) and self.draw(st.booleans()):
                    found[name] |= self.model.positions[name]
                    named.add(self.identity_of(name))
            vectors = self.branch.vectors(f"v{self.count}", **found)
            vectors = tuple(self.in_partition(one) for one in vectors)
            change = self.branch.change("row-delta", *vectors, base=self.branch.base)
            changes.append((replace(change, removed_delete_files=frozenset(named)), found))
        self.branch.land(*(change for change, _ in changes))
        for _, found in changes:
            for name, positions in found.items():
                self.model.positions.setdefault(name, set()).update(positions)

    def identity_of(self, name: str) -> RemovedDelete:
        (vector,) = (one for one in self.branch.live() if one.endswith(f"@{name}"))
        return self.branch.identity(vector)

    def in_partition(self, vector: DataFile) -> DataFile:
        carrier = self.model.carriers[name_of(vector.referenced_data_file or "")]
        return replace(vector, partition=(carrier,))

    # --- What must hold --------------------------------------------------------------------------

    def check(self, applied: Mapping[str, set[str]]) -> None:
        live = self.branch.live()
        data = {name: one for name, one in live.items() if not one.data_file.content}
        assert {name: one.data_file.partition[0] for name, one in data.items()} == (
            self.model.carriers
        )
        assert {name: one.sequence_number for name, one in data.items()} == self.model.numbers
        self.check_totals(live)
        self.check_row_ids(data)
        for name, positions in self.model.positions.items():
            if positions:
                assert set(self.branch.positions(name)) == positions
        if self.version > 1:
            for name, deletes in self.applied().items():
                assert {one for one in applied.get(name, ()) if one not in deletes} <= (
                    self.replaceable(name, applied.get(name, set()), deletes)
                )

    def replaceable(self, name: str, before: set[str], after: set[str]) -> set[str]:
        """Return what a vector takes the place of: one before it, and position deletes of its data
        file alone, which a table has from before version 3."""
        has_vector = any("@" in one for one in after)
        return {one for one in before if has_vector and ("@" in one or one.endswith(f"-{name}"))}

    def check_totals(self, live: Mapping[str, ManifestEntry]) -> None:
        files = [one.data_file for one in live.values()]
        data = [one for one in files if not one.content]
        totals = {
            "total-data-files": len(data),
            "total-records": sum(one.record_count for one in data),
            "total-delete-files": len(files) - len(data),
            "total-position-deletes": sum(o.record_count for o in files if o.content == 1),
            "total-equality-deletes": sum(o.record_count for o in files if o.content == 2),
        }
        summary = self.branch.summary
        assert {key: int(summary[key]) for key in totals} == totals
        for one in self.branch.manifests:
            entries = [e for e in live.values() if e.data_file.manifest_content == one.row.content]
            assert one.row.has_live_files or one.row.added_snapshot_id == (
                self.branch.snapshot.snapshot_id
            )
            assert entries or not one.row.has_live_files

    def check_row_ids(self, data: Mapping[str, ManifestEntry]) -> None:
        """Row ids stay, and no row has that of another."""
        if self.version < 3:
            return
        ids = {name: one.data_file.first_row_id for name, one in data.items()}
        for name, first in ids.items():
            assert first is not None
            assert self.model.row_ids.setdefault(name, first) == first
        firsts = [first for first in ids.values() if first is not None]
        used = Counter(first + row for first in firsts for row in range(ROWS))
        assert set(used.values()) <= {1}
        assert all(one < (self.branch.metadata.next_row_id or 0) for one in used)

    def applied(self) -> dict[str, set[str]]:
        """Return the delete files that a reader applies to each data file."""
        metadata, live = self.branch.metadata, self.branch.live()
        deletes = [one for one in live.values() if one.data_file.content]
        specs = {one.spec_id: one for one in metadata.partition_specs}
        index = DeleteIndex(deletes, specs=specs, schemas=metadata.schemas)
        for one in deletes:
            if one.data_file.is_deletion_vector:
                assert name_of(one.data_file.referenced_data_file or "") in live
        return {
            name: {
                name_of(found.file_path) + ("@" if found.is_deletion_vector else "")
                for found in index.for_data_file(entry)
            }
            for name, entry in live.items()
            if not entry.data_file.content
        }


@pytest.mark.thorough
@settings(deadline=None, max_examples=12)
@given(data=st.data())
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_any_sequence_of_operations_leaves_what_the_model_says(
    format_version: int, data: st.DataObject
) -> None:
    run = Run(data.draw, format_version)
    run.append()
    for _ in range(data.draw(st.integers(1, 8))):
        run.step()
    if format_version < 3 and data.draw(st.booleans()):
        run.branch.upgrade(format_version + 1)
        run.append()
        run.check({})
        for _ in range(data.draw(st.integers(1, 4))):
            run.step()


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_pyiceberg_reads_the_same_entries(format_version: int, tmp_path: Path) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("a1"), data_file("a2"), data_file("b1", "BB"))
    if format_version > 1:
        branch.land(branch.change("row-delta", equality_delete("e1", ids=(1, 3))))
    if format_version > 2:
        branch.land(branch.change("row-delta", *branch.vectors("v1", a2=[1, 5])))
        branch.land(branch.change("row-delta", *branch.vectors("v2", a2=[2])))
    branch.land(
        branch.change("rewrite-files", data_file("a3"), removed=["a1"], data_sequence_number=1)
    )
    branch.land(branch.change("rewrite-manifests"))

    for one in branch.manifests:
        written = tmp_path / one.row.manifest_path.rsplit("/", 1)[1]
        written.write_bytes(branch.objects[one.row.manifest_path])
        row = one.row
        found = pyiceberg_entries(
            written, snapshot_id=row.added_snapshot_id, sequence_number=row.sequence_number
        )
        ours = branch.entries_of(one)
        assert len(found) == len(ours)
        for theirs, entry in zip(found, ours, strict=True):
            assert theirs.status.value == entry.status.value
            assert theirs.snapshot_id == entry.snapshot_id
            if format_version > 1:
                assert theirs.sequence_number == entry.sequence_number
                assert theirs.file_sequence_number == entry.file_sequence_number
            assert theirs.data_file.file_path == entry.data_file.file_path
            assert theirs.data_file.record_count == entry.data_file.record_count
    statuses = {entry.status for entry in branch.entries()}
    assert ManifestEntryStatus.EXISTING in statuses
