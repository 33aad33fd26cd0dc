"""Finds the files of attempts that did not land and never will. Pure.

The proof is the table's own history. A swap replaces one base, and the metadata log names the file
that replaced it: if that is another attempt's, this one did not land. It never will if its answer
says so (`Conflict`, `Rejected`). If the answer was lost, it never will once its base is deleted: as
long as the base's metadata file exists, an operator may restore the table to it, and a swap that is
still in flight would find its condition true.

A file that several attempts share (a manifest of the batch, a merged one) is garbage only if it is
garbage of every attempt that names it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.cleanup.reachability import Reading, rows_of_all
from committer.plan.commit.commit import CommitPlan
from committer.ports.pointer_swap import LoadedTable

# Of that many snapshots the lists are read before manifests are deleted, and of every branch head.
LISTS_MAX = 100


@dataclass(frozen=True, slots=True)
class SentAttempt:
    """One attempt, as far as clean-up asks.

    `base_sequence_number`: the last one of its base, -1 in a table of version 1, which has none.
    `own_files` are named by this attempt alone, its `manifest_lists` among them; `manifests` by
    others too, perhaps. `may_land`: no answer has excluded it.
    """

    base_location: str
    base_sequence_number: int
    metadata_location: str
    manifest_lists: tuple[str, ...]
    own_files: tuple[str, ...]
    manifests: frozenset[str]
    may_land: bool = True


def sent_attempt(plan: CommitPlan, before: Iterable[str]) -> SentAttempt:
    """Record an attempt. `before`: the catalog's objects, written before its swap."""
    base, lists = plan.swap.base, plan.manifest_lists
    return SentAttempt(
        base.metadata_location,
        sequence_number_of(base.metadata),
        plan.swap.metadata_location,
        lists,
        (*lists, *before),
        frozenset(one.location for one in plan.objects).difference(lists)
        | {path for merged in plan.upkeep.merged for path in merged.paths},
    )


def sequence_number_of(metadata: TableMetadata) -> int:
    """Return the last sequence number; -1 in version 1, so that every snapshot is younger."""
    return -1 if metadata.format_version == 1 else metadata.last_sequence_number


class Fate(Enum):
    """The fate of an attempt, by metadata that was read after its answer."""

    LANDED = auto()
    DEAD = auto()  # another commit has replaced its base
    UNPROVEN = auto()


def fate_of(attempt: SentAttempt, table: LoadedTable) -> Fate:
    """Ask the table's history. A base that has left the metadata log proves nothing any more, and
    neither does a log where the catalog itself names metadata files.
    """
    metadata = table.metadata
    pointers = [*(one.metadata_file for one in metadata.metadata_log), table.metadata_location]
    lists = {snapshot.manifest_list for snapshot in metadata.snapshots}
    if attempt.metadata_location in pointers or not lists.isdisjoint(attempt.manifest_lists):
        return Fate.LANDED
    is_replaced = any(base == attempt.base_location for base, _ in pairwise(pointers))
    is_ours_to_name = attempt.metadata_location in attempt.own_files
    return Fate.DEAD if is_replaced and is_ours_to_name else Fate.UNPROVEN


@dataclass(frozen=True, slots=True)
class GarbageFiles:
    """Files that may be deleted once none of `bases` exists any more (at once, if there are none).

    `after_sequence_number`: no snapshot up to it can name one of the manifests.
    """

    own_files: tuple[str, ...]
    manifests: tuple[str, ...]
    bases: tuple[str, ...]
    after_sequence_number: int

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.manifests, *self.own_files)


@dataclass(frozen=True, slots=True)
class Judgment:
    """The garbage of attempts, and the manifests of those that may have landed."""

    garbage: tuple[GarbageFiles, ...]
    in_use: frozenset[str]


def judge(
    attempts: Sequence[SentAttempt],
    superseded: Collection[str],
    table: LoadedTable,
    *,
    stay: Collection[str] = (),
) -> Judgment:
    """Judge attempts that were all sent before a later commit of this committer landed.

    `superseded`: merged manifests that no later attempt lists. `stay`: manifests that an attempt
    may name yet, or may have landed with. All others of the attempts are sent no more.
    """
    fates = [(attempt, fate_of(attempt, table)) for attempt in attempts]
    dead = [attempt for attempt, fate in fates if fate is Fate.DEAD]
    in_use = _manifests(attempt for attempt, fate in fates if fate is not Fate.DEAD)
    kept = in_use.union(stay)
    doubted = [attempt for attempt in dead if attempt.may_land]
    in_doubt = _manifests(doubted)
    sure = [attempt for attempt in dead if not attempt.may_land]
    after = min(
        (one.base_sequence_number for one in attempts), default=sequence_number_of(table.metadata)
    )
    found = (
        _garbage_of(sure, (_manifests(sure) | set(superseded)) - in_doubt - kept, (), after),
        _garbage_of(doubted, in_doubt - kept, {one.base_location for one in doubted}, after),
    )
    return Judgment(tuple(one for one in found if one.files), frozenset(in_use))


def _manifests(attempts: Iterable[SentAttempt]) -> set[str]:
    return {manifest for attempt in attempts for manifest in attempt.manifests}


def _garbage_of(
    attempts: Iterable[SentAttempt], manifests: set[str], bases: Collection[str], after: int
) -> GarbageFiles:
    own = tuple(file for attempt in attempts for file in attempt.own_files)
    return GarbageFiles(own, tuple(sorted(manifests)), tuple(sorted(bases)), after)


# --- Before the deletion -------------------------------------------------------------------------


def named_after_all(garbage: GarbageFiles, table: LoadedTable) -> Reading[str | None]:
    """Return the first of the files that the table names in spite of the proof, or None.

    Errors: `InvalidMetadataError` for a manifest list that cannot be read.
    """
    metadata = table.metadata
    named = {table.metadata_location, *(one.metadata_file for one in metadata.metadata_log)}
    named.update(one.manifest_list for one in metadata.snapshots if one.manifest_list)
    if garbage.manifests:
        rows = yield from rows_of_all(_may_name(garbage, metadata), missing_is_error=True)
        named.update(rows)
    return next((file for file in garbage.files if file in named), None)


def _may_name(garbage: GarbageFiles, metadata: TableMetadata) -> list[Snapshot]:
    """Return snapshots younger than the first base, the last of them;
    and the head of every branch."""
    after = garbage.after_sequence_number
    younger = [one for one in metadata.snapshots if one.sequence_number > after][-LISTS_MAX:]
    heads = {ref.snapshot_id for ref in metadata.refs.values()}
    known = {one.snapshot_id for one in younger}
    return [*younger, *(one for one in metadata.snapshots if one.snapshot_id in heads - known)]
