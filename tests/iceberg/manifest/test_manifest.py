"""Manifests: other writers' read with all they inherit, ours decoded by fastavro and PyIceberg."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest

from committer.errors import InvalidMetadataError, InvariantError
from committer.iceberg.avro.container import read_header
from committer.iceberg.entry.data_file import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.manifest.manifest_writer import (
    ManifestContext,
    encode_manifest,
    manifest_file,
    manifest_header,
)
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.schema.schema import parse_schema
from committer.iceberg.values.single_value import print_json_value
from tests.support.builders.fixtures import read_bytes, table_dir
from tests.support.iceberg.manifest_builders import (
    SCORE,
    SYNC,
    added_entry,
    as_text,
    context,
    data_file,
    delete_file,
    deletion_vector,
    manifest,
    spec,
)

QUIRK = "v2_identity_fixed_java_quirk"
TABLES = sorted(
    path.parent.name
    for path in table_dir("v2_empty").parent.glob("*/expected.json")
    if path.parent.name != QUIRK
)


@cache
def expected_of(table: str) -> dict[str, Any]:
    text = (table_dir(table) / "expected.json").read_text()
    document: dict[str, Any] = json.loads(text)
    return document


def rows_of(table: str) -> dict[str, ManifestFile]:
    """Return the first row of each manifest. A manifest that a snapshot embeds (version 1) has none
    in a list; it reads as one with sequence number 0.
    """
    rows: dict[str, ManifestFile] = {}
    for snapshot in expected_of(table)["snapshots"]:
        if snapshot["manifest_list"] is not None:
            found = decode_manifest_list(read_bytes(snapshot["manifest_list"])).rows
            rows = {row.manifest_path: row for row in found} | rows
    return rows


def embedded_row(path: str, entries: list[dict[str, Any]]) -> ManifestFile:
    return ManifestFile(
        manifest_path=path,
        manifest_length=0,
        partition_spec_id=0,
        added_snapshot_id=entries[0]["snapshot_id"],
        added_files_count=None,
        existing_files_count=None,
        deleted_files_count=None,
        added_rows_count=None,
        existing_rows_count=None,
        deleted_rows_count=None,
    )


def as_expected(entry: ManifestEntry, decoded: Any) -> dict[str, Any]:
    """Describe an entry in the words of `expected.json`."""
    file = entry.data_file
    fields = partition_type(decoded.spec, decoded.schema).fields
    partition = {
        field.name: None if value is None else print_json_value(field.field_type, value)
        for field, value in zip(fields, file.partition, strict=True)
    }
    names = ["file_path", "file_format", "spec_id", "record_count", "file_size_in_bytes"]
    names += ["sort_order_id", "first_row_id"]
    described = {name: getattr(file, name) for name in names} | {
        "content": int(file.content),
        "partition": partition,
        "key_metadata": None if file.key_metadata is None else file.key_metadata.hex(),
        "equality_ids": None if file.equality_ids is None else list(file.equality_ids),
    }
    if file.content:
        names = ["referenced_data_file", "content_offset", "content_size_in_bytes"]
        described |= {name: getattr(file, name) for name in names}
    return {
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id,
        "data_sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "file": described,
    }


def plain(value: object) -> object:
    """Print NaN and the infinities as text, as the reference does: JSON has no such numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def comparable(entry: dict[str, Any]) -> dict[str, Any]:
    dropped = ("partition_path", "data_sequence_number", "file_sequence_number")
    file = {key: value for key, value in entry["file"].items() if key not in dropped}
    file["partition"] = {key: plain(value) for key, value in file["partition"].items()}
    return {**entry, "file": file}


@pytest.mark.parametrize("table", TABLES)
def test_entries_of_the_reference_implementation_inherit_as_it_lets_them(table: str) -> None:
    rows = rows_of(table)
    for path, entries in expected_of(table)["manifest_entries"].items():
        row = rows.get(path) or embedded_row(path, entries)
        decoded = decode_manifest(read_bytes(path), manifest_file=row)
        found = [comparable(as_expected(entry, decoded)) for entry in decoded.entries]
        assert found == [comparable(entry) for entry in entries]


