"""Delete files of positions: their rows, what their entries say, and that a failure leaves none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import decode_vector_of, vector_range
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import NestedField, StringType
from tests.support.workers.write_target import ATTEMPT, Target, files_below, names, path_of, spec_of
from workers.files.deletes.position_delete_writer import DeleteForm, PositionDeleteWriter

SPEC = spec_of((1, "region", "identity"))
SCHEMA = Schema((NestedField(1, "region", StringType(), False),))
FILES = {
    name: DataFile(
        file_path=f"file:/t/{name}.parquet",
        partition=(region,),
        record_count=10,
        file_size_in_bytes=100,
        spec_id=1,
    )
    for name, region in (("b", "x"), ("a", "x"), ("c", "y"))
}
POSITIONS = {"b": (5, 3), "a": (1 << 33, 2), "c": (0,)}


def write(
    folder: Path, form: DeleteForm, properties: Mapping[str, str] | None = None
) -> list[DataFile]:
    target = Target(f"file:{folder}", SCHEMA, SPEC, properties or {})
    deleted = [(FILES[name], DeletionVector(found)) for name, found in POSITIONS.items()]
    with PositionDeleteWriter(target, {1: SPEC}, names(), form) as writer:
        written = writer.write(deleted)
    assert {str(path_of(file)) for file in written} == {str(one) for one in files_below(folder)}
    for file in written:
        assert ATTEMPT in path_of(file).name
        assert file.file_size_in_bytes == path_of(file).stat().st_size
        assert (file.content, file.spec_id) == (DataFileContent.POSITION_DELETES, 1)
    return written


def avro_rows(file: DataFile) -> list[Any]:
    with path_of(file).open("rb") as content:
        return [*fastavro.reader(content)]


def rows(file: DataFile) -> list[tuple[str, int]]:
    table = pq.ParquetFile(path_of(file)).read()
    assert [field.metadata[b"PARQUET:field_id"] for field in table.schema] == [
        b"2147483546",
        b"2147483545",
    ]
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("name", ["write.delete.format.default", "write.format.default"])
def test_positions_are_written_in_the_format_of_deletes(tmp_path: Path, name: str) -> None:
    written = write(tmp_path, "partitions", {name: "avro"})
    assert {(file.file_format, path_of(file).suffix) for file in written} == {("AVRO", ".avro")}
    found = [[*row.values()] for file in written for row in avro_rows(file)]
    path = {name: FILES[name].file_path for name in FILES}
    both = [[path["a"], 2], [path["a"], 1 << 33], [path["b"], 3], [path["b"], 5]]
    assert sorted(found) == [*both, [path["c"], 0]]
    assert sorted(file.record_count for file in written) == [1, 4]


def test_each_data_file_has_a_file_of_its_own_where_the_table_says_so(tmp_path: Path) -> None:
    written = write(tmp_path, "files")
    assert [file.referenced_data_file for file in written] == [
        FILES[name].file_path for name in POSITIONS
    ]
    assert [rows(file) for file in written] == [
        [(FILES[name].file_path, position) for position in sorted(found)]
        for name, found in POSITIONS.items()
    ]
    assert [file.partition for file in written] == [("x",), ("x",), ("y",)]
    assert path_of(written[2]).parent.name == "region=y"


def test_files_of_a_partition_share_one_that_is_sorted(tmp_path: Path) -> None:
    first, second = write(tmp_path, "partitions")
    assert rows(first) == [
        (FILES["a"].file_path, 2),
        (FILES["a"].file_path, 1 << 33),
        (FILES["b"].file_path, 3),
        (FILES["b"].file_path, 5),
    ]
    assert (first.referenced_data_file, first.lower_bounds, first.record_count) == (None, None, 4)
    assert second.referenced_data_file == FILES["c"].file_path


def test_vectors_share_one_puffin_file(tmp_path: Path) -> None:
    written = write(tmp_path, "vectors")
    for file, (name, positions) in zip(written, POSITIONS.items(), strict=True):
        offset, length = vector_range(file)
        content = path_of(file).read_bytes()[offset : offset + length]
        assert list(decode_vector_of(file, content)) == sorted(positions)
        assert file.referenced_data_file == FILES[name].file_path


@pytest.mark.parametrize("form", ["vectors", "files", "partitions"])
def test_a_failure_inside_leaves_no_file(tmp_path: Path, form: DeleteForm) -> None:
    target = Target(f"file:{tmp_path}", SCHEMA, SPEC)
    with (
        pytest.raises(RuntimeError, match="later"),
        PositionDeleteWriter(target, {1: SPEC}, names(), form) as writer,
    ):
        writer.write([(FILES["a"], DeletionVector((1,)))])
        raise RuntimeError("later")
    assert files_below(tmp_path) == []


def test_nothing_deleted_is_no_file(tmp_path: Path) -> None:
    target = Target(f"file:{tmp_path}", SCHEMA, SPEC)
    with PositionDeleteWriter(target, {1: SPEC}, names(), "vectors") as writer:
        assert writer.write([]) == []
    assert files_below(tmp_path) == []
