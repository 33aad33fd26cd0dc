"""The branch that an operation is planned on, and what can be read of it without I/O.

A plan that needs more raises `MissingObjectsError` with all that it knows to need; the planner
returns that as a value, and is called again with the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry
from committer.iceberg.manifest.manifest_list import ManifestFile, live_manifests
from committer.iceberg.manifest.manifest_row import RowCheck
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.batch.batch import schema_of_spec
from committer.plan.ledger.state import ListedManifest
from committer.plan.operations.change_index import Changes
from committer.plan.operations.decoded_manifests import DECODED

READ_BYTES_MAX = 256 * 1024 * 1024
"""So many bytes of manifests are in memory for one look of a plan: those of a million files or two.
"""


@dataclass(frozen=True, slots=True, order=True)
class ObjectRange:
    """Bytes of an object; `length` None: up to its end."""

    location: str
    offset: int = 0
    length: int | None = None

    def of(self, content: bytes) -> bytes:
        """Return these bytes of the whole object."""
        end = len(content) if self.length is None else self.offset + self.length
        return content[self.offset : end]


class MissingObjectsError(Exception):
    """A plan needs these bytes. Raised and caught within planning: outside, it is a value."""

    def __init__(self, needs: Iterable[ObjectRange]) -> None:
        self.needs = frozenset(needs)
        super().__init__(f"{len(self.needs)} objects are not at hand")


class TooMuchToReadError(Exception):
    """A plan would hold more manifests in memory than one may. Raised and caught within planning:
    outside, it is a conflict."""

    def __init__(self, manifests: int, size_bytes: int) -> None:
        super().__init__(
            f"it would look into {manifests} manifests of {size_bytes} bytes, and at most"
            f" {READ_BYTES_MAX} bytes are read at once: give it a filter of fewer partitions, or"
            " have the table's manifests clustered by partition"
        )


class ObjectsAtHand(Protocol):
    """The bytes that were read, or written by an earlier commit of this process."""

    def find(self, wanted: ObjectRange) -> bytes | None:
        """Return the bytes, or None if they have to be read."""
        ...


@dataclass(frozen=True, slots=True)
class Objects:
    """Bytes by their range. `Objects()` has none."""

    by_range: Mapping[ObjectRange, bytes] = field(default_factory=dict)

    def find(self, wanted: ObjectRange) -> bytes | None:
        return self.by_range.get(wanted)


@dataclass(frozen=True, slots=True)
class WrittenObjects:
    """The files that earlier steps of a swap write, by location, in front of those at hand."""

    written: Mapping[str, bytes]
    others: ObjectsAtHand

    def find(self, wanted: ObjectRange) -> bytes | None:
        content = self.written.get(wanted.location)
        if content is None:
            return self.others.find(wanted)
        return wanted.of(content)


@dataclass(frozen=True, slots=True)
class Head:
    """A branch as it is when the turn of an operation comes, with what earlier operations of the
    same swap have made of it.

    `snapshot` is its newest one, None for a branch without any; `manifests` are the rows of its
    list, in that order. `changes`: what is known of snapshots behind it, retained or not.
    """

    metadata: TableMetadata
    branch: str
    snapshot: Snapshot | None
    manifests: tuple[ListedManifest, ...]
    objects: ObjectsAtHand
    changes: Changes = field(default_factory=dict)

    def ancestors(self) -> Iterator[Snapshot]:
        """Yield the branch's retained snapshots, the newest first."""
        return self.metadata.ancestors(self.snapshot.snapshot_id if self.snapshot else None)

    def live_rows(self, content: ManifestContent) -> list[ManifestFile]:
        """Return the manifests of one content that may list live files, in the list's order."""
        return live_manifests((listed.row for listed in self.manifests), content)

    def contents(self, wanted: Sequence[ObjectRange]) -> list[bytes]:
        """Return the bytes in this order. Errors: `MissingObjectsError` naming all that are not at
        hand."""
        found = [self.objects.find(one) for one in wanted]
        missing = [one for one, content in zip(wanted, found, strict=True) if content is None]
        if missing:
            raise MissingObjectsError(missing)
        return [content for content in found if content is not None]

    def manifest_contents(self, rows: Sequence[ManifestFile]) -> list[bytes]:
        """Return the bytes of these manifests, in this order. Errors: as `contents`;
        `TooMuchToReadError`."""
        size_bytes = sum(row.manifest_length for row in rows)
        if size_bytes > READ_BYTES_MAX:
            raise TooMuchToReadError(len(rows), size_bytes)
        return self.contents([ObjectRange(row.manifest_path) for row in rows])

    def entries(self, rows: Sequence[ManifestFile]) -> list[tuple[ManifestEntry, ...]]:
        """Return the entries of each of these manifests, with what they inherit, in this order.

        Ask for all that are needed in one call: each `MissingObjectsError` is a round of reads.
        Errors: as `manifest_contents`; `InvalidMetadataError` for a manifest that is not what its
        row says.
        """
        contents = self.manifest_contents(rows)
        return [DECODED.entries(content, row) for row, content in zip(rows, contents, strict=True)]


def may_hold_any(
    metadata: TableMetadata, row: ManifestFile, partitions: Iterable[tuple[object, ...]]
) -> bool:
    """Return whether a manifest may list files of one of these partitions, all of its spec."""
    spec = metadata.spec_by_id(row.partition_spec_id)
    check = RowCheck(row, spec, schema_of_spec(spec, metadata))
    return any(map(check.may_hold, partitions))
