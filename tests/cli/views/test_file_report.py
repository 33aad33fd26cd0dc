from __future__ import annotations

import gzip
import json
from pathlib import Path
from uuid import UUID

import pytest

from committer.cli.output.view import Facts, Rows
from committer.cli.views.file_report import Inspection, inspect_content
from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.table_metadata import print_table_metadata
from committer.request.needs import Needs
from committer.request.request_format import EncodedRequest, seal_request
from committer.storage.inbox.inbox import QuarantineRecord
from tests.support.builders.fixtures import expected, read_bytes, table_dir, table_names
from tests.support.builders.request_builders import build_line, build_request, changed_line
from tests.support.builders.table_builders import build_table

TABLE = build_table(warehouse="file:///warehouse")
NONCE = UUID("00000000-0000-4000-8000-000000000001")
# Broken as its writer left them: the values of its partition are no valid Avro.
UNREADABLE = "v2_identity_fixed_java_quirk"


def request() -> EncodedRequest:
    return build_request(TABLE, nonce=NONCE, files_count=2, epoch=7)


def kinds(found: Inspection) -> list[object]:
    return [line["kind"] for line in found.lines]


def metadata_files(name: str, ending: str) -> list[Path]:
    return sorted((table_dir(name) / "metadata").glob(f"*{ending}"))


@pytest.mark.parametrize("name", [name for name in table_names() if name != UNREADABLE])
def test_every_file_of_iceberg_java_is_recognized(name: str) -> None:
    files = [*metadata_files(name, ".metadata.json"), *metadata_files(name, ".avro")]
    for file in files:
        found = inspect_content(file.read_bytes())
        wanted = (
            "table-metadata"
            if file.name.endswith(".json")
            else "manifest-list"
            if file.name.startswith("snap-")
            else "manifest"
        )
        assert found.lines[0]["kind"] == wanted, file
        json.dumps(found.lines, default=str)


def test_table_metadata_is_shown_whole_gzipped_or_not() -> None:
    content = print_table_metadata(TABLE.metadata)
    plain, zipped = inspect_content(content), inspect_content(gzip.compress(content))
    assert plain.lines == zipped.lines == [{"kind": "table-metadata", **json.loads(content)}]


def test_pretty_printed_metadata_is_metadata() -> None:
    content = json.dumps(json.loads(print_table_metadata(TABLE.metadata)), indent=2).encode()
    assert kinds(inspect_content(content)) == ["table-metadata"]


def test_bounds_are_decoded_with_the_schema_of_the_manifest() -> None:
    found = inspect_content(request().content)
    files = [line["file"] for line in found.lines if line["kind"] == "manifest-entry"]
    assert len(files) == 2
    for file in files:
        assert isinstance(file, dict)
        assert file["null_value_counts"] == {"1": 0}
        assert [file[name]["1"]["value"] for name in ("lower_bounds", "upper_bounds")] == [1, 10]


def test_a_manifest_is_told_in_the_words_of_table_inspect() -> None:
    path, said = next(iter(expected("v2_unpartitioned")["manifest_entries"].items()))
    _, *entries = inspect_content(read_bytes(path)).lines
    assert [entry["status"] for entry in entries] == [one["status"] for one in said]
    for entry, one in zip(entries, said, strict=True):
        file = entry["file"]
        assert isinstance(file, dict)
        # Sequence numbers are inherited from a list, which is not at hand.
        inherited = {"data_sequence_number": None, "file_sequence_number": None}
        assert {key: file[key] for key in one["file"]} == one["file"] | inherited
        assert file["value_counts"]


def test_a_request_is_shown_with_the_entries_of_its_manifests() -> None:
    found = inspect_content(request().content)
    assert kinds(found) == ["commit-request", "manifest", "manifest-entry", "manifest-entry"]
    assert found.lines[0]["epoch"] == 7
    assert found.problem is None


def test_files_that_a_request_lists_as_json_count_with_their_rows() -> None:
    listed = ({"record-count": 3}, {"record-count": 4}, {"record-count": "many"})
    line = build_line(TABLE, nonce=NONCE).model_copy(update={"files": listed})
    facts, files = inspect_content(seal_request(line).content).views
    assert isinstance(facts, Facts)
    assert (facts.facts["files"], facts.facts["rows"]) == (3, 7)
    assert isinstance(files, Rows)
    assert [row[1] for row in files.rows] == [3, 4, "many"]