@pytest.mark.parametrize("table", [table for table in TABLES if table.startswith("v3")])
def test_live_files_have_the_row_ids_of_the_current_list(table: str) -> None:
    expected = expected_of(table)
    current = [
        s for s in expected["snapshots"] if s["snapshot_id"] == expected["current_snapshot_id"]
    ]
    found = {}
    for snapshot in current:
        for row in decode_manifest_list(read_bytes(snapshot["manifest_list"])).rows:
            for entry in decode_manifest(read_bytes(row.manifest_path), manifest_file=row).entries:
                if entry.is_live and row.content == ManifestContent.DATA:
                    file = entry.data_file
                    found[file.file_path] = (file.first_row_id, entry.sequence_number)
    assert found == {
        file["file_path"]: (file["first_row_id"], file["data_sequence_number"])
        for file in expected["live_data_files"]
    }


@pytest.mark.parametrize("table", TABLES)
def test_metrics_of_the_reference_implementation_are_read(table: str) -> None:
    files = {
        entry.data_file.file_path: entry.data_file
        for path in expected_of(table)["manifest_entries"]
        for entry in decode_manifest(read_bytes(path)).entries
        if entry.is_live
    }
    for wanted in expected_of(table)["live_data_files"]:
        file = files[wanted["file_path"]]
        for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"):
            assert _by_text(getattr(file, name)) == wanted[name]
        for name in ("lower_bounds", "upper_bounds"):
            found, bounds = getattr(file, name), wanted[name]
            hexes = None if bounds is None else {key: one["hex"] for key, one in bounds.items()}
            assert (None if found is None else {str(k): v.hex() for k, v in found.items()}) == hexes
        offsets = file.split_offsets
        assert (None if offsets is None else list(offsets)) == wanted["split_offsets"]


def _by_text(pairs: Any) -> Any:
    return None if pairs is None else {str(key): value for key, value in pairs.items()}


@pytest.mark.parametrize("table", TABLES)
def test_manifests_of_the_reference_implementation_are_written_again_as_they_were(
    table: str,
) -> None:
    for path in expected_of(table)["manifest_entries"]:
        decoded = decode_manifest(read_bytes(path))
        again = ManifestContext(
            decoded.format_version, decoded.schema, decoded.spec, decoded.content
        )
        encoded = encode_manifest(decoded.entries, again, codec="null", sync=SYNC)
        assert as_text(decode_manifest(encoded.content).entries) == as_text(decoded.entries)
        ours, theirs = read_header(encoded.content), read_header(read_bytes(path))
        assert ours.schema_json == theirs.schema_json
        for key in ("schema", "partition-spec", "iceberg.schema"):
            assert json.loads(ours.metadata[key]) == json.loads(theirs.metadata[key])
        for key in ("partition-spec-id", "format-version", "content"):
            assert ours.metadata.get(key) == theirs.metadata.get(key)


@pytest.mark.parametrize("table", TABLES)
def test_partition_summaries_equal_those_of_the_reference_implementation(table: str) -> None:
    rows = rows_of(table)
    for path in expected_of(table)["manifest_entries"]:
        decoded = decode_manifest(read_bytes(path))
        again = ManifestContext(
            decoded.format_version, decoded.schema, decoded.spec, decoded.content
        )
        encoded = encode_manifest(decoded.entries, again, sync=SYNC)
        if path not in rows:
            continue
        row = rows[path]
        assert encoded.partitions == (row.partitions or ())
        assert encoded.added_files_count == row.added_files_count
        assert encoded.existing_files_count == row.existing_files_count
        assert encoded.deleted_files_count == row.deleted_files_count
        assert encoded.added_rows_count == row.added_rows_count
        assert encoded.existing_rows_count == row.existing_rows_count
        assert encoded.deleted_rows_count == row.deleted_rows_count


def test_fixed_partition_values_that_break_the_manifests_own_schema_are_refused() -> None:
    for path in expected_of(QUIRK)["manifest_entries"]:
        with pytest.raises(InvalidMetadataError):
            decode_manifest(read_bytes(path))


# --- What is written -----------------------------------------------------------------------------


@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_fastavro_decodes_the_values_that_were_written(format_version: int, codec: str) -> None:
    files = [data_file(number) for number in range(300)]
    content = manifest(*files, context=context(format_version=format_version), codec=codec)
    records = list(fastavro.reader(BytesIO(content)))
    assert len(records) == len(files)
    for record, file in zip(records, files, strict=True):
        assert (record["status"], record["snapshot_id"]) == (1, None)
        assert record.get("sequence_number") is None
        written = record["data_file"]
        for name in ("file_path", "file_format", "record_count", "file_size_in_bytes"):
            assert written[name] == getattr(file, name)
        for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"):
            assert _pairs(written[name]) == getattr(file, name)
        for name in ("lower_bounds", "upper_bounds"):
            assert _pairs(written[name]) == getattr(file, name)
        assert written["split_offsets"] == [4]
        assert written["partition"]["region"] == file.partition[0]
        assert written.get("block_size_in_bytes", 67108864) == 67108864


