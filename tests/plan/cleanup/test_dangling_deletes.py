"""Which delete files apply to nothing, and what is read to tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.deletes.delete_index import DeleteIndex
from committer.iceberg.entry.data_file import DataFile, ManifestContent
from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.updates.metadata_update import (
    AddPartitionSpec,
    RemoveSnapshots,
    SetDefaultPartitionSpec,
    SetSnapshotRef,
)
from committer.plan.cleanup.dangling_deletes import DanglingDeletes, removes_dangling
from committer.plan.operations.change import Change, RemovedDelete
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head, MissingObjectsError
from committer.plan.validation.validate import validate
from tests.plan.branches import (
    Branch,
    data_file,
    equality_delete,
    name_of,
    position_delete,
)

DATA, DELETES = ManifestContent.DATA, ManifestContent.DELETES


class Look:
    """Looks at a branch again and again; notes the manifests that it reads."""

    def __init__(self, branch: Branch, dangling: DanglingDeletes | None = None) -> None:
        self.branch, self.dangling = branch, dangling or DanglingDeletes()
        self.reads: list[str] = []

    def is_due(self) -> bool:
        return self.dangling.is_due([one.row for one in self.branch.manifests])

    def keys(self) -> tuple[RemovedDelete, ...]:
        self.reads.clear()
        reading = self.dangling.find(
            self.branch.metadata, [one.row for one in self.branch.manifests]
        )
        try:
            wanted = next(reading)
            while True:
                self.reads += wanted
                wanted = reading.send([self.branch.objects.get(path) for path in wanted])
        except StopIteration as stop:
            found: tuple[RemovedDelete, ...] = stop.value
            return found

    def names(self) -> set[str]:
        return {name_of(key.file_path) for key in self.keys()}


def manifests(branch: Branch, content: ManifestContent) -> set[str]:
    rows = (one.row for one in branch.manifests)
    return {row.manifest_path for row in rows if row.content == content and row.has_live_files}


def row_delta(branch: Branch, *files: DataFile) -> None:
    branch.land(branch.change("row-delta", *files, base=branch.base))


def forget_removals(branch: Branch, *names: str) -> None:
    """Remove data as an engine does that leaves the deletes."""
    kept = [one for one in branch.manifests if one.row.content == DELETES]
    branch.land(branch.change("delete", removed=names))
    rest = [one for one in branch.manifests if one.row.content == DATA]
    branch.manifests = (*rest, *kept)


# --- Which apply to nothing ----------------------------------------------------------------------


def test_an_equality_delete_dangles_once_no_older_data_of_its_partition_is_live() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"), data_file("b1", "BB"))
    row_delta(branch, equality_delete("ea", ids=(1, 2)), equality_delete("eb", "BB", ids=(1, 2)))
    branch.append(data_file("a2"))
    look = Look(branch)
    assert look.names() == set()

    forget_removals(branch, "a1")
    assert look.is_due()
    assert look.names() == {"ea"}


def test_an_upsert_of_new_rows_leaves_a_delete_that_applies_to_nothing() -> None:
    branch = Branch.build(2)
    branch.append(data_file("b1", "BB"))
    row_delta(branch, data_file("a1"), equality_delete("ea", ids=(1, 2)))
    assert Look(branch).names() == {"ea"}


def test_position_deletes_of_a_partition_stay_as_long_as_data_as_old_as_they_are_is_live() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"))
    row_delta(branch, data_file("a2"), position_delete("p"))
    forget_removals(branch, "a1")
    look = Look(branch)
    # The data of its own commit.
    assert look.names() == set()
    forget_removals(branch, "a2")
    assert look.names() == {"p"}


def test_position_deletes_and_vectors_of_one_data_file_dangle_without_it() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"), data_file("a2"), data_file("a3"))
    row_delta(branch, position_delete("p1", of="a1"), position_delete("p2", of="a2"))
    forget_removals(branch, "a1")
    look = Look(branch)
    assert look.names() == {"p1"}
    branch.upgrade()
    row_delta(branch, *branch.vectors("v", a2=[1], a3=[2]))
    kept = branch.identity("v@a3")
    assert look.names() == {"p1"}
    forget_removals(branch, "a3")
    assert set(look.keys()) == {branch.identity("p1"), kept}


def test_deletes_of_an_unpartitioned_spec_apply_to_data_of_all_specs() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"))
    branch.update(AddPartitionSpec(PartitionSpec(1, ())), SetDefaultPartitionSpec(1))
    everywhere = replace(equality_delete("e", ids=(1, 2)), partition=(), spec_id=1)
    of_its_spec = replace(position_delete("p"), partition=(), spec_id=1)
    row_delta(branch, everywhere, of_its_spec)
    look = Look(branch)
    assert look.names() == {"p"}
    forget_removals(branch, "a1")
    assert look.names() == {"p", "e"}


def test_what_is_found_is_what_no_scan_opens() -> None:
    branch = Branch.build(2)
    for number in range(4):
        branch.append(data_file(f"a{number}"), data_file(f"b{number}", "BB"))
        row_delta(
            branch,
            equality_delete(f"e{number}", "BB" if number % 2 else "AA", ids=(1, 2)),
            position_delete(f"p{number}", "AA" if number % 2 else "BB"),
            position_delete(f"q{number}", of=f"a{number}"),
        )
    forget_removals(branch, "a0", "a1", "b0", "b1", "b2")
    live = branch.live().values()
    deletes = [entry for entry in live if entry.data_file.manifest_content is DELETES]
    schemas = [branch.metadata.current_schema]
    specs = {spec.spec_id: spec for spec in branch.metadata.partition_specs}
    index = DeleteIndex(deletes, specs=specs, schemas=schemas)
    data = [entry for entry in live if entry.data_file.manifest_content is DATA]
    applied = {name_of(one.file_path) for each in data for one in index.for_data_file(each)}
    everything = {name_of(entry.data_file.file_path) for entry in deletes}
    dangling = Look(branch).names()
    assert dangling == everything - applied
    assert len(dangling) > 2


# --- What is read --------------------------------------------------------------------------------


def test_a_second_look_reads_nothing_but_what_is_new() -> None:
    branch = Branch.build(2)
    for number in range(3):
        branch.append(data_file(f"a{number}"))
        row_delta(branch, position_delete(f"p{number}", of=f"a{number}"))
    look = Look(branch)
    assert look.names() == set()
    assert set(look.reads) == manifests(branch, DATA) | manifests(branch, DELETES)
    assert not look.is_due()
    assert look.names() == set()
    assert look.reads == []

    before = manifests(branch, DELETES)
    branch.append(data_file("a9"))
    assert not look.is_due()
    row_delta(branch, position_delete("p9", of="a0"))
    assert look.is_due()
    assert look.names() == set()
    assert set(look.reads) == manifests(branch, DELETES) - before

    before = manifests(branch, DATA) | manifests(branch, DELETES)
    forget_removals(branch, "a1")
    assert look.is_due()
    assert look.names() == {"p1"}
    assert set(look.reads) <= (manifests(branch, DATA) | manifests(branch, DELETES)) - before


def test_data_that_no_delete_is_for_is_never_read() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"))
    branch.append(data_file("b1", "BB"))
    row_delta(branch, equality_delete("e", ids=(1, 2)))
    branch.append(data_file("a2"))
    look = Look(branch)
    (first,) = (one.row.manifest_path for one in branch.manifests[-2:-1])
    assert look.names() == set()
    assert set(look.reads) & manifests(branch, DATA) == {first}


def test_memory_is_bounded_and_what_is_forgotten_is_read_again() -> None:
    branch = Branch.build(2)
    for number in range(6):
        branch.append(data_file(f"a{number}"))
        row_delta(branch, position_delete(f"p{number}", of=f"a{number}"))
    look = Look(branch, DanglingDeletes(files_max=2))
    assert look.names() == set()
    row_delta(branch, position_delete("p9", of="a0"))
    assert look.names() == set()
    assert set(look.reads) & manifests(branch, DATA)
    few = Look(branch, DanglingDeletes(deletes_max=1))
    assert few.names() == set()
    assert len(set(few.reads) & manifests(branch, DELETES)) < 9


def test_a_manifest_that_is_gone_is_an_error() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"))
    row_delta(branch, position_delete("p", of="a1"))
    for path in manifests(branch, DATA):
        del branch.objects[path]
    with pytest.raises(InvalidMetadataError, match="not there"):
        Look(branch).keys()


@pytest.mark.parametrize(
    ("text", "is_wanted"), [("true", True), (" TRUE ", True), ("false", False), ("yes", False)]
)
def test_a_table_says_whether_it_wants_it(text: str, is_wanted: bool) -> None:
    assert removes_dangling({"frazil.deletes.remove-dangling": text}) is is_wanted
    assert not removes_dangling({})


# --- The request that removes them ---------------------------------------------------------------


def removal(branch: Branch, *names: str) -> Change:
    keys = frozenset(branch.identity(name) for name in names)
    return replace(branch.change("rewrite-files"), removed_delete_files=keys, base=branch.base)


def verdict(branch: Branch, change: Change) -> Conflict | None:
    head: Head = branch.head
    while True:
        try:
            return validate(change, head)
        except MissingObjectsError as missing:
            found = {one: branch._bytes(one) for one in missing.needs}
            head = replace(head, objects=_Objects(found))


class _Objects(dict):  # type: ignore[type-arg]  # what a head asks for
    def find(self, wanted: object) -> bytes | None:
        found: bytes | None = self.get(wanted)
        return found


def dangling_branch() -> tuple[Branch, Change]:
    branch = Branch.build(2)
    branch.append(data_file("a1"), data_file("b1", "BB"))
    row_delta(branch, equality_delete("e", ids=(1, 2)))
    forget_removals(branch, "a1")
    assert Look(branch).names() == {"e"}
    return branch, removal(branch, "e")


def test_a_removal_lands_although_the_head_has_moved() -> None:
    branch, change = dangling_branch()
    for number in range(3):
        branch.append(data_file(f"a-{number}"))
        row_delta(branch, equality_delete(f"e{number}", ids=(1, 2)))
    assert verdict(branch, change) is None
    branch.land(change)
    assert "e" not in branch.names()
    assert branch.summary["operation"] == "replace"


def test_a_removal_conflicts_with_data_that_a_rewrite_has_numbered_back() -> None:
    branch, change = dangling_branch()
    rewrite = branch.change("rewrite-files", data_file("b2", "BB"), removed=["b1"])
    branch.land(replace(rewrite, data_sequence_number=1))
    found = verdict(branch, change)
    assert found is not None
    assert found.code is ConflictCode.ADDED
    # One that gives its files a number of their own is in nobody's way.
    branch, change = dangling_branch()
    branch.land(branch.change("rewrite-files", data_file("b2", "BB"), removed=["b1"]))
    assert verdict(branch, change) is None


def test_a_removal_conflicts_once_its_history_has_expired_or_is_rolled_back() -> None:
    branch, change = dangling_branch()
    branch.append(data_file("a2"))
    before = branch.metadata.snapshots
    branch.append(data_file("a3"))
    branch.update(RemoveSnapshots(tuple(one.snapshot_id for one in before)))
    found = verdict(branch, change)
    assert found is not None
    assert found.code is ConflictCode.HISTORY

    branch, change = dangling_branch()
    first = branch.metadata.snapshots[1]
    branch.update(SetSnapshotRef("main", SnapshotRef(first.snapshot_id, "branch")))
    found = verdict(branch, change)
    assert found is not None
    assert found.code is ConflictCode.NO_ANCESTOR
