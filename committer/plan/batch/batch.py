"""The intent of a commit: what must land, kept apart from the attempts to land it.

A batch is a chain of steps, each of which makes one snapshot; all land by one swap. It never
changes. Its snapshot ids and the names of its manifests stay over all attempts; a changed set of
requests is a new batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from uuid import UUID

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_writer import EncodedManifest, ManifestContext
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.splice.manifest_splice import join_manifests
from committer.iceberg.values.locations import manifest_location, metadata_folder
from committer.plan.batch.manifest_size import target_bytes
from committer.plan.batch.partition_totals import Totals, count_partitions, partition_limit
from committer.plan.batch.request_check import CheckedRequest
from committer.plan.batch.submitted_manifest import CheckedManifest
from committer.ports.storage import NewObject


@dataclass(frozen=True, slots=True)
class Step:
    """Requests that share one snapshot; without any, the snapshot adds nothing."""

    requests: tuple[CheckedRequest, ...]
    snapshot_id: int

    @property
    def is_append(self) -> bool:
        """Whether it only adds files, as all of its requests then do; or none at all."""
        return not self.requests or self.requests[0].request.operation in ("append", "alter")

    @property
    def is_pick(self) -> bool:
        """Whether it applies a snapshot that another branch has, or none."""
        return any(one.request.operation == "cherry-pick" for one in self.requests)

    @property
    def adopts(self) -> bool:
        """Whether it adds files that others wrote, as the one request of such a step does."""
        return any(checked.request.adopt_existing for checked in self.requests)


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests of one branch, in the order of their steps. `empty_on`: the branch of a batch
    without requests.
    """

    steps: tuple[Step, ...]
    commit_uuid: UUID
    empty_on: str | None = None

    @property
    def requests(self) -> tuple[CheckedRequest, ...]:
        if len(self.steps) == 1:
            return self.steps[0].requests
        return tuple(one for step in self.steps for one in step.requests)

    @property
    def branch(self) -> str:
        return self.empty_on or self.steps[0].requests[0].request.branch

    @property
    def is_staged(self) -> bool:
        """Whether its snapshot gets no ref."""
        return any(one.request.stage_only for one in self.steps[0].requests)

    @property
    def creates_branch(self) -> bool:
        """Whether its branch begins at the head of main, where it is not there."""
        return any(one.request.create_branch for one in self.steps[0].requests)

    @property
    def changes_table(self) -> bool:
        """Whether it is of a request that changes more of the table than a branch's files, or that
        may move a branch without any."""
        first = self.steps[0]
        return first.is_pick or any(one.request.changes for one in first.requests)

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        return tuple(step.snapshot_id for step in self.steps)


@dataclass(frozen=True, slots=True)
class PreparedManifest:
    """A manifest of the batch, ready to be written; the same for every attempt.

    `totals`: what it adds to each partition; None where the table's summaries do not say it.
    `snapshot_id`: of the step that lists it.
    """

    location: str
    context: ManifestContext
    encoded: EncodedManifest
    snapshot_id: int
    totals: Totals | None = None

    @property
    def written(self) -> NewObject:
        return NewObject(self.location, self.encoded.content)


def snapshot_id_from(random: UUID, metadata: TableMetadata) -> int | None:
    """Derive a positive 63-bit snapshot id from a random uuid; None if the table has it already."""
    folded = (random.int >> 64) ^ (random.int & (2**64 - 1))
    snapshot_id = folded & (2**63 - 1)
    taken = snapshot_id == 0 or metadata.snapshot_by_id(snapshot_id) is not None
    return None if taken else snapshot_id


def prepare_manifests(batch: Batch, metadata: TableMetadata) -> tuple[PreparedManifest, ...]:
    """Join the entries of all requests of each step that appends: one manifest for each partition
    spec, or several above the table's target size of manifests.

    Depends on the batch, and of the table on its format version, current schema, specs and
    properties only.
    """
    prepared: list[PreparedManifest] = []
    for step in batch.steps:
        if step.is_append:
            prepared += _of_step(step, batch.commit_uuid, len(prepared), metadata)
    return tuple(prepared)


def _of_step(
    step: Step, commit_uuid: UUID, first_number: int, metadata: TableMetadata
) -> Iterator[PreparedManifest]:
    folder = metadata_folder(metadata.location, metadata.properties)
    groups = _groups(step, target_bytes(metadata.properties))
    limit = partition_limit(metadata.properties)
    for number, (spec_id, manifests) in enumerate(groups, first_number):
        context = manifest_context(metadata, spec_id)
        yield PreparedManifest(
            manifest_location(folder, commit_uuid, number),
            context,
            join_manifests(
                [manifest.part for manifest in manifests],
                context,
                sync=sync_marker(commit_uuid, number),
                snapshot_id=step.snapshot_id,
            ),
            step.snapshot_id,
            count_partitions(manifests, context.spec, context.schema, limit) if limit else None,
        )


def _groups(step: Step, size_bytes: int) -> Iterator[tuple[int, list[CheckedManifest]]]:
    by_spec: dict[int, list[CheckedManifest]] = defaultdict(list)
    for checked in step.requests:
        for manifest in checked.manifests:
            by_spec[manifest.spec_id].append(manifest)
    for spec_id, manifests in sorted(by_spec.items()):
        for group in rolled(manifests, size_bytes):
            yield spec_id, group


def rolled(
    manifests: Iterable[CheckedManifest], size_bytes: int
) -> Iterator[list[CheckedManifest]]:
    """Group neighbors up to that size: readers plan manifests side by side.
    One is never divided."""
    group: list[CheckedManifest] = []
    left_bytes = size_bytes
    for manifest in manifests:
        entries_bytes = len(manifest.part.content) - manifest.walked.header.end_offset
        if group and left_bytes < entries_bytes:
            yield group
            group, left_bytes = [], size_bytes
        group.append(manifest)
        left_bytes -= entries_bytes
    if group:
        yield group


def schema_of_spec(spec: PartitionSpec, metadata: TableMetadata) -> Schema:
    """Return the schema that a manifest of this spec is written with: the current one; for an older
    spec whose source columns it dropped, the last with them.

    Without the source column a partition field has no type, and its values could not be written.
    """
    sources = {field.source_id for field in spec.fields}
    candidates = (metadata.current_schema, *reversed(metadata.schemas))
    fitting = (one for one in candidates if all(one.field(source) for source in sources))
    return next(fitting, metadata.current_schema)


def manifest_context(
    metadata: TableMetadata, spec_id: int, content: ManifestContent = ManifestContent.DATA
) -> ManifestContext:
    """Return the context in which manifests of this spec are written."""
    spec = metadata.spec_by_id(spec_id)
    return ManifestContext(metadata.format_version, schema_of_spec(spec, metadata), spec, content)


def sync_marker(commit_uuid: UUID, number: int) -> bytes:
    """Derive 16 bytes, so that a plan stays pure, that no data block contains by accident."""
    return blake2b(commit_uuid.bytes, digest_size=16, salt=number.to_bytes(8, "big")).digest()
