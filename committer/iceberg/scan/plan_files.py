"""Scan planning: which data files a reader reads, with their deletes and residuals.

No I/O: bytes are asked for by `read`, one manifest after the other, when they are needed. A caller
that wants to read ahead or on several machines takes the steps itself: `plan_manifests` says which
manifests count, `load_deletes` needs the bytes of those with deletes, and `tasks_of_manifest` plans
each of the others for itself.
Source: the specification, "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from committer.iceberg.deletes.delete_index import DeleteIndex
from committer.iceberg.entry.data_file import DataFile, ManifestContent, ManifestEntry
from committer.iceberg.entry.drafts import new_entry
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.manifest.manifest import decode_manifest, naming
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.scan.entry_reader import (
    FileFilter,
    iter_matching_files,
    with_metrics_of,
    without_metrics,
)
from committer.iceberg.scan.scan_filter import ScanFilter
from committer.iceberg.scan.scan_task import FileScanTask, new_task
from committer.iceberg.scan.snapshot_manifests import Read, snapshot_manifests
from committer.iceberg.scan.time_travel import find_snapshot, scan_schema


def plan_files(
    metadata: TableMetadata,
    *,
    read: Read,
    filter: Expression = ALWAYS_TRUE,
    snapshot_id: int | None = None,
    ref: str | None = None,
    as_of_ms: int | None = None,
    case_sensitive: bool = True,
    with_metrics: bool = False,
) -> Iterator[FileScanTask]:
    """Plan a scan of the current snapshot, or of the one that an id, a ref or a time (ms) names.

    Tasks follow the order of the manifest list, one manifest in memory at a time, beside all delete
    files. `filter` is unbound. Data files have column metrics only `with_metrics`, which reads all
    of them. `read` gives the bytes at a location that the metadata names. Errors: `NotFoundError`
    for a snapshot that is not there; `InvalidFilterError`; `InvalidMetadataError`;
    `UnsupportedError`; those of `read`.
    """
    snapshot = find_snapshot(metadata, snapshot_id=snapshot_id, ref=ref, as_of_ms=as_of_ms)
    schema = scan_schema(metadata, snapshot, ref=ref)
    scan = Scan(
        metadata,
        ScanFilter(metadata.partition_specs, schema, filter, case_sensitive=case_sensitive),
        with_metrics=with_metrics,
    )
    return plan_snapshot(scan, snapshot, read)


def plan_snapshot(scan: Scan, snapshot: Snapshot | None, read: Read) -> Iterator[FileScanTask]:
    """Plan a scan of a snapshot, as `plan_files`; nothing without one."""
    planned = plan_manifests(scan, snapshot_manifests(snapshot, read))
    if not planned.data:
        return
    deletes = load_deletes(scan, planned.deletes, read)
    for row in planned.data:
        yield from tasks_of_manifest(scan, row, read(row.manifest_path), deletes)


@dataclass(frozen=True, slots=True)
class Scan:
    """The context of all steps of a scan. `with_metrics`: data files keep their column metrics."""

    metadata: TableMetadata
    filter: ScanFilter
    with_metrics: bool = False


@dataclass(frozen=True, slots=True)
class PlannedManifests:
    """The manifests of a snapshot that a scan has to read, in the order of the manifest list."""

    data: tuple[ManifestFile, ...]
    deletes: tuple[ManifestFile, ...]


def plan_manifests(scan: Scan, manifests: Iterable[ManifestFile]) -> PlannedManifests:
    """Leave out manifests without live files,
    and those whose partition summaries prove that none of their files matches."""
    live = (row for row in manifests if row.has_live_files)
    found = [row for row in live if scan.filter.may_match_manifest(row)]
    return PlannedManifests(
        tuple(row for row in found if row.content == ManifestContent.DATA),
        tuple(row for row in found if row.content == ManifestContent.DELETES),
    )


@dataclass(frozen=True, slots=True)
class LoadedDeletes:
    """The delete files of a scan. `compared`: the columns that equality deletes compare, whose
    metrics exclude files.
    """

    index: DeleteIndex
    compared: frozenset[int]


def load_deletes(scan: Scan, manifests: Iterable[ManifestFile], read: Read) -> LoadedDeletes:
    """Load the delete files of these manifests that may delete rows which the filter keeps: by
    their partitions, equality deletes also by the values that they compare."""
    metadata = scan.metadata
    entries = [entry for row in manifests for entry in _live_deletes(scan, row, read)]
    specs = {spec.spec_id: spec for spec in metadata.partition_specs}
    return LoadedDeletes(
        DeleteIndex(entries, specs=specs, schemas=metadata.schemas),
        frozenset(one for entry in entries for one in entry.data_file.equality_ids or ()),
    )


def _live_deletes(scan: Scan, row: ManifestFile, read: Read) -> Iterator[ManifestEntry]:
    residual, may_match = scan.filter.residual(row.partition_spec_id), scan.filter.may_match_file
    entries = decode_manifest(read(row.manifest_path), manifest_file=row).entries
    with naming(row):
        for entry in entries:
            file = entry.data_file
            if not entry.is_live or residual(file.partition) is None:
                continue
            if may_match is None or may_match(_deleted_values(file)):
                yield entry


def _deleted_values(file: DataFile) -> DataFile:
    """Keep the metrics of the columns that a delete file compares: only these values are also those
    of the rows that it deletes. Without such metrics no row filter leaves it out.

    The reference asks for all metrics, and loses deletes where a file holds other columns with
    values of its own.
    """
    return with_metrics_of(file, frozenset(file.equality_ids or ()))


def tasks_of_manifest(
    scan: Scan, row: ManifestFile, content: bytes, deletes: LoadedDeletes
) -> Iterator[FileScanTask]:
    """Yield the tasks of one data manifest's files. `row` is its row in the manifest list."""
    asked, index = scan.filter, deletes.index
    needs_metrics = scan.with_metrics or bool(deletes.compared)
    wanted = FileFilter(
        residual=asked.residual(row.partition_spec_id),
        may_match=asked.may_match_file,
        field_ids=None if scan.with_metrics else asked.field_ids | deletes.compared,
        keeps_metrics=needs_metrics,
    )
    spec = scan.metadata.spec_by_id(row.partition_spec_id)
    found = iter_matching_files(content, row, spec, wanted)
    if index.is_empty:
        return (new_task(file, (), residual, head) for head, file, residual in found)
    tidied = without_metrics if needs_metrics and not scan.with_metrics else _itself
    return (
        new_task(tidied(file), index.for_data_file(new_entry(head, file)), residual, head)
        for head, file, residual in found
    )


def _itself(file: DataFile) -> DataFile:
    return file
