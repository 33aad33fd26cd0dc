"""Snapshot summaries: what a commit changed, and the running totals of its branch.

Totals are never recomputed: they follow from the summary before. Source:
docs/reference/iceberg-notes.md 5.2.
"""

from __future__ import annotations

from collections.abc import Mapping

# (total, this commit's addition, this commit's removal)
_TOTALS = (
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)
_LONG_MAX = 2**63 - 1
_WRITTEN_ALWAYS = frozenset(
    ("changed-partition-count", "manifests-created", "manifests-kept", "manifests-replaced")
)


def commit_summary(
    operation: str,
    previous: Mapping[str, str] | None,
    counts: Mapping[str, int],
    *,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the summary of any operation. `counts` has keys of the specification
    (`deleted-records`, …). `previous`: the branch head's; None: the branch has no head.

    Counts of 0 are left out, but for `changed-partition-count` and the manifests. A key of `extra`
    never replaces a computed one: readers rely on those.
    """
    printed = {
        key: str(count) for key, count in counts.items() if count > 0 or key in _WRITTEN_ALWAYS
    }
    computed = {"operation": operation, **printed, **totals(previous, counts)}
    return {**computed, **{key: text for key, text in (extra or {}).items() if key not in computed}}


def totals(previous: Mapping[str, str] | None, counts: Mapping[str, int]) -> dict[str, str]:
    """Return the totals after a commit. One that was missing or unreadable stays absent."""
    found: dict[str, str] = {}
    for total, plus, minus in _TOTALS:
        before = 0 if previous is None else _number(previous.get(total))
        if before is None:
            continue
        after = before + counts.get(plus, 0) - counts.get(minus, 0)
        if after >= 0:
            found[total] = str(after)
    return found


def _number(text: str | None) -> int | None:
    """Parse a decimal number below 2^63. Anything else is None, as for a reader in Java."""
    if text is None or not text.isascii() or not text.isdigit():
        return None
    return int(text) if len(text) <= len(str(_LONG_MAX)) and int(text) <= _LONG_MAX else None
