"""The manifests that a step writes: their names and rows, and those of the files that it adds.

Source: docs/reference/iceberg-notes.md 6.6, 6.9, 13.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from committer.iceberg.entry.data_file import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    with_order,
)
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.manifest.manifest_writer import (
    EncodedManifest,
    ManifestContext,
    encode_manifest,
    manifest_file,
)
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.splice.manifest_splice import join_manifests
from committer.plan.batch.batch import manifest_context, rolled, sync_marker
from committer.plan.batch.manifest_size import target_bytes
from committer.plan.batch.submitted_manifest import CheckedManifest
from committer.plan.file_changes.tally import Tally
from committer.plan.ledger.state import ListedManifest
from committer.plan.operations.change import Change
from committer.plan.operations.step_output import StepNames
from committer.ports.storage import NewObject

# A new file, and its data sequence number; None: that of the commit.
NumberedFile = tuple[DataFile, int | None]


class NewManifests:
    """Names what a step writes and makes its rows. Mutable; `objects`: all of it so far."""

    def __init__(self, metadata: TableMetadata, names: StepNames) -> None:
        self.metadata, self.names = metadata, names
        self.objects: list[NewObject] = []

    def sync(self) -> bytes:
        """Return the sync marker of the manifest that is listed next."""
        return sync_marker(self.names.attempt_uuid, self.names.of_step(len(self.objects)))

    def listed(
        self, encoded: EncodedManifest, context: ManifestContext, old: ManifestFile | None = None
    ) -> ListedManifest:
        """Take over a manifest. `old`: the row of the one whose place it takes; it keeps its first
        row id, as its entries have ids of their own: none is used up."""
        path = self.names.manifest(len(self.objects))
        self.objects.append(NewObject(path, encoded.content))
        row = manifest_file(
            encoded,
            context,
            manifest_path=path,
            snapshot_id=self.names.snapshot_id,
            sequence_number=self.names.sequence_number,
        )
        if old is not None:
            row = replace(row, first_row_id=old.first_row_id)
        return ListedManifest(b"", row)


def list_added_data(
    new: NewManifests, changes: Sequence[Change], tally: Tally
) -> list[ListedManifest]:
    """List the data files that the changes add: one manifest for each partition spec and sequence
    number, or several above the table's target size of manifests."""
    groups: defaultdict[tuple[int, int | None], list[tuple[CheckedManifest, Change]]] = defaultdict(
        list
    )
    for change in changes:
        for manifest in change.added_data:
            number = explicit_number(new.metadata, change)
            groups[manifest.spec_id, number].append((manifest, change))
    listed: list[ListedManifest] = []
    for (spec_id, number), group in sorted(
        groups.items(), key=lambda one: (one[0][0], one[0][1] or 0)
    ):
        context = manifest_context(new.metadata, spec_id)
        left_out = frozenset[str]().union(*(change.left_out_data_files for _, change in group))
        for manifests in rolled([one for one, _ in group], target_bytes(new.metadata.properties)):
            if number is None and not left_out:
                encoded = join_manifests(
                    [one.part for one in manifests],
                    context,
                    sync=new.sync(),
                    snapshot_id=new.names.snapshot_id,
                )
                for one in manifests:
                    tally.add_manifest(one, one.files())
            else:
                files = [f for one in manifests for f in one.files() if f.file_path not in left_out]
                if not files:
                    continue
                for file in files:
                    tally.add(file)
                encoded = _encode(new, ((file, number) for file in files), context)
            listed.append(new.listed(encoded, context))
    return listed


def list_added_deletes(
    new: NewManifests, files: Iterable[NumberedFile], tally: Tally
) -> list[ListedManifest]:
    """List delete files: one manifest for each partition spec."""
    groups: defaultdict[int, list[NumberedFile]] = defaultdict(list)
    for file, number in files:
        tally.add(file)
        groups[file.spec_id].append((file, number))
    listed: list[ListedManifest] = []
    for spec_id, group in sorted(groups.items()):
        context = manifest_context(new.metadata, spec_id, ManifestContent.DELETES)
        listed.append(new.listed(_encode(new, group, context), context))
    return listed


def explicit_number(metadata: TableMetadata, change: Change) -> int | None:
    """Return the data sequence number that a change gives its files; None: the commit's."""
    return None if metadata.format_version == 1 else change.data_sequence_number


def _encode(
    new: NewManifests, files: Iterable[NumberedFile], context: ManifestContext
) -> EncodedManifest:
    snapshot_id = new.names.snapshot_id if context.format_version == 1 else None
    entries = (
        ManifestEntry(ManifestEntryStatus.ADDED, snapshot_id, number, None, with_order(file))
        for file, number in files
    )
    return encode_manifest(entries, context, sync=new.sync())
