"""Manifest lists: other writers' are read, ours are read by others, rows keep their bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from typing import Any

import fastavro
import pytest

from committer.errors import InvalidMetadataError, InvariantError
from committer.iceberg.avro.codecs import compress
from committer.iceberg.avro.container import encode_container, encode_header, read_header
from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_list import (
    KnownRows,
    ManifestFile,
    PartitionFieldSummary,
    decode_manifest_list,
    encode_manifest_file,
    encode_manifest_list,
)
from tests.support.builders.fixtures import read_bytes, table_dir

SYNC = b"0123456789abcdef"
TABLES = sorted(path.parent.name for path in table_dir("v2_empty").parent.glob("*/expected.json"))


def row(**changes: Any) -> ManifestFile:
    built = ManifestFile(
        manifest_path="s3://bucket/db/t/metadata/a-m0.avro",
        manifest_length=7000,
        partition_spec_id=1,
        content=ManifestContent.DATA,
        sequence_number=5,
        min_sequence_number=3,
        added_snapshot_id=2**62,
        added_files_count=2,
        existing_files_count=1,
        deleted_files_count=0,
        added_rows_count=200,
        existing_rows_count=10,
        deleted_rows_count=0,
        partitions=(
            PartitionFieldSummary(True, False, b"a", b"\xff"),
            PartitionFieldSummary(False, None, None, None),
        ),
        key_metadata=b"\x00\x01",
        first_row_id=None,
    )
    return replace(built, **changes)


def manifest_list(
    *rows: ManifestFile, format_version: int = 2, extra: dict[str, str] | None = None
) -> bytes:
    return encode_manifest_list(
        [encode_manifest_file(one, format_version) for one in rows],
        format_version=format_version,
        snapshot_id=11,
        parent_snapshot_id=None,
        sequence_number=5,
        first_row_id=40,
        sync=SYNC,
        extra_metadata=extra or {},
    )


def as_expected(one: ManifestFile) -> dict[str, Any]:
    """Describe a row in the words of `expected.json`."""
    names = [
        "manifest_path",
        "manifest_length",
        "partition_spec_id",
        "sequence_number",
        "min_sequence_number",
        "added_snapshot_id",
        "added_files_count",
        "existing_files_count",
        "deleted_files_count",
        "added_rows_count",
        "existing_rows_count",
        "deleted_rows_count",
        "first_row_id",
    ]
    partitions = None
    if one.partitions is not None:
        partitions = [
            {
                "contains_null": summary.contains_null,
                "contains_nan": summary.contains_nan,
                "lower_hex": None if summary.lower_bound is None else summary.lower_bound.hex(),
                "upper_hex": None if summary.upper_bound is None else summary.upper_bound.hex(),
            }
            for summary in one.partitions
        ]
    return {name: getattr(one, name) for name in names} | {
        "content": int(one.content),
        "key_metadata": None if one.key_metadata is None else one.key_metadata.hex(),
        "partitions": partitions,
    }


@pytest.mark.parametrize("table", TABLES)
def test_lists_of_the_reference_implementation_read_as_it_reads_them(table: str) -> None:
    expected = json.loads((table_dir(table) / "expected.json").read_text())
    for snapshot in expected["snapshots"]:
        if snapshot["manifest_list"] is None or snapshot.get("manifests") is None:
            continue
        decoded = decode_manifest_list(read_bytes(snapshot["manifest_list"]))
        found = [as_expected(one) for one in decoded.rows]
        for manifest in snapshot["manifests"]:
            for summary in manifest["partitions"] or ():
                summary.pop("lower", None)
                summary.pop("upper", None)
        assert found == snapshot["manifests"]
        assert decoded.header["snapshot-id"] == str(snapshot["snapshot_id"])


@pytest.mark.parametrize("table", ["v1_unpartitioned", "v2_long_manifest_list", "v3_row_lineage"])
def test_encoded_rows_are_the_bytes_of_the_file(table: str) -> None:
    expected = json.loads((table_dir(table) / "expected.json").read_text())
    content = read_bytes(expected["snapshots"][-1]["manifest_list"])
    decoded = decode_manifest_list(content)
    written = encode_manifest_list(
        decoded.encoded_rows,
        format_version=decoded.format_version,
        snapshot_id=int(decoded.header["snapshot-id"]),
        parent_snapshot_id=1,
        sequence_number=1,
        first_row_id=0,
        sync=SYNC,
        extra_metadata={},
    )
    assert list(fastavro.reader(BytesIO(written))) == list(fastavro.reader(BytesIO(content)))
    assert [encode_manifest_file(one, decoded.format_version) for one in decoded.rows] == list(
        decoded.encoded_rows
    )


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_fastavro_reads_the_row_that_was_written(format_version: int) -> None:
    content = manifest_list(row(first_row_id=7), format_version=format_version)
    (record,) = fastavro.reader(BytesIO(content))
    wanted = as_expected(row(first_row_id=7))
    for name in record.keys() - {"partitions", "key_metadata"}:
        assert record[name] == wanted[name]
    assert record["key_metadata"] == b"\x00\x01"
    assert record["partitions"] == [
        {"contains_null": True, "contains_nan": False, "lower_bound": b"a", "upper_bound": b"\xff"},
        {"contains_null": False, "contains_nan": None, "lower_bound": None, "upper_bound": None},
    ]


def test_the_header_says_what_the_format_asks_for_and_carries_more() -> None:
    header = read_header(manifest_list(row(first_row_id=0), format_version=3, extra={"a": "ü"}))
    assert header.metadata["snapshot-id"] == b"11"
    assert header.metadata["parent-snapshot-id"] == b"null"
    assert header.metadata["sequence-number"] == b"5"
    assert header.metadata["first-row-id"] == b"40"
    assert header.metadata["format-version"] == b"3"
    assert header.metadata["a"] == "ü".encode()
    assert "sequence-number" not in read_header(manifest_list(format_version=1)).metadata
    assert "first-row-id" not in read_header(manifest_list(format_version=2)).metadata


def test_evidence_cannot_overwrite_a_key_of_the_format() -> None:
    content = manifest_list(extra={"snapshot-id": "666", "avro.codec": "null"})
    assert read_header(content).metadata["snapshot-id"] == b"11"
    assert read_header(content).codec == "deflate"


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_any_number_of_rows_reads_back_in_order(count: int) -> None:
    rows = tuple(row(manifest_path=f"m{number}") for number in range(count))
    assert decode_manifest_list(manifest_list(*rows)).rows == rows


def test_a_row_in_front_leaves_the_blocks_behind_it_as_they_were() -> None:
    rows = [row(manifest_path=f"m{number}") for number in range(128)]
    before, after = manifest_list(*rows), manifest_list(row(manifest_path="new"), *rows)
    tail = before[read_header(before).end_offset :]
    assert after.endswith(tail)
    assert len(after) > len(before)


def test_a_row_that_was_read_is_not_decoded_again() -> None:
    known: KnownRows = {}
    rows = tuple(row(manifest_path=f"m{number}") for number in range(70))
    first = decode_manifest_list(manifest_list(*rows), known=known)
    # One is new, one has changed, one is gone.
    changed = replace(rows[2], added_rows_count=7)
    after = manifest_list(row(manifest_path="new"), *rows[1:2], changed, *rows[3:])
    second = decode_manifest_list(after, known=known)
    assert second == decode_manifest_list(after)
    assert second.rows[1] is first.rows[1]
    assert second.rows[3:] == rows[3:]
    assert all(ours is theirs for ours, theirs in zip(second.rows[3:], first.rows[3:], strict=True))


def test_rows_of_another_schema_are_not_taken_for_known_ones() -> None:
    known: KnownRows = {}
    rows = tuple(row(manifest_path=f"m{number}", key_metadata=None) for number in range(3))
    for format_version in (1, 2, 3, 1):
        content = manifest_list(*rows, format_version=format_version)
        assert decode_manifest_list(content, known=known) == decode_manifest_list(content)


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_known_row_that_is_cut_off_is_no_row(cut: int) -> None:
    known: KnownRows = {}
    decode_manifest_list(manifest_list(row()), known=known)
    header = read_header(manifest_list(row()))
    raw = encode_manifest_file(row(), 2)[:-cut]
    content = encode_container(
        encode_header(header.metadata, header.sync), [(1, compress("deflate", raw))], header.sync
    )
    with pytest.raises(InvalidMetadataError):
        decode_manifest_list(content, known=known)


def old_names(content: bytes) -> bytes:
    """Rename the counts of the list as Iceberg Java up to 1.4 named them."""
    header = read_header(content)
    schema = header.metadata["avro.schema"].decode()
    for status in ("added", "existing", "deleted"):
        schema = schema.replace(f'"{status}_files_count"', f'"{status}_data_files_count"')
    metadata = {**header.metadata, "avro.schema": schema.encode()}
    return encode_header(metadata, header.sync) + content[header.end_offset :]


def test_counts_under_their_old_names_are_found_by_field_id() -> None:
    decoded = decode_manifest_list(old_names(manifest_list(row())))
    assert decoded.rows == (row(),)
    # Names mean nothing for the bytes, so they are still moved as they are.
    assert decoded.encoded_rows == (encode_manifest_file(row(), 2),)


def test_rows_of_version_1_are_encoded_anew_for_version_2() -> None:
    old = row(sequence_number=0, min_sequence_number=0)
    decoded = decode_manifest_list(manifest_list(old, format_version=1), format_version=2)
    assert decoded.encoded_rows == (encode_manifest_file(old, 2),)
    assert decode_manifest_list(manifest_list(old, format_version=1)).format_version == 1


def test_unknown_counts_of_version_1_say_in_version_2_that_there_are_some() -> None:
    old = row(added_files_count=None, existing_files_count=None, added_rows_count=None)
    assert old.has_live_files
    (read,) = decode_manifest_list(manifest_list(old, format_version=1)).rows
    assert read.added_files_count is None
    (read,) = decode_manifest_list(manifest_list(old, format_version=2)).rows
    assert (read.added_files_count, read.existing_files_count) == (1, 1)


def test_a_list_without_a_format_version_is_known_by_its_fields() -> None:
    for version in (1, 2, 3):
        content = manifest_list(row(first_row_id=1), format_version=version)
        header = read_header(content)
        metadata = {k: v for k, v in header.metadata.items() if k != "format-version"}
        content = encode_header(metadata, header.sync) + content[header.end_offset :]
        assert decode_manifest_list(content).format_version == version


def test_version_1_has_no_delete_manifests() -> None:
    with pytest.raises(InvariantError, match="no delete manifests"):
        encode_manifest_file(row(content=ManifestContent.DELETES), 1)


def test_no_truncation_or_damage_gets_further_than_an_error() -> None:
    content = manifest_list(row(), row())
    header = read_header(content)
    for length in range(header.end_offset + 1, len(content)):
        with pytest.raises(InvalidMetadataError):
            decode_manifest_list(content[:length])
    raw = encode_manifest_file(row(), 2)
    metadata = {**header.metadata, "avro.codec": b"null"}
    for position in range(len(raw)):
        for value in (0x01, 0x80, 0xFF):
            damaged = raw[:position] + bytes((value,)) + raw[position + 1 :]
            file = encode_container(encode_header(metadata, SYNC), [(1, damaged)], SYNC)
            try:
                decode_manifest_list(file)
            except InvalidMetadataError:
                continue
