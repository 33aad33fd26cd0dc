"""I21 is broken on purpose, in each way that its docstring names, and seen to notice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import encode_deletion_vectors
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.metadata.snapshot import Snapshot
from tests.simulation.contents import LiveFile, SnapshotContents
from tests.simulation.row_rules import Asked, RowRules
from tests.simulation.rows import Row, WrittenRows
from tests.support.builders.operation_requests import build_operation
from tests.support.builders.table_builders import build_table

ROWS = 4
BASE = 1
TABLE = build_table(warehouse="memory://warehouse")


class Table:
    """Snapshots by hand: each has the sequence number of its id."""

    def __init__(self) -> None:
        self.written = WrittenRows()
        self.puffins: dict[str, bytes] = {}
        self.rules = RowRules(self.written, self.puffins.get)

    def snapshot(
        self, number: int, paths: Sequence[str], deletes: Sequence[ManifestEntry] = ()
    ) -> SnapshotContents:
        snapshot = Snapshot(snapshot_id=number, sequence_number=number, timestamp_ms=number)
        live = {path: LiveFile(path, 0, (), ROWS, 100, BASE, BASE, BASE, None) for path in paths}
        return SnapshotContents(snapshot, (), live, tuple(deletes), (), (), {}, ())

    def vector(self, path: str, *positions: int, number: int = 2) -> ManifestEntry:
        name = f"{path}-{number}-{'-'.join(map(str, positions))}.puffin"
        encoded = encode_deletion_vectors(
            [(data_file(path), DeletionVector(positions))], file_path=name, created_by="a test"
        )
        self.puffins[name] = encoded.content
        return entry(encoded.delete_files[0], number)

    def positions(self, path: str, *positions: int, number: int = 2) -> ManifestEntry:
        name = f"{path}-{number}-deletes.parquet"
        self.written.positions[name] = {path: frozenset(positions)}
        file = replace(data_file(name), content=DataFileContent.POSITION_DELETES)
        return entry(replace(file, referenced_data_file=path), number)

    def keys(self, name: str, *keys: tuple[str, int], number: int = 2) -> ManifestEntry:
        self.written.keys[name] = frozenset(keys)
        return entry(replace(data_file(name), content=DataFileContent.EQUALITY_DELETES), number)

    def found(
        self,
        before: SnapshotContents,
        after: SnapshotContents,
        *requests: Asked,
    ) -> str:
        """Return what breaks I21."""
        base_of = {BASE: self.snapshot(BASE, ["a", "b"])}
        return "\n".join(self.rules.check(before, after, requests, base_of))


def data_file(path: str) -> DataFile:
    return DataFile(file_path=path, record_count=ROWS, file_size_in_bytes=100)


def entry(file: DataFile, number: int) -> ManifestEntry:
    return ManifestEntry(ManifestEntryStatus.ADDED, number, number, number, file)


def asked(operation: str, *files: DataFile, removed: Sequence[str] = (), **needs: Any) -> Asked:
    known = {key.replace("_", "-"): value for key, value in needs.items()}
    sealed = build_operation(TABLE, operation, files_count=1, needs=known)
    return Asked(sealed.request, files, removed)


def test_rows_that_a_request_deletes_may_go() -> None:
    table = Table()
    for made in (table.vector("a", 1, 2), table.positions("a", 1, 2), table.keys("e", ("a", 1))):
        before, after = table.snapshot(2, ["a", "b"]), table.snapshot(3, ["a", "b"], [made])
        table.rules = RowRules(table.written, table.puffins.get)
        assert table.found(before, after, asked("row-delta", made.data_file)) == ""
        table.rules = RowRules(table.written, table.puffins.get)
        assert "nobody has deleted" in table.found(before, after)


def test_a_vector_that_lacks_the_rows_of_the_one_before_breaks_i21() -> None:
    table = Table()
    new = table.vector("a", 3, number=3)
    before = table.snapshot(2, ["a"], [table.vector("a", 1)])
    after = table.snapshot(3, ["a"], [new])
    assert "1 rows return" in table.found(before, after, asked("row-delta", new.data_file))
    united = table.snapshot(4, ["a"], [table.vector("a", 1, 3, number=4)])
    assert table.found(before, united, asked("row-delta", new.data_file)) == ""


def test_a_delete_that_is_not_applied_breaks_i21() -> None:
    table = Table()
    new = table.keys("e", ("a", 1), number=BASE)
    before, after = table.snapshot(2, ["a"]), table.snapshot(3, ["a"], [new])
    assert "1 rows return" in table.found(before, after, asked("row-delta", new.data_file))


def test_a_delete_of_a_file_that_is_not_live_breaks_i21() -> None:
    table = Table()
    new = table.vector("a", 1)
    before, after = table.snapshot(2, ["b"]), table.snapshot(3, ["b"], [new])
    found = table.found(before, after, asked("row-delta", new.data_file))
    assert "deletes rows of a, which is not live" in found


def test_two_vectors_an_old_one_and_one_without_its_file_break_i21() -> None:
    table = Table()
    one, other = table.vector("a", 1), table.vector("a", 1, number=3)
    before = table.snapshot(2, ["a", "b"], [one])
    assert "two deletion vectors" in table.found(
        before, table.snapshot(3, ["a", "b"], [one, other])
    )
    gone = Asked(asked("row-delta").request, (), ["a"])
    assert "stays without it" in table.found(before, table.snapshot(4, ["b"], [one]), gone)
    old = table.vector("b", 1, number=0)
    assert "older than its data" in table.found(before, table.snapshot(5, ["a", "b"], [one, old]))


def test_a_rewrite_that_brings_a_deleted_row_back_breaks_i21() -> None:
    table = Table()
    table.written.write("c", [Row(("a", place), "a") for place in range(ROWS)])
    after = table.snapshot(3, ["b", "c"])
    rewrite = asked(
        "rewrite-files",
        data_file("c"),
        removed=["a"],
        base_snapshot_id=BASE,
        removed_data_files=["a"],
    )
    assert table.found(table.snapshot(2, ["a", "b"]), after, rewrite) == ""
    before = table.snapshot(4, ["a", "b"], [table.vector("a", 0)])
    assert "1 rows return" in table.found(before, after, rewrite)


def test_a_row_that_is_written_again_when_it_was_deleted_breaks_i21() -> None:
    table = Table()
    table.written.write("c", [Row(("a", 1), "c")])
    new, added = table.vector("a", 0, 1, number=3), replace(data_file("c"), record_count=1)
    update = asked("row-delta", new.data_file, added, updates_rows=True, base_snapshot_id=BASE)
    after = table.snapshot(3, ["a", "b", "c"], [new])
    assert table.found(table.snapshot(2, ["a", "b"]), after, update) == ""
    before = table.snapshot(4, ["a", "b"], [table.vector("a", 1)])
    assert "writes Row(key=('a', 1)" in table.found(before, after, update)


def test_a_serializable_change_that_has_not_read_a_row_breaks_i21() -> None:
    table = Table()
    new = table.vector("a", 1, number=3)
    change = asked(
        "row-delta", new.data_file, base_snapshot_id=BASE, isolation_level="serializable"
    )
    before, after = table.snapshot(2, ["a", "b"]), table.snapshot(3, ["a", "b"], [new])
    assert table.found(before, after, change) == ""
    before, after = table.snapshot(4, ["a", "b", "c"]), table.snapshot(5, ["a", "b", "c"], [new])
    assert "has not read Row(key=('c', 0)" in table.found(before, after, change)
