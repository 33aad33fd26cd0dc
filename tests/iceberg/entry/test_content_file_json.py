"""Content File Serialization: every vector reads and prints again, hostile JSON is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.content_file_json import parse_content_file
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.schema.partition_spec import parse_partition_spec
from committer.iceberg.schema.schema import parse_schema
from tests.support.builders.fixtures import vectors
from tests.support.iceberg.content_file_printer import print_content_file
from tests.support.iceberg.manifest_builders import REGION_AND_DAY, SCHEMA, data_file, spec

CASES: list[dict[str, Any]] = vectors("content_files")["cases"]
SPEC = spec(*REGION_AND_DAY, spec_id=4)


def printed(**changes: Any) -> dict[str, Any]:
    document = print_content_file(data_file(spec_id=4), SPEC, SCHEMA)
    return {key: value for key, value in (document | changes).items() if value is not ...}


def parse(document: object) -> DataFile:
    return parse_content_file(document, {4: SPEC}, SCHEMA)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["content_file"]["file-path"][-12:])
def test_every_vector_reads_and_prints_again(case: dict[str, Any]) -> None:
    schema, one = parse_schema(case["schema"]), parse_partition_spec(case["spec"])
    file = parse_content_file(json.loads(case["json_text"]), {one.spec_id: one}, schema)
    text = json.dumps(print_content_file(file, one, schema), separators=(",", ":"))
    assert json.loads(text) == case["content_file"]
    assert text == json.dumps(json.loads(case["json_text"]), separators=(",", ":"))


def test_the_older_form_is_read_too() -> None:
    document = printed(
        content="DATA",
        partition={"1001": "2026-01-01"},
        **{"file-format": "PARQUET"},
    )
    file = parse(document)
    assert file.partition == (None, 20454)
    assert (file.content, file.file_format) == (DataFileContent.DATA, "PARQUET")


def test_a_file_reads_back_as_it_was() -> None:
    assert parse(json.loads(json.dumps(printed()))) == data_file(spec_id=4)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spec-id", 9),
        ("spec-id", "4"),
        ("spec-id", True),
        ("content", "rows"),
        ("content", []),
        ("file-path", ""),
        ("file-path", ...),
        ("file-format", 1),
        ("partition", ["r0"]),
        ("partition", ["r0", "2026-01-01", None]),
        ("partition", [7, "2026-01-01"]),
        ("partition", ["r0", "yesterday"]),
        ("partition", {"1": "r0"}),
        ("partition", ...),
        ("record-count", -1),
        ("record-count", 1.5),
        ("record-count", 2**63),
        ("file-size-in-bytes", None),
        ("column-sizes", [1]),
        ("column-sizes", {"keys": [1], "values": []}),
        ("column-sizes", {"keys": ["1"], "values": [1]}),
        ("value-counts", {"keys": [1], "values": ["1"]}),
        ("value-counts", {"keys": [2**31], "values": [1]}),
        ("lower-bounds", {"keys": [1], "values": ["0"]}),
        ("upper-bounds", {"keys": [1], "values": [5]}),
        ("key-metadata", "zz"),
        ("split-offsets", [1, "2"]),
        ("equality-ids", 1),
        ("first-row-id", "0"),
        ("referenced-data-file", 3),
    ],
)
def test_a_wrong_value_is_refused_by_its_key(key: str, value: object) -> None:
    with pytest.raises(InvalidMetadataError, match=f"`{key}`"):
        parse(printed(**{key: value}))


@pytest.mark.parametrize("document", [None, [], "x", 1])
def test_what_is_no_object_is_refused(document: object) -> None:
    with pytest.raises(InvalidMetadataError, match="JSON object"):
        parse(document)
