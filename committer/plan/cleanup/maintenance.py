"""Finished background work that becomes part of the next commit's swap, at no extra round trip.

`merge_selection.py` selects the manifests to merge, `expiry.py` the snapshots to expire.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.plan.cleanup.expiry import ExpiredSnapshots
from committer.plan.ledger.state import ListedManifest


@dataclass(frozen=True, slots=True)
class MergedManifests:
    """Manifests that are written already: all live entries of `replaced`, with explicit ids; one,
    or several that are clustered by partition.

    `replaced`: rows of the list of `branch`'s head, as the merge has read them. The snapshot id and
    sequence number of `rows` are those of the commit that lists them. `format_version`: what the
    manifests were written for.
    """

    branch: str
    format_version: int
    replaced: tuple[ManifestFile, ...]
    rows: tuple[ManifestFile, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The locations of the manifests."""
        return tuple(row.manifest_path for row in self.rows)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Maintenance that the next commit applies if it is still valid, and leaves out if not."""

    merged: tuple[MergedManifests, ...] = ()
    expired: ExpiredSnapshots | None = None


def applicable_merges(
    upkeep: Upkeep, branch: str, carried: Iterable[ListedManifest], format_version: int
) -> tuple[MergedManifests, ...]:
    """Return the merges whose replaced manifests are all still in the head's list, with equal rows.

    Another row for the same path means other inherited ids (an upgrade assigns row ids): the
    explicit ones would contradict it. A manifest for an older version lacks ids that a list of this
    version does not hand down to EXISTING entries.
    """
    of_branch = [
        merged
        for merged in upkeep.merged
        if merged.branch == branch and merged.format_version == format_version
    ]
    if not of_branch:
        return ()
    rows = {listed.row.manifest_path: listed.row for listed in carried}
    chosen: list[MergedManifests] = []
    for merged in of_branch:
        if all(rows.get(row.manifest_path) == row for row in merged.replaced):
            chosen.append(merged)
            for row in merged.replaced:
                del rows[row.manifest_path]
    return tuple(chosen)


def with_merges(
    carried: tuple[ListedManifest, ...],
    merges: tuple[MergedManifests, ...],
    *,
    snapshot_id: int,
    sequence_number: int,
) -> tuple[ListedManifest, ...]:
    """Put each merge's rows, not encoded yet,
    where the last (the oldest) of its replaced ones was."""
    if not merges:
        return carried
    replaced = {row.manifest_path for merged in merges for row in merged.replaced}
    instead = {
        merged.replaced[-1].manifest_path: [
            ListedManifest(
                b"", replace(row, added_snapshot_id=snapshot_id, sequence_number=sequence_number)
            )
            for row in merged.rows
        ]
        for merged in merges
    }
    rows: list[ListedManifest] = []
    for listed in carried:
        path = listed.row.manifest_path
        if path in instead:
            rows += instead[path]
        elif path not in replaced:
            rows.append(listed)
    return tuple(rows)
