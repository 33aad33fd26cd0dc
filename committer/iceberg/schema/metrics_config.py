"""The column metrics that a table wants collected: `write.metadata.metrics.*`.

Source: docs/reference/iceberg-notes.md 10.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from committer.iceberg.schema.schema import Schema, nested_fields
from committer.iceberg.schema.sort_order import SortOrder
from committer.iceberg.values.types import NestedField

DEFAULT_PROPERTY = "write.metadata.metrics.default"
COLUMN_PREFIX = "write.metadata.metrics.column."
INFERRED_MAX_PROPERTY = "write.metadata.metrics.max-inferred-column-defaults"
INFERRED_MAX = 100


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """The metrics kept of a column: `counts`, and bounds cut to `bounds_width` (None: whole)."""

    counts: bool
    bounds: bool
    bounds_width: int | None = None


NONE = MetricsMode(counts=False, bounds=False)
COUNTS = MetricsMode(counts=True, bounds=False)
FULL = MetricsMode(counts=True, bounds=True)
DEFAULT = MetricsMode(counts=True, bounds=True, bounds_width=16)

_NAMED = {"none": NONE, "counts": COUNTS, "full": FULL}
_COUNT = re.compile(r"\d{1,9}")
_TRUNCATE = re.compile(r"truncate\((\d{1,9})\)")


def parse_metrics_mode(text: str, *, fallback: MetricsMode) -> MetricsMode:
    """Parse `none`, `counts`, `truncate(n)` or `full`.

    Anything else is `fallback`: a misspelled property must not make a table of another engine
    unwritable.
    """
    lowered = text.strip().lower()
    if lowered in _NAMED:
        return _NAMED[lowered]
    match = _TRUNCATE.fullmatch(lowered)
    if match is None or int(match[1]) == 0:
        return fallback
    return MetricsMode(counts=True, bounds=True, bounds_width=int(match[1]))


def metrics_config(
    properties: Mapping[str, str], schema: Schema, sort_order: SortOrder
) -> dict[int, MetricsMode]:
    """Return the mode of every primitive column, by field id.

    Without a configured default only the first columns of a wide table have metrics: as many as
    `write.metadata.metrics.max-inferred-column-defaults` says. Columns that the rows are sorted by
    have bounds in any case, unless their own property says otherwise.
    """
    columns = [found.field_id for found in _primitives(schema.fields)]
    configured = properties.get(DEFAULT_PROPERTY)
    mode = DEFAULT if configured is None else parse_metrics_mode(configured, fallback=DEFAULT)
    first = columns if configured is not None else columns[: _inferred_max(properties)]
    default = mode if len(first) == len(columns) else NONE
    modes = dict.fromkeys(columns, default) | dict.fromkeys(first, mode)
    for field_id in _sorted_columns(sort_order) & modes.keys():
        modes[field_id] = default if default.bounds else DEFAULT
    for field_id in columns:
        own = properties.get(f"{COLUMN_PREFIX}{schema.column_name(field_id)}")
        if own is not None:
            modes[field_id] = parse_metrics_mode(own, fallback=default)
    return modes


def _primitives(fields: tuple[NestedField, ...]) -> Iterator[NestedField]:
    """Yield the primitive fields: those of a level before those nested in it."""
    yield from (found for found in fields if found.field_type.is_primitive)
    for found in fields:
        yield from _primitives(nested_fields(found.field_type))


def _sorted_columns(sort_order: SortOrder) -> set[int]:
    """Return the columns whose bounds say something about the order of rows."""
    return {field.source_id for field in sort_order.fields if field.transform.preserves_order}


def _inferred_max(properties: Mapping[str, str]) -> int:
    text = properties.get(INFERRED_MAX_PROPERTY, "")
    return int(text) if _COUNT.fullmatch(text) else INFERRED_MAX
