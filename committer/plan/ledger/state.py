"""The committer's state of a table in memory: without foreign changes a commit reads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from committer.iceberg.manifest.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.ledger.ledger import Ledger, read_ledger
from committer.ports.pointer_swap import LoadedTable


@dataclass(frozen=True, slots=True)
class ListedManifest:
    """A row of a manifest list, and the bytes of it that go into the next list."""

    encoded: bytes
    row: ManifestFile


@dataclass(frozen=True, slots=True)
class TableState:
    """A loaded table, its ledger, and the manifests of the branch heads that were committed to.

    `heads` maps a snapshot id to its manifests; a missing head is asked for by the planner. `gone`:
    those of former heads, as the lists of their successors hold most of them.
    """

    table: LoadedTable
    ledger: Ledger
    heads: Mapping[int, tuple[ListedManifest, ...]] = field(default_factory=dict)
    gone: tuple[ListedManifest, ...] = ()

    @property
    def metadata(self) -> TableMetadata:
        return self.table.metadata

    def listed_count(self, branch: str) -> int:
        """Return how many manifests a branch's head lists; 0 where that is not known."""
        head = self.metadata.branch_head(branch)
        return 0 if head is None else len(self.heads.get(head.snapshot_id, ()))

    def head_rows(self, branch: str) -> list[ManifestFile]:
        """Return the manifests of a branch's head; none where it is not known."""
        head = self.metadata.branch_head(branch)
        listed = () if head is None else self.heads.get(head.snapshot_id, ())
        return [one.row for one in listed]

    @classmethod
    def of(cls, table: LoadedTable, previous: TableState | None = None) -> TableState:
        """Return the state of a freshly loaded table; heads that are still heads are carried over.

        Not over an upgrade: their rows are encoded for the format version that they were read for.
        """
        metadata = table.metadata
        if previous is None or previous.metadata.format_version != metadata.format_version:
            return cls(table, read_ledger(metadata))
        current = {ref.snapshot_id for ref in metadata.refs.values()}
        heads = {key: rows for key, rows in previous.heads.items() if key in current}
        gone = [row for key, rows in previous.heads.items() if key not in current for row in rows]
        return cls(table, read_ledger(metadata), heads, tuple(gone) or previous.gone)

    def with_head(self, snapshot_id: int, manifest_list: bytes) -> TableState:
        """Return the state once a manifest list was read; only unknown rows are decoded.

        Errors: `InvalidMetadataError`.
        """
        version = self.metadata.format_version
        known = {one.row.manifest_path.encode(): (one.encoded, one.row) for one in self.gone}
        decoded = decode_manifest_list(
            manifest_list, format_version=version, known={version: known}
        )
        rows = tuple(
            ListedManifest(encoded, row)
            for encoded, row in zip(decoded.encoded_rows, decoded.rows, strict=True)
        )
        return replace(self, heads={**self.heads, snapshot_id: rows}, gone=())