def _pairs(written: list[dict[str, Any]]) -> dict[int, Any]:
    return {pair["key"]: pair["value"] for pair in written}


ALL_TYPES = (
    ("boolean", [True, False]),
    ("int", [0, -(2**31), 2**31 - 1]),
    ("long", [0, -(2**63), 2**63 - 1]),
    ("float", [-0.0, 1.5, math.inf]),
    ("double", [-0.0, 1e300, -math.inf]),
    ("date", [0, -1, 2932896]),
    ("time", [0, 86399999999]),
    ("timestamp", [-1, 253402300799999999]),
    ("timestamptz", [-1, 2**62]),
    ("string", ["", "é𝄞", "x" * 300]),
    ("uuid", [UUID(int=0), UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")]),
    ("fixed[4]", [b"\x00\x01\x02\x03", b"\xff" * 4]),
    ("binary", [b"", b"\x00" * 200]),
    ("decimal(9, 2)", [Decimal("-9999999.99"), Decimal("0.00")]),
    ("decimal(38, 10)", [Decimal("9999999999999999999999999999.9999999999"), Decimal("-1E-10")]),
)


@pytest.mark.parametrize(("kind", "values"), ALL_TYPES, ids=[kind for kind, _ in ALL_TYPES])
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_partition_values_of_every_type_read_back(
    format_version: int, kind: str, values: list[object]
) -> None:
    schema = parse_schema(
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 2, "name": "p", "required": False, "type": kind}],
        }
    )
    identity = {"name": "p", "transform": "identity", "source-id": 2, "field-id": 1000}
    one = context(format_version=format_version, fields=(identity,), schema=schema)
    files = [data_file(n, partition=(value,)) for n, value in enumerate([None, *values])]
    decoded = decode_manifest(manifest(*files, context=one))
    found = [entry.data_file.partition for entry in decoded.entries]
    assert repr(found) == repr([file.partition for file in files])


def test_the_header_has_the_keys_of_its_version() -> None:
    header = read_header(manifest_header(context(format_version=2), "deflate", SYNC))
    assert header.metadata["format-version"] == b"2"
    assert header.metadata["content"] == b"data"
    assert header.metadata["schema-id"] == b"3"
    assert header.metadata["partition-spec-id"] == b"0"
    assert json.loads(header.metadata["partition-spec"])[0]["name"] == "region"
    assert json.loads(header.metadata["schema"])["schema-id"] == 3
    header = read_header(manifest_header(context(format_version=1), "deflate", SYNC))
    assert "content" not in header.metadata


def test_equal_input_gives_equal_bytes() -> None:
    files = [data_file(number) for number in range(20)]
    assert manifest(*files, context=context()) == manifest(*files, context=context())


def test_many_entries_are_cut_into_blocks_of_a_size_that_readers_keep() -> None:
    from committer.iceberg.avro.container import iter_raw_blocks

    content = manifest(*(data_file(number) for number in range(2000)), context=context())
    sizes = [len(raw) for _, raw in iter_raw_blocks(content, read_header(content))]
    assert len(sizes) > 5
    assert max(sizes) < 2 * 64 * 1024


def test_counts_and_the_lowest_sequence_number_are_of_live_entries() -> None:
    statuses = ManifestEntryStatus
    entries = [
        added_entry(data_file(1, record_count=5)),
        ManifestEntry(statuses.EXISTING, 7, 4, 4, data_file(2, record_count=10)),
        ManifestEntry(statuses.EXISTING, 7, 3, 4, data_file(3, record_count=20)),
        ManifestEntry(statuses.DELETED, 8, 1, 1, data_file(4, record_count=40)),
    ]
    encoded = encode_manifest(entries, context(), sync=SYNC)
    assert (encoded.added_files_count, encoded.added_rows_count) == (1, 5)
    assert (encoded.existing_files_count, encoded.existing_rows_count) == (2, 30)
    assert (encoded.deleted_files_count, encoded.deleted_rows_count) == (1, 40)
    assert encoded.min_sequence_number == 3
    row = manifest_file(encoded, context(), manifest_path="m", snapshot_id=9, sequence_number=6)
    assert (row.manifest_length, row.min_sequence_number) == (len(encoded.content), 3)
    added = encode_manifest(entries[:1], context(), sync=SYNC)
    row = manifest_file(added, context(), manifest_path="m", snapshot_id=9, sequence_number=6)
    assert row.min_sequence_number == 6


