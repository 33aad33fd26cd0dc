"""What the committer keeps of a table in memory: a commit without foreign changes reads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from committer.iceberg.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.table_metadata import TableMetadata
from committer.plan.ledger import Ledger, read_ledger
from committer.ports import LoadedTable


@dataclass(frozen=True, slots=True)
class ListedManifest:
    """A row of a manifest list, and the bytes of it that go into the next list."""

    encoded: bytes
    row: ManifestFile


@dataclass(frozen=True, slots=True)
class TableState:
    """A loaded table, its ledger, and the manifests of the branch heads that were committed to.

    `heads` maps a snapshot id to its manifests; a missing head is asked for by the planner.
    """

    table: LoadedTable
    ledger: Ledger
    heads: Mapping[int, tuple[ListedManifest, ...]] = field(default_factory=dict)

    @property
    def metadata(self) -> TableMetadata:
        return self.table.metadata

    @classmethod
    def of(cls, table: LoadedTable, previous: TableState | None = None) -> TableState:
        """The state of a freshly loaded table; heads that are still heads are carried over.

        Not over an upgrade: their rows are encoded for the format version that they were read for.
        """
        version = table.metadata.format_version
        kept = previous.heads if previous and previous.metadata.format_version == version else {}
        heads = {ref.snapshot_id for ref in table.metadata.refs.values()}
        return cls(
            table,
            read_ledger(table.metadata),
            {snapshot_id: rows for snapshot_id, rows in kept.items() if snapshot_id in heads},
        )

    def with_head(self, snapshot_id: int, manifest_list: bytes) -> TableState:
        """The state once a manifest list was read. Errors: `InvalidMetadataError`."""
        decoded = decode_manifest_list(manifest_list, format_version=self.metadata.format_version)
        rows = tuple(
            ListedManifest(encoded, row)
            for encoded, row in zip(decoded.encoded_rows, decoded.rows, strict=True)
        )
        return replace(self, heads={**self.heads, snapshot_id: rows})
