"""The facts about its table that a task needs. Runs on executors: format only, no I/O.

Read once on the driver and shipped with the pickled writer, so all tasks of a micro-batch agree,
and no executor needs the catalog. Only the schema, the spec, the `write.*` properties and the
access to the stores travel: some kilobytes, however long the table's history is, and no secret but
what a catalog has vended for this table, which ends soon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from uuid import UUID

from committer.iceberg.metadata.snapshot import MAIN
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import PartitionSpec
from workers.files.store_access import StoreAccess
from workers.files.write_target import WriteTarget, write_properties
from workers.settings.wap import Destination, is_wap_enabled


@dataclass(frozen=True, slots=True)
class TableHead:
    """The newest snapshot of a branch; its number is 0 in format version 1."""

    snapshot_id: int
    sequence_number: int

    @classmethod
    def of(cls, metadata: TableMetadata, branch: str) -> Self | None:
        """Return the head of a branch; None where it has none."""
        head = metadata.branch_head(branch)
        return None if head is None else cls(head.snapshot_id, head.sequence_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTable(WriteTarget):
    """The table as the driver saw it when the write began. `specs`: all that its files may have.
    `head`: of the branch that the options name, or of main; None of an empty table. `heads`: of all
    branches, where the session may say which one is written to. `seen_ms`: when it was so, in Unix
    milliseconds; 0: that is not known.
    """

    name: str
    table_uuid: UUID
    specs: tuple[PartitionSpec, ...]
    head: TableHead | None
    format_version: int
    seen_ms: int = 0
    heads: Mapping[str, TableHead] = field(default_factory=dict)
    is_widened: bool = False
    """Whether `schema` has columns that the table gets with this write."""

    @classmethod
    def of(
        cls,
        name: str,
        metadata: TableMetadata,
        access: StoreAccess,
        branch: str | None = None,
        *,
        seen_ms: int = 0,
    ) -> TargetTable:
        """Return a table for its writers. `branch`: of the options of the write."""
        properties = write_properties(metadata)
        of_session = metadata.branches if branch is None and is_wap_enabled(properties) else ()
        return cls(
            metadata.location,
            metadata.current_schema,
            metadata.default_spec,
            properties,
            access,
            table_order=metadata.default_sort_order,
            sort_order=metadata.default_sort_order,
            name=name,
            table_uuid=metadata.require_uuid(),
            specs=tuple(metadata.partition_specs),
            head=TableHead.of(metadata, branch or MAIN),
            format_version=metadata.format_version,
            seen_ms=seen_ms,
            heads={each: head for each in of_session if (head := TableHead.of(metadata, each))},
        )

    def head_of(self, destination: Destination) -> TableHead | None:
        """Return the head that a write begins on."""
        return self.heads.get(destination.branch, self.head)
