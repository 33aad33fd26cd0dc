"""The manifests that checks read: all that are needed are asked for at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.plan.operations.change import RewriteGroup
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode
from committer.plan.operations.head import Head


@dataclass(frozen=True, slots=True)
class Loaded:
    """The entries of manifests by the manifest's path."""

    entries: Mapping[str, tuple[ManifestEntry, ...]]

    def live(self, rows: Iterable[ManifestFile]) -> Iterator[ManifestEntry]:
        """Yield the live entries of these manifests, which were read."""
        for row in rows:
            yield from (one for one in self.entries[row.manifest_path] if one.is_live)


class Check(Protocol):
    """A check of a change against a head."""

    def rows(self) -> Iterable[ManifestFile]:
        """Return the manifests that `conflict` looks at."""

    def conflict(self, loaded: Loaded) -> Conflict | None:
        """Return what stands against the change. Errors: `MissingObjectsError` for a second round
        of reads, where the first did not answer."""


def load(head: Head, checks: Sequence[Check]) -> Loaded:
    """Read what these checks look at. Errors: as `Head.entries`."""
    rows = {row.manifest_path: row for check in checks for row in check.rows()}
    return Loaded(dict(zip(rows, head.entries(list(rows.values())), strict=True)))


def dealt(loaded: Loaded, groups: Sequence[RewriteGroup], shared: Collection[str]) -> list[Loaded]:
    """Return for each group of a rewrite the live entries that concern it: its data files, those of
    the paths in `shared`, and the delete files that may hit one of its data files.
    """
    owners = {path: number for number, one in enumerate(groups) for path in one.removed_data_files}
    own: list[dict[str, list[ManifestEntry]]] = [{} for _ in groups]
    for manifest, entries in loaded.entries.items():
        for entry in entries:
            if not entry.is_live:
                continue
            path = _target(entry)
            if path is None or path in shared:
                concerned: Iterable[int] = range(len(groups))
            else:
                concerned = (owners[path],) if path in owners else ()
            for number in concerned:
                own[number].setdefault(manifest, []).append(entry)
    nothing: dict[str, tuple[ManifestEntry, ...]] = dict.fromkeys(loaded.entries, ())
    return [
        Loaded({**nothing, **{path: tuple(found) for path, found in one.items()}}) for one in own
    ]


def _target(entry: ManifestEntry) -> str | None:
    """Return the data file that an entry is of; None for delete files that may be for any."""
    file = entry.data_file
    if file.manifest_content is ManifestContent.DATA:
        return file.file_path
    return referenced_data_file(file)


def conflict_with(
    code: ConflictCode, found: Sequence[ManifestEntry], did: str, what: str
) -> Conflict:
    """Return the conflict with the files that others have added or removed.

    `did`: their verb, `what`: the object of it in the plural, as in "added", "data files of p = 1".
    """
    snapshot_id = found[0].snapshot_id
    first = [one for one in found if one.snapshot_id == snapshot_id]
    others = len(found) - len(first)
    paths = tuple(one.data_file.file_path for one in [*first, *found[len(first) :]][:PATHS_MAX])
    more = f" ({others} more by other snapshots)" if others else ""
    return Conflict(
        code,
        f"snapshot {snapshot_id} {did} {len(first)} {what}, first {paths[0]}{more}:"
        " run the job again on the current table",
        snapshot_id,
        paths,
    )
