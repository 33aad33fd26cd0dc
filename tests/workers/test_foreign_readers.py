"""Files and metrics as other Iceberg readers see them: through a manifest, by PyIceberg and DuckDB.

The table around the files is made by hand: metadata, one snapshot, one manifest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.manifest.manifest_list import encode_manifest_file, encode_manifest_list
from committer.iceberg.manifest.manifest_writer import (
    ManifestContext,
    encode_manifest,
    manifest_file,
)
from committer.iceberg.schema.partition_spec import print_partition_spec
from committer.iceberg.schema.schema import Schema, print_schema
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import LongType, StringType, UUIDType
from tests.support.iceberg.manifest_builders import added_entry
from tests.support.integration.duckdb_iceberg import duckdb_with_iceberg
from tests.support.integration.readers import local
from tests.support.integration.written_table import WrittenTable
from tests.support.workers.tables import nested, optional, schema
from tests.support.workers.write_target import Target, spec_of, write_rows
from tests.workers.edge_rows import edge_rows, v2_primitives, whole_seconds
from workers.arrow.arrow_schema import arrow_schema
from workers.arrow.arrow_values import to_array

SNAPSHOT = 4242
SYNC = b"0123456789abcdef"


def commit(target: Target, files: Sequence[DataFile]) -> Path:
    """Make a format version 2 table of these files; returns its metadata file."""
    folder = Path(target.location.removeprefix("file:")) / "metadata"
    folder.mkdir(parents=True)
    context = ManifestContext(2, target.schema, target.spec)
    manifest = encode_manifest(map(added_entry, files), context, sync=SYNC)
    (folder / "m0.avro").write_bytes(manifest.content)
    row = manifest_file(
        manifest,
        context,
        manifest_path=f"file:{folder}/m0.avro",
        snapshot_id=SNAPSHOT,
        sequence_number=1,
    )
    manifest_list = encode_manifest_list(
        [encode_manifest_file(row, 2)],
        format_version=2,
        snapshot_id=SNAPSHOT,
        parent_snapshot_id=None,
        sequence_number=1,
        first_row_id=None,
        sync=SYNC,
        extra_metadata={},
    )
    (folder / f"snap-{SNAPSHOT}.avro").write_bytes(manifest_list)
    metadata = folder / "00000-1.metadata.json"
    metadata.write_text(json.dumps(metadata_of(target, f"file:{folder}/snap-{SNAPSHOT}.avro")))
    return metadata


def metadata_of(target: Target, manifest_list: str) -> dict[str, object]:
    return {
        "format-version": 2,
        "table-uuid": str(UUID(int=7)),
        "location": target.location,
        "last-sequence-number": 1,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": target.schema.highest_field_id,
        "current-schema-id": 0,
        "schemas": [print_schema(target.schema)],
        "default-spec-id": target.spec.spec_id,
        "partition-specs": [print_partition_spec(target.spec)],
        "last-partition-id": 999 + len(target.spec.fields),
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "current-snapshot-id": SNAPSHOT,
        "refs": {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}},
        "snapshots": [
            {
                "snapshot-id": SNAPSHOT,
                "sequence-number": 1,
                "timestamp-ms": 1_700_000_000_000,
                "manifest-list": manifest_list,
                "summary": {"operation": "append"},
                "schema-id": 0,
            }
        ],
    }


def scan(metadata: Path, **options: object) -> pa.Table:
    return StaticTable.from_metadata(str(metadata)).scan(**options).to_arrow()


def comparable(table: pa.Table | pa.RecordBatch) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize(
    "spec",
    [
        spec_of(),
        spec_of((2, "int_bucket", "bucket[3]"), (9, "day", "year")),
        spec_of((15, "text", "truncate[2]"), (1, "flag", "identity")),
        spec_of((7, "amount", "identity"), (12, "hour", "hour")),
    ],
)
def test_pyiceberg_reads_every_type_through_every_kind_of_partition(
    tmp_path: Path, spec: Any
) -> None:
    target = Target(f"file:{tmp_path}/t", v2_primitives(), spec)
    metadata = commit(target, write_rows(target, edge_rows()))
    assert comparable(scan(metadata)) == comparable(edge_rows())


# PyIceberg takes times of day, uuids and fixed binaries of ORC for what ORC has instead.
NOT_IN_ORC = ("time", "uuid", "fixed")


@pytest.mark.filterwarnings("ignore:.*ns")
def test_pyiceberg_reads_our_orc_files(tmp_path: Path) -> None:
    fields = (field for field in v2_primitives().fields if field.name not in NOT_IN_ORC)
    table = Schema(tuple(fields))
    rows = whole_seconds(edge_rows()).select([field.name for field in table.fields])
    target = Target(f"file:{tmp_path}/t", table, properties={"write.format.default": "orc"})
    metadata = commit(target, write_rows(target, rows))
    assert comparable(scan(metadata)) == comparable(rows)
    found = scan(metadata, row_filter="decimal9 = 0.01")
    assert comparable(found) == comparable(rows.slice(1, 1))


@pytest.mark.parametrize(
    "row_filter",
    [
        "long = 9223372036854775807",
        "int < 0",
        "double < -1000.0",
        "decimal9 = 0.01",
        "string >= 'zzz'",
        "date = '1969-12-31'",
        "timestamp < '1970-01-01T00:00:00'",
        "string is null",
    ],
)
def test_pyiceberg_prunes_files_by_our_bounds_without_losing_rows(
    tmp_path: Path, row_filter: str
) -> None:
    target = Target(f"file:{tmp_path}/t", v2_primitives())
    batch = edge_rows()
    files = [
        file
        for row in range(batch.num_rows)
        for file in write_rows(
            Target(f"file:{tmp_path}/t{row}", target.schema), batch.slice(row, 1)
        )
    ]
    found = scan(commit(target, files), row_filter=row_filter)
    whole = Target(f"file:{tmp_path}/whole", target.schema)
    unpruned = scan(commit(whole, write_rows(whole, batch)), row_filter=row_filter)
    assert comparable(found) == comparable(unpruned)
    assert 0 < found.num_rows < batch.num_rows
    planned = StaticTable.from_metadata(f"{tmp_path}/t/metadata/00000-1.metadata.json")
    assert len(list(planned.scan(row_filter=row_filter).plan_files())) < batch.num_rows


def duck() -> Any:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in ("duckdb_extension_avro", "duckdb_extension_iceberg"):
        folder = Path(import_module(name).__file__ or "").parent
        [extension] = folder.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    return connection


def test_duckdb_reads_a_partitioned_table(tmp_path: Path) -> None:
    target = Target(f"file:{tmp_path}/t", v2_primitives(), spec_of((2, "int_bucket", "bucket[3]")))
    metadata = commit(target, write_rows(target, edge_rows()))
    query = 'SELECT "long", "string", "decimal38", "timestamptz" FROM iceberg_scan(?)'
    rows = duck().execute(query, [str(metadata)]).to_arrow_table()
    assert comparable(rows.select(["long", "string"])) == comparable(
        edge_rows().select(["long", "string"])
    )
    assert rows.column("decimal38").null_count == 2


def test_duckdb_and_pyiceberg_read_nested_columns(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "point": {"x": 0.5, "y": 3, "deep": {"text": "t"}},
        "tags": ["a", "b"],
        "attributes": [("k", 1.0), ("m", None)],
        "points": [{"x": 1, "at": None}, None],
        "matrix": [[1.0], None, []],
    }
    empty = {**dict.fromkeys(row), "id": 2}
    batch = pa.RecordBatch.from_pylist([row, empty], schema=arrow_schema(nested()))
    target = Target(f"file:{tmp_path}/t", nested(), spec_of((11, "y", "identity")))
    metadata = commit(target, write_rows(target, batch))
    # PyIceberg shows a null list of structs as an empty one, so its null row is not compared.
    assert scan(metadata, row_filter="id = 1").to_pylist() == [row]
    query = "SELECT id, point.deep.text, tags, points FROM iceberg_scan(?) ORDER BY id"
    found = duck().execute(query, [str(metadata)]).fetchall()
    assert found == [(1, "t", ["a", "b"], [{"x": 1, "at": None}, None]), (2, None, None, None)]


def test_columns_have_the_parquet_types_that_the_specification_says(tmp_path: Path) -> None:
    target = Target(f"file:{tmp_path}/t", v2_primitives())
    [file] = write_rows(target, edge_rows())
    group = pq.read_metadata(file.file_path.removeprefix("file:")).row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    found = {column.path_in_schema: column.physical_type for column in columns}
    assert found == {
        "boolean": "BOOLEAN",
        "int": "INT32",
        "long": "INT64",
        "float": "FLOAT",
        "double": "DOUBLE",
        "decimal9": "INT32",
        "decimal18": "INT64",
        "decimal38": "FIXED_LEN_BYTE_ARRAY",
        "date": "INT32",
        "time": "INT64",
        "timestamp": "INT64",
        "timestamptz": "INT64",
        "string": "BYTE_ARRAY",
        "uuid": "FIXED_LEN_BYTE_ARRAY",
        "fixed": "FIXED_LEN_BYTE_ARRAY",
        "binary": "BYTE_ARRAY",
    }


def test_uuids_are_written_with_their_own_parquet_type(tmp_path: Path) -> None:
    target = Target(f"file:{tmp_path}/t", v2_primitives())
    [file] = write_rows(target, edge_rows())
    assert arrow_schema(v2_primitives()).field("uuid").type == to_array([], UUIDType()).type
    query = 'SELECT "uuid" FROM read_parquet(?) WHERE "uuid" IS NOT NULL'
    found = duckdb.execute(query, [file.file_path.removeprefix("file:")]).fetchall()
    assert {value for (value,) in found} == {UUID(int=0), UUID(int=1), UUID(int=2**128 - 1)}


@pytest.mark.parametrize(
    ("source", "transform", "seen"),
    [(2, "identity", [(2, "a")]), (1, "bucket[4]", [(2, "a")])],
    ids=["by another column", "by the key"],
)
def test_duckdb_applies_equality_deletes_to_all_partitions(
    tmp_path: Path, source: int, transform: str, seen: list[tuple[object, ...]]
) -> None:
    """`docs/how-to/upsert-a-stream.md` says so: change it once DuckDB keeps `(1, "b")`, which is in
    another partition than the delete."""
    columns = schema(optional(1, "id", LongType()), optional(2, "name", StringType()))
    table = WrittenTable.create(tmp_path / "t", columns, spec=spec_of((source, "p", transform)))
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": "a"}, {"id": 1, "name": "b"}]
    files = table.append(rows)
    [first] = [each for each in files if each.partition in (("a",), (_bucket_of_1(),))]
    table.commit([table.equality_deletes([{"id": 1}], [1], first)], operation="delete")
    with duckdb_with_iceberg() as connection:
        place = local(table.metadata_location)
        assert connection.execute("SELECT * FROM iceberg_scan(?)", [place]).fetchall() == seen


def _bucket_of_1() -> object:
    return parse_transform("bucket[4]").apply(LongType(), 1)
