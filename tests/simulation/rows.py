"""The rows of a table, as a reader finds them: each with an identity that it keeps when it moves.

No data file of a simulation has content. What its rows are, its writer says here (`WrittenRows`),
and what a position or an equality delete file deletes; deletion vectors are read from their Puffin
files. Written from the specification ("Scan Planning"), without the committer's index of deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from committer.iceberg.deletes.deletion_vector_file import decode_vector_of, vector_range
from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestEntry

# Of a row: the file that had it first, and its place there. Updates keep it.
Key = tuple[str, int]
Positions = frozenset[int]
_NONE: Positions = frozenset()


class Row(NamedTuple):
    """A row. `written_in`: the file that its present values were written to first; a rewrite, which
    only copies it, keeps that."""

    key: Key
    written_in: str


class DataAt(NamedTuple):
    """A live data file, as far as deletes ask for it. `scope`: its spec id and partition."""

    path: str
    scope: tuple[int, tuple[object, ...]]
    record_count: int
    sequence_number: int


@dataclass(slots=True)
class WrittenRows:
    """What writers say of their files, by path. A data file without an entry in `data` has rows of
    its own that are nowhere else.

    `positions`: what a position delete file deletes of each data file. `keys`: what an equality
    delete file does. `holders`: the files of `data` that have a version of a key.
    """

    data: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    positions: dict[str, Mapping[str, Positions]] = field(default_factory=dict)
    keys: dict[str, frozenset[Key]] = field(default_factory=dict)
    holders: dict[Key, set[str]] = field(default_factory=dict)

    def write(self, path: str, rows: Iterable[Row]) -> None:
        """Say which rows a data file has."""
        self.data[path] = tuple(rows)
        for row in self.data[path]:
            self.holders.setdefault(row.key, {row.key[0]}).add(path)

    def row(self, path: str, position: int) -> Row:
        rows = self.data.get(path)
        return Row((path, position), path) if rows is None else rows[position]

    def rows(self, path: str, record_count: int) -> Sequence[Row]:
        rows = self.data.get(path)
        if rows is not None:
            return rows
        return [Row((path, position), path) for position in range(record_count)]

    def places(self, key: Key) -> Iterator[tuple[str, int]]:
        """Yield the files and positions that have a version of a key, live or not."""
        for path in self.holders.get(key, (key[0],)):
            rows = self.data.get(path)
            if rows is None:
                yield path, key[1]
                continue
            for position, row in enumerate(rows):
                if row.key == key:
                    yield path, position


@dataclass(frozen=True, slots=True)
class Deleted:
    """What is deleted of live data files, by their paths. `problems`: why a reader fails."""

    positions: Mapping[str, Positions]
    problems: tuple[str, ...] = ()

    def of(self, path: str) -> Positions:
        return self.positions.get(path, _NONE)


Vector = Callable[[DataFile], Positions]
NOTHING_DELETED = Deleted({})


def read_vector(file: DataFile, puffin: bytes) -> Positions:
    """Return the positions of a deletion vector, from the bytes of its Puffin file."""
    offset, length = vector_range(file)
    return frozenset(decode_vector_of(file, puffin[offset : offset + length]))


def deleted_rows(
    data: Callable[[str], DataAt | None],
    deletes: Collection[ManifestEntry],
    written: WrittenRows,
    vector: Vector,
) -> Deleted:
    """Apply delete files: a vector hides the position deletes of its data file; position deletes
    hit data of their sequence number or a lower one, in their partition; equality deletes data of a
    lower one, everywhere if their spec is unpartitioned. `data`: looks up a live data file.
    """
    if not deletes:
        return NOTHING_DELETED
    found: dict[str, set[int]] = {}
    problems: list[str] = []
    for entry in deletes:
        file = entry.data_file
        if not file.is_deletion_vector:
            continue
        path = file.referenced_data_file or ""
        target = data(path)
        if target is None:
            continue
        if path in found:
            problems.append(f"{path} has two deletion vectors")
        if (entry.sequence_number or 0) < target.sequence_number:
            problems.append(f"the deletion vector of {path} is older than its data")
        found.setdefault(path, set()).update(vector(file))
    with_vectors = frozenset(found)
    for entry in deletes:
        for path, position, lag in _hits(entry, written):
            target = data(path)
            if target is None or (path in with_vectors and not lag):
                continue
            scope = (entry.data_file.spec_id, entry.data_file.partition)
            is_everywhere = bool(lag) and not entry.data_file.partition
            is_in_scope = is_everywhere or scope == target.scope
            if is_in_scope and target.sequence_number + lag <= (entry.sequence_number or 0):
                found.setdefault(path, set()).add(position)
    return Deleted({path: frozenset(hit) for path, hit in found.items()}, tuple(problems))


def _hits(entry: ManifestEntry, written: WrittenRows) -> Iterator[tuple[str, int, int]]:
    """Yield the places that a delete file names, and by how much its number must be above that of
    the data."""
    file = entry.data_file
    if file.content is DataFileContent.EQUALITY_DELETES:
        for key in sorted(written.keys.get(file.file_path, ())):
            for path, position in written.places(key):
                yield path, position, 1
    elif not file.is_deletion_vector:
        for path, positions in written.positions.get(file.file_path, {}).items():
            for position in positions:
                yield path, position, 0
