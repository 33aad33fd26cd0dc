"""The facts about a table that a writer of its files needs. Format only; no Arrow, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED, SortOrder
from workers.files.store_access import StoreAccess

_WRITE_PREFIX = "write."


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """A table as its writers see it. `schema` has the columns of the row lineage where files have
    them; `properties`: those that begin with `write.`; `table_order`: the table's sort order, whose
    columns have bounds; `sort_order`: what rows are sorted by."""

    location: str
    schema: Schema
    spec: PartitionSpec
    properties: Mapping[str, str]
    access: StoreAccess
    _: KW_ONLY
    table_order: SortOrder
    sort_order: SortOrder = UNSORTED


def write_properties(metadata: TableMetadata) -> dict[str, str]:
    """Return the properties that say how files are written."""
    return {k: v for k, v in metadata.properties.items() if k.startswith(_WRITE_PREFIX)}
