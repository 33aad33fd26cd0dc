"""Position deletes of before an upgrade become vectors, and no row comes or goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import encode_deletion_vectors
from committer.iceberg.entry.data_file import DataFile
from committer.plan.cleanup.position_conversion import (
    Conversion,
    converts_positions,
    find_conversion,
)
from committer.plan.operations.change import Change
from tests.plan.branches import (
    FOLDER,
    Branch,
    data_file,
    name_of,
    path_of,
    position_delete,
)


class Converting:
    """A branch whose position delete files have rows, by the name of the file."""

    def __init__(self) -> None:
        self.branch = Branch.build(2)
        self.rows: dict[str, Mapping[str, Iterable[int]]] = {}
        self.converted: set[str] = set()

    def delete(
        self, name: str, rows: Mapping[str, Iterable[int]], carrier: str = "AA", **changes: object
    ) -> None:
        """Delete rows of data files. Of one: the file names it, unless `of` is None."""
        self.rows[name] = rows
        of = changes.pop("of", next(iter(rows)) if len(rows) == 1 else None)
        file = replace(
            position_delete(name, carrier, of=of),  # type: ignore[arg-type]  # a name
            **changes,  # type: ignore[arg-type]
        )
        self.branch.objects[file.file_path] = b""
        self.branch.land(self.branch.change("row-delta", file, base=self.branch.base))

    def _read(self, file: DataFile, content: bytes) -> Mapping[str, DeletionVector]:
        rows = self.rows[name_of(file.file_path)]
        return {path_of(of): DeletionVector(found) for of, found in rows.items()}

    def find(self, files_max: int = 1_000) -> Conversion:
        rows = [one.row for one in self.branch.manifests]
        metadata = self.branch.metadata
        reading = find_conversion(metadata, rows, self.converted, self._read, files_max)
        try:
            wanted = next(reading)
            while True:
                wanted = reading.send([self.branch.objects.get(path) for path in wanted])
        except StopIteration as stop:
            found: Conversion = stop.value
            return found

    def change(self, found: Conversion, name: str = "v") -> Change:
        path = f"{FOLDER}/data/{name}.puffin"
        files: tuple[DataFile, ...] = ()
        if found.vectors:
            encoded = encode_deletion_vectors(found.vectors, file_path=path, created_by="test")
            self.branch.objects[path], files = encoded.content, encoded.delete_files
        change = self.branch.change("rewrite-files", *files, base=self.branch.base)
        return replace(change, removed_delete_files=frozenset(found.removed))

    def convert(self, name: str = "v", files_max: int = 1_000) -> Conversion:
        found = self.find(files_max)
        self.branch.land(self.change(found, name))
        return found

    def old(self) -> set[str]:
        return {name for name in self.branch.names() if name.startswith(("p", "q"))}


def upgraded() -> Converting:
    one = Converting()
    one.branch.append(data_file("a1"), data_file("a2"), data_file("b1", "BB"))
    one.delete("p1", {"a1": [1, 2]})
    one.delete("p2", {"a1": [2, 5]})
    one.delete("q", {"a1": [7], "a2": [3]}, of=None)
    one.delete("pb", {"b1": [0]}, "BB")
    return one


def test_all_deletes_of_a_data_file_are_united_to_one_vector_and_go() -> None:
    one = upgraded()
    one.branch.upgrade()
    found = one.convert()
    assert len(found.removed) == 4
    assert one.old() == set()
    positions = {name: one.branch.positions(name) for name in ("a1", "a2", "b1")}
    assert positions == {"a1": [1, 2, 5, 7], "a2": [3], "b1": [0]}
    assert one.branch.summary["operation"] == "replace"
    assert one.find() == Conversion()
    assert one.converted == {
        row.row.manifest_path
        for row in one.branch.manifests
        if row.row.content and row.row.has_live_files
    }


def test_data_that_has_come_later_or_gone_gets_no_vector() -> None:
    one = upgraded()
    one.branch.append(data_file("z"))
    one.delete("p-none", {"gone": [1]})
    one.branch.upgrade()
    found = one.convert()
    assert [name_of(file.file_path) for file, _ in found.vectors] == ["a1", "a2", "b1"]
    assert one.old() == set()


def test_a_data_file_with_a_vector_keeps_it() -> None:
    one = upgraded()
    one.branch.upgrade()
    kept = one.branch.manifests
    vectors = one.branch.vectors("theirs", a1=[1, 2, 5, 7, 9])
    one.branch.land(one.branch.change("row-delta", *vectors, base=one.branch.base))
    assert kept
    found = one.convert()
    assert [name_of(file.file_path) for file, _ in found.vectors] == ["a2", "b1"]
    assert one.branch.positions("a1") == [1, 2, 5, 7, 9]
    assert one.old() == set()


def test_a_vector_that_was_added_meanwhile_is_not_lost() -> None:
    one = upgraded()
    one.branch.upgrade()
    change = one.change(one.find())
    vectors = one.branch.vectors("theirs", a1=[1, 2, 5, 7, 9])
    one.branch.land(one.branch.change("row-delta", *vectors, base=one.branch.base))
    one.branch.land(change)
    assert one.branch.positions("a1") == [1, 2, 5, 7, 9]
    assert one.branch.positions("a2") == [3]
    assert one.old() == set()


def test_a_round_is_bounded_and_a_file_of_a_partition_stays_until_all_of_its_data_has_vectors() -> (
    None
):
    one = upgraded()
    one.branch.upgrade()
    before = one.old()
    rounds = 0
    while one.old():
        rounds += 1
        assert rounds < 10
        one.convert(f"v{rounds}", files_max=1)
        assert one.old() < before
        before = one.old()
    assert rounds > 1
    positions = {name: one.branch.positions(name) for name in ("a1", "a2", "b1")}
    assert positions == {"a1": [1, 2, 5, 7], "a2": [3], "b1": [0]}


def test_a_round_of_one_data_file_takes_in_the_deletes_of_its_partition_and_leaves_their_file() -> (
    None
):
    one = Converting()
    one.branch.append(data_file("a1"), data_file("a2"))
    one.delete("q", {"a1": [7], "a2": [3]}, of=None)
    one.delete("p2", {"a2": [5]})
    one.delete("p1", {"a1": [1]})
    one.branch.upgrade()
    found = one.convert(files_max=1)
    assert [name_of(file.file_path) for file, _ in found.vectors] == ["a1"]
    assert one.branch.positions("a1") == [1, 7]
    assert one.old() == {"q", "p2"}
    one.convert("v2", files_max=1)
    assert one.branch.positions("a2") == [3, 5]
    assert one.branch.positions("a1") == [1, 7]


@pytest.mark.parametrize(
    "changes", [{"file_format": "ORC"}, {"key_metadata": b"k"}, {"record_count": 5_000_000}]
)
def test_what_cannot_be_read_stays_with_all_that_says_something_of_its_data(
    changes: dict[str, object],
) -> None:
    one = upgraded()
    one.delete("p-orc", {"b1": [4]}, carrier="BB", **changes)
    one.branch.upgrade()
    found = one.convert()
    assert found.left_alone == 1
    assert one.old() == {"p-orc", "pb"}
    assert one.branch.positions("a1") == [1, 2, 5, 7]

    one = upgraded()
    one.delete("q-orc", {"a1": [4]}, carrier="AA", of=None, **changes)
    one.branch.upgrade()
    one.convert()
    assert one.old() == {"p1", "p2", "q", "q-orc"}


def test_rows_of_another_data_file_than_the_one_that_is_named_are_an_error() -> None:
    one = Converting()
    one.branch.append(data_file("a1"))
    one.delete("p", {"a2": [1]}, of="a1")
    one.branch.upgrade()
    with pytest.raises(InvalidMetadataError, match="a1"):
        one.find()


def test_only_a_table_of_version_3_that_wants_it_is_converted() -> None:
    wanted = {"frazil.deletes.convert-positions": "true"}
    assert not converts_positions(Branch.build(2, properties=wanted).metadata)
    assert converts_positions(Branch.build(3, properties=wanted).metadata)
    assert not converts_positions(Branch.build(3).metadata)
