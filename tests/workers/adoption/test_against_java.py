"""Files that Iceberg Java and Spark wrote get the entry that Java's manifests have for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import DataFile, ManifestContent
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.iceberg.metadata.table_metadata import TableMetadata, parse_table_metadata
from tests.support.builders.fixtures import read_bytes, table_dir, table_names
from tests.support.workers.parquet_files import footer_of
from workers.adoption.adopt_file import Adopted, adopt_file
from workers.adoption.adoption_target import AdoptionTarget

# What a footer proves of a bucket is one value; Java has computed the bucket of each row.
_UNPROVEN = ("are of more than one partition", "may have NaN", "no bounds of column")
# Java writes these too: a shape of its own for variants, and row ids that only it may give.
_OF_ITS_OWN = ("expected variant", "a column of metadata")
# Java knows more of rows that it writes (columns with NaN, whose footers have no bounds) and of
# columns as they were before a change of the schema; it gives zero another sign as a bound, and
# leaves out the row groups of files that it adds.
_DIFFERING = {
    "v2_all_types",
    "v3_all_types",
    "v2_schema_evolution",
    "v2_overwrites",
    "v2_name_mapping",
}


def metadata_of(name: str) -> TableMetadata:
    files = sorted((table_dir(name) / "metadata").glob("*.metadata.json*"))
    return parse_table_metadata(files[-1].read_bytes())


def live_files(metadata: TableMetadata) -> Iterator[DataFile]:
    head = metadata.current_snapshot
    if head is None or head.manifest_list is None:
        return
    for row in decode_manifest_list(read_bytes(head.manifest_list)).rows:
        if row.content is ManifestContent.DATA:
            content = read_bytes(row.manifest_path)
            entries = decode_manifest(content, manifest_file=row).entries
            yield from (entry.data_file for entry in entries if entry.is_live)


def facts(file: DataFile) -> dict[str, object]:
    names = ("column_sizes", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
    maps = {name: dict(getattr(file, name) or {}) for name in names}
    plain = (file.file_path, file.partition, file.record_count, file.file_size_in_bytes)
    return {"plain": plain, "offsets": file.split_offsets, **maps}


@pytest.mark.thorough
def test_entries_of_javas_files_are_those_of_java() -> None:
    same = refused = 0
    for name in table_names():
        try:
            metadata = metadata_of(name)
            files = list(live_files(metadata))
        except (IndexError, InvalidMetadataError):
            continue  # a table of another layout, or one with a quirk of Java's
        for file in files:
            try:
                content = read_bytes(file.file_path)
            except (FileNotFoundError, ValueError):
                continue  # some tables have invented files
            if not file.file_path.endswith(".parquet"):
                continue
            spec = metadata.spec_by_id(file.spec_id)
            target = replace(AdoptionTarget.of(metadata), spec=spec)
            found = adopt_file(file.file_path, len(content), footer_of(content), target)
            if not isinstance(found, Adopted):
                said = str(found)
                assert any(one in said for one in (*_UNPROVEN, *_OF_ITS_OWN)), said
                refused += 1
            elif name not in _DIFFERING:
                assert facts(found.file) == facts(file), name
                same += 1
    assert (same, refused) > (250, 50)