def test_minus_zero_nan_and_null_are_kept_apart_in_summaries() -> None:
    def summary(*values: float | None) -> tuple[bool, bool | None, str | None, str | None]:
        entries = [added_entry(data_file(partition=(value,))) for value in values]
        (found,) = encode_manifest(entries, context(fields=SCORE), sync=SYNC).partitions
        bounds = (found.lower_bound, found.upper_bound)
        lower, upper = (None if bound is None else bound.hex() for bound in bounds)
        return found.contains_null, found.contains_nan, lower, upper

    zero, minus_zero = "0000000000000000", "0000000000000080"
    assert summary(0.0, -0.0) == (False, False, minus_zero, zero)
    assert summary(-0.0, 0.0) == (False, False, minus_zero, zero)
    assert summary(0.0) == (False, False, zero, zero)
    assert summary(math.nan, None) == (True, True, None, None)
    assert summary(math.nan, -0.0) == (False, True, minus_zero, minus_zero)
    assert summary() == (False, False, None, None)


def test_row_ids_of_added_files_are_left_to_the_list() -> None:
    content = manifest(data_file(first_row_id=77), context=context(format_version=3))
    assert decode_manifest(content).entries[0].data_file.first_row_id is None


def test_deletion_vectors_and_delete_files_read_back() -> None:
    deletes = context(format_version=3, content=ManifestContent.DELETES)
    files = (deletion_vector(1), deletion_vector(2))
    decoded = decode_manifest(manifest(*files, context=deletes))
    assert tuple(entry.data_file for entry in decoded.entries) == files
    assert decoded.content == ManifestContent.DELETES
    assert decoded.entries[0].data_file.is_deletion_vector
    old = context(content=ManifestContent.DELETES)
    file = delete_file(1, referenced_data_file="s3://a")
    assert decode_manifest(manifest(file, context=old)).entries[0].data_file == file


@pytest.mark.parametrize(
    ("entry", "one"),
    [
        (added_entry(delete_file()), context()),
        (added_entry(data_file()), context(content=ManifestContent.DELETES)),
        (added_entry(deletion_vector()), context(content=ManifestContent.DELETES)),
        (added_entry(data_file(partition=("a",))), context()),
        (added_entry(data_file(partition=("a", "b"))), context()),
        (added_entry(data_file()), context(fields=())),
        (
            ManifestEntry(ManifestEntryStatus.EXISTING, 1, None, None, data_file()),
            context(),
        ),
        (ManifestEntry(ManifestEntryStatus.DELETED, None, 1, 1, data_file()), context()),
    ],
)
def test_what_a_manifest_cannot_hold_is_an_error_of_the_caller(
    entry: ManifestEntry, one: ManifestContext
) -> None:
    with pytest.raises(InvariantError):
        encode_manifest([entry], one, sync=SYNC)


def test_version_1_has_no_delete_manifests() -> None:
    deletes = context(format_version=1, content=ManifestContent.DELETES)
    with pytest.raises(InvariantError):
        manifest_header(deletes, "null", SYNC)


# --- Inheritance ---------------------------------------------------------------------------------


def row(**changes: Any) -> ManifestFile:
    return replace(
        ManifestFile(
            manifest_path="m",
            manifest_length=1,
            partition_spec_id=0,
            sequence_number=9,
            min_sequence_number=2,
            added_snapshot_id=50,
            added_files_count=1,
            existing_files_count=1,
            deleted_files_count=1,
            added_rows_count=1,
            existing_rows_count=1,
            deleted_rows_count=1,
        ),
        **changes,
    )


