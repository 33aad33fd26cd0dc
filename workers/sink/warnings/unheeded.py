"""Names the properties of a table that this writer does not follow: none is ignored in silence.

Runs on the driver. Rows land all the same, and every reader reads them. An unknown `write.…`
property is named as well. Source: docs/reference/iceberg-notes.md 10.
"""

from __future__ import annotations

import logging

from committer.errors import UnsupportedError
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.sort_order import SortField
from committer.iceberg.values.transforms import UnknownTransform

_log = logging.getLogger("frazil.workers")

_DISTRIBUTION = "write.distribution-mode"
# Followed by the writer, or without effect on it: it checks each row group, and fans out.
_HEEDED = frozenset(
    {
        "write.data.path",
        "write.format.default",
        "write.object-storage.enabled",
        "write.object-storage.partitioned-paths",
        "write.parquet.compression-codec",
        "write.parquet.compression-level",
        "write.parquet.dict-size-bytes",
        "write.parquet.page-row-limit",
        "write.parquet.page-size-bytes",
        "write.parquet.page-version",
        "write.parquet.row-group-check-max-record-count",
        "write.parquet.row-group-check-min-record-count",
        "write.parquet.row-group-size-bytes",
        "write.spark.fanout.enabled",
        "write.target-file-size-bytes",
        "write.wap.enabled",
    }
)
# Properties of commits, deletes, updates and single columns, or of a format that is perhaps not the
# table's.
_OF_OTHERS = (
    "write.avro.",
    "write.delete.",
    "write.manifest",
    "write.merge.",
    "write.metadata.",
    "write.orc.block-size-bytes",
    "write.orc.bloom.filter.fpp",
    "write.orc.compression-",
    "write.orc.stripe-size-bytes",
    "write.orc.write-batch-size",
    "write.parquet.bloom-filter-adaptive-enabled",
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.bloom-filter-fpp.",
    "write.parquet.bloom-filter-max-bytes",
    "write.parquet.bloom-filter-ndv.",
    "write.summary.",
    "write.update.",
)
# Values that ask for nothing, of properties that begin so.
_NOTHING = (
    (_DISTRIBUTION, "none"),
    ("write.orc.bloom.filter.columns", ""),
    ("write.parquet.shred-variants", "false"),
    ("write.parquet.stats-enabled.", "true"),
    ("write.spark.accept-any-schema", "false"),
    ("write.upsert.enabled", "false"),
)
_TABLES_MAX = 1_000
_warned: set[tuple[str, str, str]] = set()


def warn_of_unheeded(
    table: str, metadata: TableMetadata, query: str, *, is_distributed: bool = False
) -> None:
    """Name the ignored properties in one warning: once for each query (a text that identifies it,
    such as its checkpoint), and again when they change. `is_distributed`: the rows come as they
    shall, so no distribution is missed.

    Errors: `UnsupportedError` for an encrypted table, whose rows would be written in plain text.
    """
    if key := metadata.properties.get("encryption.key-id"):
        raise UnsupportedError(
            f"table `{table}` is to be encrypted (`encryption.key-id` is `{key}`): only plain files"
            " are written here; write to it with an Iceberg engine"
        )
    found = unheeded(metadata, is_distributed=is_distributed)
    asked = ", ".join(found)
    if not asked or (table, asked, query) in _warned:
        return
    if len(_warned) >= _TABLES_MAX:
        _warned.clear()
    _warned.add((table, asked, query))
    _log.warning(
        "table `%s` asks its writers for what this one does not do: %s. The rows are written all"
        " the same, in the partitions that they come in;%s `frazil.spark.rewrite_data_files` puts"
        " that right.",
        table,
        asked,
        _call(table) if any(_DISTRIBUTION in one for one in found) else "",
    )


def _call(table: str) -> str:
    return (
        f' `distribute(df, "{table}")` of `frazil.spark` distributes them before the write, and'
        " afterwards"
    )


def unheeded(metadata: TableMetadata, *, is_distributed: bool = False) -> list[str]:
    """List the sort order, if rows cannot be sorted by it, and the properties with their values."""
    order = metadata.default_sort_order
    found = []
    if any(isinstance(field.transform, UnknownTransform) for field in order.fields):
        fields = ", ".join(_key(field, metadata) for field in order.fields)
        found.append(f"sort order {order.order_id} ({fields})")
    found += [
        f"`{name}={value}`"
        for name, value in sorted(metadata.properties.items())
        if name.startswith("write.") and _asks(name, value)
        if not (is_distributed and name == _DISTRIBUTION)
    ]
    return found


def _asks(name: str, value: str) -> bool:
    if name in _HEEDED or name.startswith(_OF_OTHERS):
        return False
    return not any(
        name.startswith(start) and value.strip().lower() == nothing for start, nothing in _NOTHING
    )


def _key(field: SortField, metadata: TableMetadata) -> str:
    column = metadata.current_schema.column_name(field.source_id)
    transform = str(field.transform)
    term = column if transform == "identity" else f"{transform}({column})"
    return f"{term} {field.direction} {field.null_order}"