def test_what_a_request_removes_and_rests_on_is_shown() -> None:
    needs = Needs.model_validate(
        {
            "base-snapshot-id": 7,
            "removed-data-files": ["s3://b/a.parquet"],
            "removed-delete-files": [
                {"file-path": "s3://b/d.puffin", "content-offset": 4, "content-size-in-bytes": 40}
            ],
            "conflict-filter": {"type": "eq", "term": "carrier", "value": "AA"},
            "isolation-level": "snapshot",
            "on-conflict": "fail",
        }
    )
    line = changed_line(build_line(TABLE), operation="overwrite", needs=needs, files=())
    facts, named = inspect_content(seal_request(line).content).views
    assert isinstance(facts, Facts)
    assert isinstance(named, Rows)
    shown = facts.facts
    assert (shown["base snapshot id"], shown["removed data files"]) == (7, 1)
    assert shown["conflict filter"] == 'ref(name="carrier") == "AA"'
    assert (shown["on conflict"], "row filter" in shown) == ("fail", False)
    assert [tuple(row) for row in named.rows] == [
        ("removed data", None, None, "s3://b/a.parquet"),
        ("removed deletes", 4, 40, "s3://b/d.puffin"),
    ]


def test_the_manifests_that_a_request_rewrites_are_shown() -> None:
    needs = Needs.model_validate({"rewritten-manifests": ["s3://b/m0.avro", "s3://b/m1.avro"]})
    line = changed_line(build_line(TABLE), operation="rewrite-manifests", needs=needs, files=())
    facts, named = inspect_content(seal_request(line).content).views
    assert isinstance(facts, Facts)
    assert isinstance(named, Rows)
    assert facts.facts["rewritten manifests"] == 2
    assert [tuple(row) for row in named.rows] == [
        ("rewritten manifest", None, None, "s3://b/m0.avro"),
        ("rewritten manifest", None, None, "s3://b/m1.avro"),
    ]


def test_of_a_truncated_request_the_line_is_shown_with_the_problem() -> None:
    found = inspect_content(request().content[:-5])
    assert kinds(found) == ["commit-request"]
    assert found.lines[0]["epoch"] == 7
    assert found.problem is not None
    assert found.problem.startswith("request_truncated: ")


def test_a_quarantine_object_is_shown_with_its_reason_and_its_request() -> None:
    sealed = request()
    record = QuarantineRecord(
        key=sealed.request.inbox_key, reason="table_unknown", message="gone", quarantined_at_ms=1
    )
    found = inspect_content(record.model_dump_json().encode() + b"\n" + sealed.content)
    assert kinds(found)[:2] == ["quarantine-record", "commit-request"]
    assert found.lines[0]["reason"] == "table_unknown"


def test_a_manifest_list_says_what_its_header_says() -> None:
    name = next(name for name in table_names() if name != UNREADABLE)
    found = inspect_content(metadata_files(name, ".avro")[-1].read_bytes())
    header = found.lines[0]["header"]
    assert isinstance(header, dict)
    assert "snapshot-id" in header
    assert "avro.schema" not in header


def test_the_puffin_files_of_iceberg_java_are_recognized() -> None:
    files = [file for name in table_names() for file in table_dir(name).rglob("*.puffin")]
    assert files
    for file in files:
        assert kinds(inspect_content(file.read_bytes()))[0] == "puffin"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not an Iceberg metadata file"),
        (b"PAR1 and so on", "a Parquet file"),
        (b"{}", "format-version"),
        (b'{"a": 1', "expected a metadata file as JSON"),
        (b"\x1f\x8b broken", "expected a whole gzip file: "),
        (gzip.compress(b"{}", mtime=0)[:-3], "bytes and no end"),
        (b"Obj\x01", "bytes end inside"),
        (b"PFA1", "Puffin"),
    ],
)
def test_what_is_none_of_them_is_refused_with_a_sentence(content: bytes, said: str) -> None:
    with pytest.raises(InvalidMetadataError, match=said):
        inspect_content(content)


@pytest.mark.parametrize("name", table_names())
def test_what_is_shown_of_metadata_agrees_with_iceberg_java(name: str) -> None:
    facts = expected(name)
    line = inspect_content(read_bytes(facts["metadata_location"])).lines[0]
    assert (line["table-uuid"], line["last-column-id"], line["format-version"]) == (
        facts["table_uuid"],
        facts["last_column_id"],
        facts["format_version"],
    )
