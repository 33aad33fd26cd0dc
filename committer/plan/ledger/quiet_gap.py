"""Decides when the committer leaves a gap between its commits, in which other engines can commit.

An engine reads the table, writes, and swaps: after a swap of Frazil in between it retries, and
fails after a few tries. It gets through only in a gap longer than it takes. One that is on its way
when a gap begins has lost already, so that it takes twice that time and its back-off to be sure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ledger_entry import parse_property_key
from committer.plan.ledger.evidence import is_ours

GAP_PROPERTY = "frazil.commit.yield-to-others-ms"
GAP_MS_MAX = 60_000


def property_ms(properties: Mapping[str, str], key: str, ms_max: int) -> int | None:
    """Read a property as a number, at most `ms_max`; None if it holds none."""
    text = properties.get(key, "").strip()
    if not (text.isascii() and text.isdigit()):
        return None
    return min(int(text), ms_max) if len(text) < 16 else ms_max


@dataclass(frozen=True, slots=True)
class GapPolicy:
    """In ms. `length`: of a gap, 0: none. `period`: a waiting writer gets a gap within it.
    `lately`: how long a foreign commit is remembered. `always`: leave gaps without having seen one.
    """

    length_ms: int = 5_000
    period_ms: int = 30_000
    lately_ms: int = 600_000
    always: bool = False

    def for_table(self, properties: Mapping[str, str]) -> GapPolicy:
        """Return a table's policy: one with a length of its own has other engines,
        so gaps always."""
        length_ms = property_ms(properties, GAP_PROPERTY, GAP_MS_MAX)
        if length_ms is None:
            return self
        return GapPolicy(length_ms, self.period_ms, self.lately_ms, always=True)


@dataclass(frozen=True, slots=True)
class GapHistory:
    """The latest events of a table, in ms of one clock. None: not yet.

    `last_swap_ms`: Frazil's latest swap ended. `gap_until_ms`: the latest gap ended.
    """

    last_foreign_ms: int | None = None
    last_swap_ms: int | None = None
    gap_until_ms: int | None = None

    def swapped(self, now_ms: int) -> GapHistory:
        return GapHistory(self.last_foreign_ms, now_ms, self.gap_until_ms)

    def saw_foreign(self, now_ms: int) -> GapHistory:
        return GapHistory(now_ms, self.last_swap_ms, self.gap_until_ms)

    def had_gap(self, now_ms: int) -> GapHistory:
        return GapHistory(self.last_foreign_ms, self.last_swap_ms, now_ms)


def gap_ms(policy: GapPolicy, history: GapHistory, *, now_ms: int) -> int | None:
    """Return how long the next commit waits to make a gap; None if none is due.

    0: the gap is there already, because there was nothing to commit.
    """
    if policy.length_ms == 0 or history.last_swap_ms is None:
        return None
    foreign_ms = history.last_foreign_ms
    seen = foreign_ms is not None and now_ms - foreign_ms <= policy.lately_ms
    if not (seen or policy.always):
        return None
    # A clock that jumps backwards delays a table by one gap at most.
    quiet_ms = max(0, now_ms - history.last_swap_ms)
    if quiet_ms >= policy.length_ms:
        return 0
    since_ms = None if history.gap_until_ms is None else now_ms - history.gap_until_ms
    if since_ms is not None and 0 <= since_ms < _between_ms(policy):
        return None
    return policy.length_ms - quiet_ms


def _between_ms(policy: GapPolicy) -> int:
    """Return the time from the end of one gap to the beginning of the next: a writer that is too
    late for one has a whole one within the period. Long gaps are rare, so that commits continue.
    """
    return max(policy.period_ms - 2 * policy.length_ms, 2 * policy.length_ms)


def is_foreign_change(before: TableMetadata, after: TableMetadata) -> bool:
    """Return whether another engine has changed a table, by two states of it that differ.

    A change by another committer is not foreign: it adds snapshots of Frazil or changes the ledger.
    """
    added = [one for one in after.snapshots if one.snapshot_id not in before.snapshots_by_id]
    if added:
        return any(not is_ours(one) for one in added)
    return _ledger_of(before) == _ledger_of(after)


def _ledger_of(metadata: TableMetadata) -> dict[str, str]:
    return {key: text for key, text in metadata.properties.items() if parse_property_key(key)}


def last_foreign_snapshot_ms(metadata: TableMetadata) -> int | None:
    """Return when the youngest snapshot of another engine was made, by its own clock."""
    return next(
        (one.timestamp_ms for one in reversed(metadata.snapshots) if not is_ours(one)), None
    )
