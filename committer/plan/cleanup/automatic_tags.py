"""Tags that the committer sets at fixed times, so that a table is read as of then although its
snapshots expire soon.

The first commit after such a time takes the tag along. It names the snapshot that was current at
that time, by the snapshot log, as a reader who travels to that time would find it. Its retention is
its own, in `max-ref-age-ms`, by which any engine's expiry removes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.scan.time_travel import snapshot_as_of
from committer.iceberg.updates.metadata_update import SetSnapshotRef

EVERY_PROPERTY = "frazil.tags.every"
KEEP_PROPERTY = "frazil.tags.keep"
KEEP_DEFAULT = "7d"
PREFIX = "frazil-"
# Every tag is in every metadata file, some hundred bytes each.
TAGS_MAX = 1_000

_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PERIOD = re.compile(r"([1-9]\d{0,5})\s*([mhd])", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TagPolicy:
    """The intervals at which a table is tagged, and the age of each tag at its end. In ms."""

    every_ms: int
    keep_ms: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self | None:
        """Read a table's policy. None: no tags, also if a value cannot be read, or would keep more
        than `TAGS_MAX`."""
        every_ms = parse_period_ms(properties.get(EVERY_PROPERTY, ""))
        keep_ms = parse_period_ms(properties.get(KEEP_PROPERTY, KEEP_DEFAULT))
        if every_ms is None or keep_ms is None or keep_ms // every_ms > TAGS_MAX:
            return None
        return cls(every_ms, keep_ms)


def parse_period_ms(text: str) -> int | None:
    """Read a period of minutes, hours or days (`15m`, `1h`, `7d`); None for any other text."""
    match = _PERIOD.fullmatch(text.strip().lower())
    return None if match is None else int(match[1]) * _UNITS_MS[match[2]]


def due_tag(metadata: TableMetadata, *, now_ms: int) -> SetSnapshotRef | None:
    """Return the tag of the latest time that is due, if the table lacks it and it would stay."""
    policy = TagPolicy.of(metadata.properties)
    if policy is None:
        return None
    due_ms = now_ms - now_ms % policy.every_ms
    name = tag_name(due_ms)
    if name in metadata.refs or now_ms - due_ms >= policy.keep_ms:
        return None
    snapshot = _current_at(metadata, due_ms)
    if snapshot is None or _tags_count(metadata) >= TAGS_MAX:
        return None
    # Its age counts from the snapshot, which may be much older than the time.
    age_ms = policy.keep_ms + max(0, due_ms - snapshot.timestamp_ms)
    return SetSnapshotRef(name, SnapshotRef(snapshot.snapshot_id, "tag", max_ref_age_ms=age_ms))


def tag_name(time_ms: int) -> str:
    """Return the name of the tag of a time: `frazil-2026-11-23T10:00Z`."""
    return f"{PREFIX}{_EPOCH + timedelta(milliseconds=time_ms):%Y-%m-%dT%H:%MZ}"


def _current_at(metadata: TableMetadata, time_ms: int) -> Snapshot | None:
    """Return the snapshot that was current at a time; quickly if it is still."""
    log = metadata.snapshot_log
    if log and log[-1].timestamp_ms <= time_ms:
        return metadata.current_snapshot
    return snapshot_as_of(metadata, time_ms)


def _tags_count(metadata: TableMetadata) -> int:
    return sum(ref.type == "tag" and name.startswith(PREFIX) for name, ref in metadata.refs.items())
