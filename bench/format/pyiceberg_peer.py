"""PyIceberg's side, through its public classes; and what iceberg-rust offers to Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pyiceberg.expressions.parser import parse
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.typedef import Record
from pyiceberg_core import manifest as rust_manifest

from bench import workload
from bench.format import tables
from bench.format.measure import Work
from committer.iceberg.entry.data_file import DataFile as OurDataFile
from committer.iceberg.metadata.table_metadata import TableMetadata as OurMetadata
from committer.iceberg.metadata.table_metadata import print_table_metadata
from committer.iceberg.schema.partition_spec import print_partition_spec
from committer.iceberg.schema.schema import print_schema

_SNAPSHOT_ID = 1


def encode(size: int, folder: Path) -> Work:
    files = [_data_file(found) for found in tables.files(size)]
    return Work(lambda _: _write(folder, [_added(file) for file in files]))


def decode(size: int, folder: Path) -> Work:
    row, io = _manifest(folder, tables.manifest(size)), PyArrowFileIO()
    return Work(lambda _: len(row.fetch_manifest_entry(io)))


def decode_in_rust(size: int, _: Path) -> Work:
    content = tables.manifest(size)
    return Work(lambda _: len(rust_manifest.read_manifest_entries(content).entries()))


def join(size: int, folder: Path) -> Work:
    """Write the entries of the manifests again: PyIceberg has no way to join manifests."""
    io, entries = PyArrowFileIO(), list[ManifestEntry]()
    for row in _small_manifests(size, folder):
        entries += row.fetch_manifest_entry(io)
    return Work(lambda _: _write(folder, entries))


def check_and_join(size: int, folder: Path) -> Work:
    io, rows = PyArrowFileIO(), _small_manifests(size, folder)
    return Work(
        lambda _: _write(folder, [each for row in rows for each in row.fetch_manifest_entry(io)])
    )


def plan(size: int, folder: Path) -> Work:
    path = tables.write_table(folder, size)
    return Work(lambda _: len(list(StaticTable.from_metadata(str(path)).scan().plan_files())))


def plan_with_a_filter(size: int, folder: Path) -> Work:
    path, filter = tables.write_table(folder, size), parse(tables.filter_text(size))
    return Work(
        lambda _: len(
            list(StaticTable.from_metadata(str(path)).scan(row_filter=filter).plan_files())
        )
    )


def metadata_parse(size: int, _: Path) -> Work:
    text = print_table_metadata(tables.metadata_of(size)).decode()
    return Work(lambda _: len(TableMetadataUtil.parse_raw(text).snapshots))


def metadata_print(size: int, _: Path) -> Work:
    return _print(tables.metadata_of(size))


def metadata_print_again(size: int, _: Path) -> Work:
    return _print(tables.one_more(tables.metadata_of(size)))


def _print(metadata: OurMetadata) -> Work:
    text = print_table_metadata(metadata).decode()
    parsed: TableMetadata = TableMetadataUtil.parse_raw(text)

    def run(_: None) -> int:
        parsed.model_dump_json(exclude_none=True)
        return len(parsed.snapshots)

    return Work(run)


def _schema() -> Schema:
    return Schema.model_validate(print_schema(workload.schema()))


def _spec() -> PartitionSpec:
    return PartitionSpec.model_validate(print_partition_spec(workload.partition_spec()))


def _data_file(found: OurDataFile) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=found.file_path,
        file_format=FileFormat.PARQUET,
        partition=Record(*found.partition),
        record_count=found.record_count,
        file_size_in_bytes=found.file_size_in_bytes,
        column_sizes=found.column_sizes,
        value_counts=found.value_counts,
        null_value_counts=found.null_value_counts,
        nan_value_counts=found.nan_value_counts,
        lower_bounds=found.lower_bounds,
        upper_bounds=found.upper_bounds,
        split_offsets=list(found.split_offsets or ()),
    )


def _added(file: DataFile) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED, snapshot_id=_SNAPSHOT_ID, data_file=file
    )


def _write(folder: Path, entries: list[ManifestEntry]) -> int:
    output = PyArrowFileIO().new_output(str(folder / "written.avro"))
    with write_manifest(2, _spec(), _schema(), output, _SNAPSHOT_ID, "deflate") as writer:
        for entry in entries:
            writer.add_entry(entry)
    return len(entries)


def _manifest(folder: Path, content: bytes, number: int = 0) -> ManifestFile:
    path = folder / f"{number}-m0.avro"
    path.write_bytes(content)
    return ManifestFile.from_args(
        manifest_path=str(path),
        manifest_length=len(content),
        partition_spec_id=0,
        content=ManifestContent.DATA,
        sequence_number=1,
        min_sequence_number=1,
        added_snapshot_id=_SNAPSHOT_ID,
    )


def _small_manifests(size: int, folder: Path) -> list[ManifestFile]:
    contents = tables.small_manifests(size)
    return [_manifest(folder, content, number) for number, content in enumerate(contents)]


CASES: Mapping[str, Callable[[int, Path], Work]] = {
    "encode": encode,
    "decode": decode,
    "join": join,
    "check and join": check_and_join,
    "plan": plan,
    "plan with a filter": plan_with_a_filter,
    "metadata parse": metadata_parse,
    "metadata print": metadata_print,
    "metadata print again": metadata_print_again,
}
RUST_CASES: Mapping[str, Callable[[int, Path], Work]] = {"decode": decode_in_rust}
