"""Which column metrics a table wants collected: `write.metadata.metrics.*`.

Source: format.md section 13 and the reference implementation's defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from committer.errors import InvalidMetadataError
from committer.iceberg.schema import Schema

DEFAULT_PROPERTY = "write.metadata.metrics.default"
COLUMN_PREFIX = "write.metadata.metrics.column."
INFERRED_MAX_PROPERTY = "write.metadata.metrics.max-inferred-column-defaults"
INFERRED_MAX = 100


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """What is kept of a column: `counts`, and bounds cut to `bounds_width` (None: whole)."""

    counts: bool
    bounds: bool
    bounds_width: int | None = None


NONE = MetricsMode(counts=False, bounds=False)
COUNTS = MetricsMode(counts=True, bounds=False)
FULL = MetricsMode(counts=True, bounds=True)
DEFAULT = MetricsMode(counts=True, bounds=True, bounds_width=16)

_NAMED = {"none": NONE, "counts": COUNTS, "full": FULL}
_TRUNCATE = re.compile(r"truncate\((\d{1,9})\)")


def parse_metrics_mode(text: str, *, where: str) -> MetricsMode:
    """`none`, `counts`, `truncate(n)` or `full`. Errors: `InvalidMetadataError` naming `where`."""
    lowered = text.strip().lower()
    if lowered in _NAMED:
        return _NAMED[lowered]
    match = _TRUNCATE.fullmatch(lowered)
    if match is None or int(match[1]) == 0:
        raise InvalidMetadataError(
            f"property `{where}`: expected none, counts, truncate(n) or full, found `{text}`"
        )
    return MetricsMode(counts=True, bounds=True, bounds_width=int(match[1]))


def metrics_config(properties: Mapping[str, str], schema: Schema) -> dict[int, MetricsMode]:
    """The mode of every primitive column, by field id.

    Without a configured default only the first columns of a wide table have metrics: as many as
    `write.metadata.metrics.max-inferred-column-defaults` says.
    """
    columns = [(name, found) for name, found in schema.walk() if found.field_type.is_primitive]
    configured = properties.get(DEFAULT_PROPERTY)
    if configured is not None:
        mode = parse_metrics_mode(configured, where=DEFAULT_PROPERTY)
        modes = {found.field_id: mode for _, found in columns}
    else:
        inferred_max = _inferred_max(properties)
        modes = {
            found.field_id: DEFAULT if position < inferred_max else NONE
            for position, (_, found) in enumerate(columns)
        }
    for name, found in columns:
        own = properties.get(COLUMN_PREFIX + name)
        if own is not None:
            modes[found.field_id] = parse_metrics_mode(own, where=COLUMN_PREFIX + name)
    return modes


def _inferred_max(properties: Mapping[str, str]) -> int:
    text = properties.get(INFERRED_MAX_PROPERTY, "")
    return int(text) if text.isdecimal() else INFERRED_MAX
