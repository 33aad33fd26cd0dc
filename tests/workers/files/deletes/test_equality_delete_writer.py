from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from committer.errors import UnsupportedError
from committer.iceberg.entry.data_file import DataFileContent
from committer.iceberg.schema.partition_spec import UNPARTITIONED
from committer.iceberg.values.types import LongType, StringType
from tests.support.workers.tables import optional, required, schema
from tests.support.workers.write_target import (
    ATTEMPT,
    Target,
    files_below,
    names,
    path_of,
    read_file,
    spec_of,
)
from workers.arrow.arrow_schema import arrow_schema
from workers.files.deletes.equality_delete_writer import EqualityDeleteWriter, delete_properties

TABLE = schema(
    required(4, "id", LongType()), optional(2, "text", StringType()), optional(3, "x", StringType())
)
KEYS = pa.schema([arrow_schema(TABLE).field("id"), arrow_schema(TABLE).field("x")])
BUCKETS = spec_of((4, "id_bucket", "bucket[2]"))
REGIONS = replace(spec_of((3, "x", "identity")), spec_id=2)


def keys(*pairs: tuple[int, str]) -> pa.RecordBatch:
    return pa.record_batch([list(column) for column in zip(*pairs, strict=True)], schema=KEYS)


def test_each_key_is_deleted_once_under_each_spec(tmp_path: Path) -> None:
    target = Target(f"file:{tmp_path}/t", TABLE, BUCKETS)
    with EqualityDeleteWriter(target, (BUCKETS, REGIONS), KEYS, names()) as writer:
        writer.write(keys((1, "a"), (2, "b")))
        writer.write(keys((3, "a")))
        files = writer.close()
    assert {file.content for file in files} == {DataFileContent.EQUALITY_DELETES}
    assert {file.equality_ids for file in files} == {(3, 4)}
    for spec in (BUCKETS, REGIONS):
        of_spec = [file for file in files if file.spec_id == spec.spec_id]
        rows = [row for file in of_spec for row in read_file(file).to_pylist()]
        assert sorted(row["id"] for row in rows) == [1, 2, 3]
    by_region = {
        file.partition: read_file(file).column("id").to_pylist()
        for file in files
        if file.spec_id == REGIONS.spec_id
    }
    assert by_region == {("a",): [1, 3], ("b",): [2]}
    assert len({file.file_path.rpartition("/")[2] for file in files}) == len(files)
    assert all(ATTEMPT in file.file_path for file in files)
    assert all(set(file.lower_bounds or {}) == {3, 4} for file in files)


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    target = Target(f"file:{tmp_path}/t", TABLE)
    with (
        pytest.raises(RuntimeError),
        EqualityDeleteWriter(target, (UNPARTITIONED, BUCKETS), KEYS, names()) as writer,
    ):
        writer.write(keys((1, "a")))
        writer.close()
        raise RuntimeError
    assert files_below(tmp_path) == []


def test_no_keys_make_no_file(tmp_path: Path) -> None:
    target = Target(f"file:{tmp_path}/t", TABLE)
    with EqualityDeleteWriter(target, (UNPARTITIONED,), KEYS, names()) as writer:
        assert writer.close() == []


def test_delete_files_have_properties_of_their_own() -> None:
    assert delete_properties({}) == {"write.target-file-size-bytes": "67108864"}
    found = delete_properties(
        {
            "write.target-file-size-bytes": "1",
            "write.parquet.compression-codec": "zstd",
            "write.parquet.page-size-bytes": "9",
            "write.delete.parquet.compression-codec": "gzip",
            "write.delete.target-file-size-bytes": "2",
        }
    )
    assert found["write.target-file-size-bytes"] == "2"
    assert found["write.parquet.compression-codec"] == "gzip"
    assert found["write.parquet.page-size-bytes"] == "9"


@pytest.mark.parametrize(
    ("properties", "written"),
    [
        ({"write.delete.format.default": "avro"}, "avro"),
        ({"write.format.default": "avro"}, "avro"),
        ({"write.format.default": "avro", "write.delete.format.default": "parquet"}, "parquet"),
    ],
)
def test_deletes_have_their_own_format_or_that_of_the_data(
    tmp_path: Path, properties: dict[str, str], written: str
) -> None:
    target = Target(f"file:{tmp_path}/t", TABLE, properties=properties)
    with EqualityDeleteWriter(target, (UNPARTITIONED,), KEYS, names()) as writer:
        writer.write(keys((1, "a")))
        (file,) = writer.close()
    assert (file.file_format, path_of(file).suffix) == (written.upper(), f".{written}")


def test_a_property_of_deletes_that_no_writer_knows_is_refused(tmp_path: Path) -> None:
    target = Target(f"file:{tmp_path}/t", TABLE)
    broken = replace(target, properties={"write.delete.parquet.compression-codec": "zip"})
    with pytest.raises(UnsupportedError, match="compression-codec"):
        EqualityDeleteWriter(broken, (UNPARTITIONED,), KEYS, names())
