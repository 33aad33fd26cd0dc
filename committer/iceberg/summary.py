"""Snapshot summaries: what a commit added, and the running totals of its branch.

Totals are never recomputed: they follow from the summary before. Source: format.md section 7.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Added:
    """What a commit adds: data files, their records and bytes."""

    data_files: int = 0
    records: int = 0
    files_size: int = 0


# (total, what this commit adds to it, what it takes away)
_TOTALS = (
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)


def append_summary(
    previous: Mapping[str, str] | None,
    added: Added,
    *,
    changed_partition_count: int,
    manifests_created: int,
    manifests_kept: int,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The summary of an append. `previous`: the branch head's; None: the branch has no head."""
    metrics = {
        "added-data-files": added.data_files,
        "added-records": added.records,
        "added-files-size": added.files_size,
    }
    printed = {key: str(value) for key, value in metrics.items() if value > 0}
    return {
        "operation": "append",
        **(extra or {}),
        **printed,
        "changed-partition-count": str(changed_partition_count),
        "manifests-created": str(manifests_created),
        "manifests-kept": str(manifests_kept),
        "manifests-replaced": "0",
        **totals(previous, printed),
    }


def totals(previous: Mapping[str, str] | None, metrics: Mapping[str, str]) -> dict[str, str]:
    """The totals after a commit. One that was missing or unreadable before stays away for good."""
    found: dict[str, str] = {}
    for total, plus, minus in _TOTALS:
        before = 0 if previous is None else _number(previous.get(total))
        if before is None:
            continue
        after = before + (_number(metrics.get(plus)) or 0) - (_number(metrics.get(minus)) or 0)
        if after >= 0:
            found[total] = str(after)
    return found


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
