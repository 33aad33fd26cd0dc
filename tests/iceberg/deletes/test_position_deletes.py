"""Position delete files: those of Iceberg Java described again, and what a writer must keep to."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pyarrow.parquet
import pytest

from committer.errors import InvariantError
from committer.iceberg.deletes.position_deletes import (
    POSITION_DELETE_SCHEMA,
    describe_position_deletes,
    referenced_data_file,
)
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.schema.metadata_columns import DELETE_FILE_PATH
from tests.support.builders.fixtures import expected, read_bytes, table_names
from tests.support.iceberg.manifest_builders import data_file

PARQUET = [
    pytest.param(file, id=f"{table}-{number}")
    for table in table_names()
    for number, file in enumerate(expected(table)["live_delete_files"])
    if (file["content"], file["file_format"]) == (1, "PARQUET")
]
# Written through the Java API, with metrics as of any column: ours are whole, as of Spark.
WITH_CUT_BOUNDS = ("v2_equality_deletes", "v2_long_manifest_list")


@pytest.mark.parametrize("said", PARQUET)
def test_files_of_the_reference_are_described_as_it_does(said: dict[str, Any]) -> None:
    content = pyarrow.parquet.read_table(BytesIO(read_bytes(said["file_path"])))
    columns = {int(field.metadata[b"PARQUET:field_id"]): field.name for field in content.schema}
    assert columns == {field.field_id: field.name for field in POSITION_DELETE_SCHEMA.fields}
    rows = [(row["file_path"], row["pos"]) for row in content.to_pylist()]
    positions: dict[str, set[int]] = {}
    for path, position in rows:
        positions.setdefault(path, set()).add(position)

    found = describe_position_deletes(data_file(file_path=said["file_path"]), positions)
    assert found.record_count == said["record_count"]
    for name in ("value_counts", "null_value_counts", "nan_value_counts", "sort_order_id"):
        assert getattr(found, name) == said[name]
    for name in ("lower_bounds", "upper_bounds"):
        bounds, ours = said[name], getattr(found, name)
        wanted = bounds and {int(key): bytes.fromhex(bound["hex"]) for key, bound in bounds.items()}
        if any(table in said["file_path"] for table in WITH_CUT_BOUNDS):
            assert wanted is not None
            assert (
                len(wanted.pop(DELETE_FILE_PATH.field_id))
                == 16
                < len(ours.pop(DELETE_FILE_PATH.field_id))
            )
        assert ours == wanted
    assert (referenced_data_file(found) is None) == (len(positions) > 1)


def test_a_file_of_one_data_file_names_it() -> None:
    file = describe_position_deletes(data_file(), {"s3://a": {7, 3}, "s3://b": []})
    assert file.content == DataFileContent.POSITION_DELETES
    assert (file.record_count, file.referenced_data_file) == (2, "s3://a")
    assert file.lower_bounds == {2147483545: b"\3" + bytes(7), 2147483546: b"s3://a"}
    assert file.upper_bounds == {2147483545: b"\7" + bytes(7), 2147483546: b"s3://a"}
    assert referenced_data_file(file) == "s3://a"


def test_a_file_of_several_data_files_has_no_bounds() -> None:
    file = describe_position_deletes(data_file(), {"s3://a": {7}, "s3://b": {1, 2}})
    assert (file.record_count, file.referenced_data_file) == (3, None)
    assert (file.lower_bounds, file.upper_bounds) == (None, None)
    assert referenced_data_file(file) is None


@pytest.mark.parametrize("positions", [{}, {"s3://a": []}])
def test_a_file_without_rows_is_refused(positions: dict[str, list[int]]) -> None:
    with pytest.raises(InvariantError, match="without rows"):
        describe_position_deletes(data_file(), positions)


def test_data_files_and_equality_deletes_reference_nothing() -> None:
    path = {2147483546: b"s3://a"}
    for content in (DataFileContent.DATA, DataFileContent.EQUALITY_DELETES):
        file: DataFile = data_file(content=content, lower_bounds=path, upper_bounds=path)
        assert referenced_data_file(file) is None
