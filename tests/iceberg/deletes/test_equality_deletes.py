"""The columns of equality delete files; `test_delete_index.py` has what their metrics rule out."""

from __future__ import annotations

from io import BytesIO

import pyarrow.parquet
import pytest

from committer.errors import InvariantError
from committer.iceberg.deletes.equality_deletes import equality_delete_schema
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.iceberg.schema.schema import parse_schema
from tests.support.builders.fixtures import expected, read_bytes

SCHEMA = parse_schema(
    {
        "type": "struct",
        "schema-id": 4,
        "fields": [
            {"id": 1, "name": "id", "required": True, "type": "long"},
            {"id": 2, "name": "name", "required": False, "type": "string"},
            {"id": 3, "name": "score", "required": False, "type": "double"},
            {
                "id": 4,
                "name": "place",
                "required": False,
                "type": {
                    "type": "struct",
                    "fields": [
                        {"id": 5, "name": "zip", "required": False, "type": "int"},
                        {"id": 6, "name": "city", "required": False, "type": "string"},
                    ],
                },
            },
            {
                "id": 7,
                "name": "tags",
                "required": False,
                "type": {
                    "type": "list",
                    "element-id": 8,
                    "element": "int",
                    "element-required": True,
                },
            },
            {"id": 9, "name": "v", "required": False, "type": "variant"},
        ],
    }
)


def test_a_file_has_the_columns_in_the_structs_that_they_lie_in() -> None:
    schema = equality_delete_schema(SCHEMA, [6, 1])
    assert [name for name, _ in schema.walk()] == ["id", "place", "place.city"]
    assert schema.field_ids == {1, 4, 6}
    assert [name for name, _ in equality_delete_schema(SCHEMA, [2]).walk()] == ["name"]


@pytest.mark.parametrize(
    ("equality_ids", "wrong"),
    [
        ([], "[]"),
        ([77], "[77]"),
        ([1, 3], "[3]"),
        ([4], "[4]"),
        ([7], "[7]"),
        ([8], "[8]"),
        ([9], "[9]"),
    ],
)
def test_columns_that_have_no_equality_are_refused(equality_ids: list[int], wrong: str) -> None:
    with pytest.raises(InvariantError) as caught:
        equality_delete_schema(SCHEMA, equality_ids)
    assert f"cannot compare fields {wrong}: expected primitive" in str(caught.value)


def test_files_of_the_reference_have_these_columns() -> None:
    said = expected("v2_equality_deletes")
    schema = parse_table_metadata(read_bytes(said["metadata_location"])).current_schema
    files = [file for file in said["live_delete_files"] if file["content"] == 2]
    # The third compares a double, which the specification forbids.
    for file in files[:2]:
        content = pyarrow.parquet.read_schema(BytesIO(read_bytes(file["file_path"])))
        wanted = equality_delete_schema(schema, file["equality_ids"])
        assert content.names == [field.name for field in wanted.fields]
    with pytest.raises(InvariantError):
        equality_delete_schema(schema, files[2]["equality_ids"])