def test_row_ids_run_on_over_live_files_without_one() -> None:
    def entry(status: ManifestEntryStatus, file: DataFile) -> ManifestEntry:
        if status == ManifestEntryStatus.ADDED:
            return added_entry(file)
        return ManifestEntry(status, 1, 2, 2, file)

    entries = [
        entry(ManifestEntryStatus.ADDED, data_file(0, record_count=10)),
        entry(ManifestEntryStatus.DELETED, data_file(1, record_count=100, first_row_id=3)),
        entry(ManifestEntryStatus.DELETED, data_file(1, record_count=100)),
        entry(ManifestEntryStatus.EXISTING, data_file(2, record_count=100, first_row_id=5)),
        entry(ManifestEntryStatus.EXISTING, data_file(3, record_count=10)),
        entry(ManifestEntryStatus.ADDED, data_file(4, record_count=10)),
    ]
    content = encode_manifest(entries, context(format_version=3), sync=SYNC).content
    decoded = decode_manifest(content, manifest_file=row(first_row_id=1000))
    found = [one.data_file.first_row_id for one in decoded.entries]
    assert found == [1000, 3, None, 5, 1010, 1020]
    decoded = decode_manifest(content, manifest_file=row(first_row_id=None))
    assert [one.data_file.first_row_id for one in decoded.entries] == [None] * 6


def test_existing_entries_of_version_1_have_sequence_number_0() -> None:
    existing = ManifestEntry(ManifestEntryStatus.EXISTING, 7, None, None, data_file())
    entry = replace(existing, sequence_number=1, file_sequence_number=1)
    content = encode_manifest([entry], context(format_version=1), sync=SYNC).content
    assert decode_manifest(content).entries == (existing,)
    (read,) = decode_manifest(content, manifest_file=row(sequence_number=0)).entries
    assert (read.snapshot_id, read.sequence_number, read.file_sequence_number) == (7, 0, 0)


def test_file_formats_are_read_in_any_case() -> None:
    content = manifest(data_file(), context=context(), codec="null")
    lower = content.replace(b"\x0ePARQUET", b"\x0eparquet")
    assert lower != content
    assert decode_manifest(lower).entries == decode_manifest(content).entries


def test_a_map_whose_size_lies_is_refused() -> None:
    file = data_file(column_sizes={1: 1, 2: 2})
    content = manifest(file, context=context(), codec="null")
    sized = b"\x02\x03\x08\x02\x02\x04\x04\x00"
    assert content.count(sized) == 1
    with pytest.raises(InvalidMetadataError, match="size"):
        decode_manifest(content.replace(sized, b"\x02\x03\x06\x02\x02\x04\x04\x00"))


def test_a_row_that_contradicts_its_manifest_is_refused() -> None:
    content = manifest(data_file(), context=context())
    with pytest.raises(InvalidMetadataError, match="DELETES"):
        decode_manifest(content, manifest_file=row(content=ManifestContent.DELETES))


def test_no_damage_gets_further_than_an_error() -> None:
    content = manifest(data_file(1), data_file(2), context=context(), codec="null")
    start = read_header(content).end_offset
    for position in range(start, len(content)):
        for value in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            damaged = content[:position] + bytes((value,)) + content[position + 1 :]
            try:
                decode_manifest(damaged)
            except InvalidMetadataError:
                continue
    for length in range(start + 1, len(content)):
        with pytest.raises(InvalidMetadataError):
            decode_manifest(content[:length])


# --- Another reader ------------------------------------------------------------------------------


@pytest.mark.parametrize("format_version", [1, 2])
def test_pyiceberg_reads_our_manifest(format_version: int, tmp_path: Path) -> None:
    from tests.support.iceberg.foreign_reader import pyiceberg_entries

    files = [data_file(number) for number in range(50)]
    path = tmp_path / "m0.avro"
    path.write_bytes(manifest(*files, context=context(format_version=format_version)))
    found = pyiceberg_entries(path, snapshot_id=5, sequence_number=7)
    assert [entry.data_file.file_path for entry in found] == [file.file_path for file in files]
    assert {entry.snapshot_id for entry in found} == {5}
    assert [entry.data_file.lower_bounds for entry in found] == [f.lower_bounds for f in files]
    assert [entry.data_file.split_offsets for entry in found] == [[4]] * 50
    assert [tuple(entry.data_file.partition._data) for entry in found] == [
        file.partition for file in files
    ]


def test_an_unpartitioned_manifest_has_no_partition_values() -> None:
    one = context(fields=())
    file = data_file(partition=())
    decoded = decode_manifest(manifest(file, context=one))
    assert decoded.spec == spec()
    assert decoded.entries == (added_entry(file),)
