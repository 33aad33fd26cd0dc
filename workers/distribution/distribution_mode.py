"""The modes by which the rows of a write are distributed to its tasks, and the mark of a DataFrame
that is. Values only.

The mark is metadata of a column, which Spark shows to a data source with the schema of the rows.
Source: Iceberg Java 1.10, `SparkWriteConf.distributionMode`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

from committer.errors import SettingsError
from committer.iceberg.metadata.table_metadata import TableMetadata

DistributionMode = Literal["none", "hash", "range"]
PROPERTY = "write.distribution-mode"
OPTION = "distribution-mode"
_MARK = "frazil.distribution-mode"


def mode_of(text: str, where: str) -> DistributionMode:
    """Read a mode. Errors: `SettingsError` that names `where` it stands."""
    found = text.strip().lower()
    known = get_args(DistributionMode)
    if found not in known:
        raise SettingsError(f"{where}: expected {', '.join(known)}, found `{text}`")
    return cast(DistributionMode, found)


def wanted_mode(metadata: TableMetadata, given: DistributionMode | None = None) -> DistributionMode:
    """Return the mode of a write: what its caller gives, else what the table's property says, else
    `range` for a sorted table and `hash` for a partitioned one.

    `hash` needs partitions, and `range` partitions or an order; else it is `none`.
    """
    is_partitioned = not metadata.default_spec.is_unpartitioned
    is_sorted = bool(metadata.default_sort_order.fields)
    text = metadata.properties.get(PROPERTY)
    mode = given
    if mode is None and text is not None:
        mode = mode_of(text, f"property `{PROPERTY}`")
    if mode is None:
        mode = "range" if is_sorted else "hash"
    has_keys = is_partitioned or (mode == "range" and is_sorted)
    return mode if has_keys else "none"


# --- The mark ------------------------------------------------------------------------------------


def marked(frame: Any, mode: DistributionMode) -> Any:
    """Return a DataFrame that says how its rows are distributed."""
    first = frame.schema.fields[0]
    return frame.withMetadata(first.name, {**(first.metadata or {}), _MARK: mode})


def mark_of(schema: Any) -> DistributionMode | None:
    """Return how the rows of a DataFrame are distributed, None if nothing says it. `schema`: a
    `StructType` of Spark's."""
    marks = (_mark(field.metadata) for field in schema.fields)
    return next((mark for mark in marks if mark is not None), None)


def _mark(metadata: Mapping[str, object] | None) -> DistributionMode | None:
    found = (metadata or {}).get(_MARK)
    return cast(DistributionMode, found) if found in get_args(DistributionMode) else None


def check_option(text: str | None, schema: Any) -> DistributionMode | None:
    """Return how the rows of a write are known to be distributed: by their mark, or because the
    option `distribution-mode` says that they come as they shall.

    Errors: `SettingsError` for an option that asks for what only the caller can do.
    """
    mark = mark_of(schema)
    if text is None:
        return mark
    asked = mode_of(text, f"option `{OPTION}`")
    if asked not in ("none", mark):
        raise SettingsError(
            f"option `{OPTION}`: a Python data source cannot ask Spark to distribute its rows:"
            f' write `distribute(df, "db.table", mode="{asked}")` of `frazil.spark` instead of `df`'
        )
    return asked
