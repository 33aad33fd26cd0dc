"""The check of a manifest that a producer hands over: what passes, what is refused and why."""

from __future__ import annotations

import json
import random
import struct
from dataclasses import replace
from typing import Any

import pytest

from committer.errors import InvalidMetadataError, InvalidRequestError
from committer.iceberg.avro.codecs import compress
from committer.iceberg.avro.container import iter_blocks, iter_raw_blocks, read_header
from committer.iceberg.avro.decoder import decode_record, record_decoder
from committer.iceberg.entry import entry_layout as manifest_layout
from committer.iceberg.entry.data_file import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.entry.entry_check import check_addition
from committer.iceberg.entry.entry_encoder import entry_encoder
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_writer import (
    ManifestContext,
    encode_manifest,
    manifest_file,
)
from committer.iceberg.manifest.partition_summary import summarize_partitions
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.schema.schema import parse_schema
from committer.iceberg.splice.manifest_walk import walk_additions
from committer.reason import Reason
from tests.support.builders.bad_requests import without_header
from tests.support.builders.fixtures import table_dir
from tests.support.iceberg.manifest_builders import (
    MAPS,
    SCORE,
    SYNC,
    added_entry,
    context,
    data_file,
    delete_file,
    deletion_vector,
    foreign_manifest,
    header_with,
    manifest,
    manifest_of_raw,
    walk,
)

VERSIONS = (1, 2, 3)


def reason_of(content: bytes, one: ManifestContext) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        walk(content, one)
    return caught.value.reason


def raw_entry(file: DataFile, one: ManifestContext, **ids: Any) -> bytes:
    entry = added_entry(file)
    for name, value in ids.items():
        entry = replace(entry, **{name: value})
    return entry_encoder(one.format_version, partition_type(one.spec, one.schema))(entry)


# --- What passes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("format_version", VERSIONS)
@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "snappy"])
def test_counts_paths_and_partitions_are_those_of_the_entries(
    format_version: int, codec: str
) -> None:
    one = context(format_version=format_version)
    files = [data_file(number) for number in range(500)]
    walked = walk(manifest(*files, context=one, codec=codec), one)
    assert walked.is_ours
    assert walked.paths == [file.file_path for file in files]
    assert walked.added_files_count == 500
    assert walked.added_rows_count == sum(file.record_count for file in files)
    assert walked.added_size_bytes == sum(file.file_size_in_bytes for file in files)
    assert set(walked.partitions) == {file.partition for file in files}
    assert len(walked.partitions) == len(set(walked.partitions))
    assert sum(block.count for block in walked.blocks) == 500
    assert walked.delete_files == ()


@pytest.mark.parametrize("format_version", VERSIONS)
@pytest.mark.parametrize("entries_per_block", [0, 1])
def test_maps_without_sizes_are_walked_too(format_version: int, entries_per_block: int) -> None:
    one = context(format_version=format_version)
    files = [data_file(number) for number in range(200)]
    files.append(data_file(200, lower_bounds={2: b"x" * 64}, upper_bounds={}))
    files.append(data_file(201, column_sizes=None, nan_value_counts={}, lower_bounds=None))
    files.append(data_file(202, value_counts={9000: 1, 4: 2**60}, key_metadata=b"k" * 300))
    ours = manifest(*files, context=one)
    theirs = walk(foreign_manifest(ours, entries_per_block=entries_per_block), one)
    mine = walk(ours, one)
    assert theirs.is_ours, "the layout is ours, names and sizes of maps do not matter"
    for name in ("paths", "added_rows_count", "added_size_bytes"):
        assert getattr(theirs, name) == getattr(mine, name)
    assert set(theirs.partitions) == set(mine.partitions)


def test_an_older_writers_layout_without_the_newest_field_is_walked() -> None:
    one = context()
    theirs = foreign_manifest(manifest(data_file(1), data_file(2), context=one), drop=143)
    walked = walk(theirs, one)
    assert not walked.is_ours
    assert walked.added_files_count == 2


ODD_FILES = {
    "long path": data_file(file_path="s3://b/" + "d" * 9000 + "/f"),
    "path over 63 bytes, not ASCII": data_file(file_path="s3://b/é𝄞/" + "d" * 64),
    "large counts": data_file(record_count=2**62, file_size_in_bytes=2**55),
    "largest counts": data_file(
        record_count=2**63 - 1, file_size_in_bytes=2**63 - 1, split_offsets=(2**63 - 2,)
    ),
    "no bytes": data_file(file_size_in_bytes=0, split_offsets=()),
    "no statistics": DataFile(
        file_path="s3://b/f", partition=("r", 1), record_count=0, file_size_in_bytes=0
    ),
    "orc": data_file(file_format="ORC"),
    "avro": data_file(file_format="avro"),
    "null partition": data_file(partition=(None, None)),
    "long partition": data_file(partition=("x" * 10_000, -5)),
    "empty maps": data_file(column_sizes={}, lower_bounds={}, split_offsets=()),
    "many columns": data_file(
        column_sizes={n: n * 1000 for n in range(3000)},
        lower_bounds={n: struct.pack("<q", n) for n in range(3000)},
    ),
    "long bounds": data_file(lower_bounds={2: b"x" * 70_000}),
    "many splits": data_file(split_offsets=tuple(range(4, 10**9, 10**7)), file_size_in_bytes=10**9),
    "equal splits": data_file(split_offsets=(4, 4, 9)),
    "no equality ids": data_file(equality_ids=()),
    "encrypted": data_file(key_metadata=b"key" * 50),
}


@pytest.mark.parametrize("format_version", VERSIONS)
@pytest.mark.parametrize("name", ODD_FILES)
def test_odd_but_valid_files_pass_by_whichever_way(format_version: int, name: str) -> None:
    one = context(format_version=format_version)
    files = [data_file(1), ODD_FILES[name], ODD_FILES[name], data_file(2)]
    for content in (manifest(*files, context=one), foreign_manifest(manifest(*files, context=one))):
        walked = walk(content, one)
        assert sorted(walked.paths) == sorted(file.file_path for file in files)
        assert walked.added_rows_count == sum(file.record_count for file in files)
        assert walked.added_size_bytes == sum(file.file_size_in_bytes for file in files)
        assert set(walked.partitions) == {file.partition for file in files}


@pytest.mark.parametrize("layout", ["fast", "none"])
def test_both_ways_through_an_entry_come_to_the_same_result(
    layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = context(format_version=3)
    files = [data_file(number, partition=(None, number % 5)) for number in range(60)]
    if layout == "none":
        monkeypatch.setattr(manifest_layout, "_HEADS", {})
        manifest_layout.layout_of.cache_clear()
        walk_additions.__globals__["_plan"].cache_clear()
    try:
        walked = walk(manifest(*files, context=one), one)
    finally:
        manifest_layout.layout_of.cache_clear()
        walk_additions.__globals__["_plan"].cache_clear()
    assert walked.paths == [file.file_path for file in files]
    assert set(walked.partitions) == {(None, number) for number in range(5)}
    assert walked.added_rows_count == sum(file.record_count for file in files)


def test_partition_summaries_are_recomputed_and_equal_those_of_the_writer() -> None:
    one = context(fields=SCORE)
    values = [0.0, None, float("nan"), -0.0, 7.25, float("-inf")]
    files = [data_file(number, partition=(value,)) for number, value in enumerate(values)]
    encoded = encode_manifest([added_entry(file) for file in files], one, sync=SYNC)
    walked = walk(encoded.content, one)
    summaries = summarize_partitions(partition_type(one.spec, one.schema), walked.partitions)
    assert summaries == encoded.partitions
    assert len(walked.partitions) == len(values), "0.0 and -0.0 are two partitions"
    row = manifest_file(encoded, one, manifest_path="m", snapshot_id=1, sequence_number=1)
    assert row.partitions == summaries


def test_an_empty_manifest_passes_with_nothing() -> None:
    walked = walk(manifest(context=context()), context())
    assert (walked.added_files_count, walked.paths, walked.blocks) == (0, [], ())


def test_delete_files_are_decoded() -> None:
    deletes = context(content=ManifestContent.DELETES)
    files = (delete_file(1), delete_file(2))
    walked = walk(manifest(*files, context=deletes), deletes)
    assert walked.delete_files == files
    assert walked.added_files_count == 2
    vectors = context(format_version=3, content=ManifestContent.DELETES)
    walked = walk(manifest(deletion_vector(4), context=vectors), vectors)
    assert walked.delete_files == (deletion_vector(4),)


def test_a_promoted_partition_type_is_read_in_its_older_form() -> None:
    def with_type(kind: str) -> ManifestContext:
        schema = parse_schema(
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [{"id": 2, "name": "p", "required": False, "type": kind}],
            }
        )
        identity = {"name": "p", "transform": "identity", "source-id": 2, "field-id": 1000}
        return context(fields=(identity,), schema=schema)

    file = data_file(partition=(5,), lower_bounds=None, upper_bounds=None)
    old = manifest(file, context=with_type("int"))
    walked = walk(old, with_type("long"))
    assert (walked.partitions, walked.is_ours) == (((5,),), False)
    new = manifest(file, context=with_type("long"))
    assert reason_of(new, with_type("int")) == Reason.PARTITION_TYPE_MISMATCH


# --- What is refused -----------------------------------------------------------------------------


REFUSED: list[tuple[dict[str, Any], dict[str, Any], Reason]] = [
    ({}, {"status": ManifestEntryStatus.EXISTING}, Reason.ENTRY_NOT_ADDED),
    ({}, {"status": ManifestEntryStatus.DELETED}, Reason.ENTRY_NOT_ADDED),
    ({}, {"snapshot_id": 5}, Reason.ENTRY_SNAPSHOT_ID_SET),
    ({}, {"sequence_number": 0}, Reason.ENTRY_SEQUENCE_NUMBER_SET),
    ({}, {"file_sequence_number": 1}, Reason.ENTRY_SEQUENCE_NUMBER_SET),
    ({"record_count": -1}, {}, Reason.NEGATIVE_COUNT),
    ({"record_count": -(2**62)}, {}, Reason.NEGATIVE_COUNT),
    ({"file_size_in_bytes": -5}, {}, Reason.NEGATIVE_COUNT),
    ({"column_sizes": {1: 4003, 2: -4006, 3: 4009, 4: 4012}}, {}, Reason.NEGATIVE_COUNT),
    ({"value_counts": {1: 103, 2: 103, 3: 103, 4: -103}}, {}, Reason.NEGATIVE_COUNT),
    ({"null_value_counts": {1: -3, 2: 3, 3: 3, 4: 3}}, {}, Reason.NEGATIVE_COUNT),
    ({"nan_value_counts": {4: -1}}, {}, Reason.NEGATIVE_COUNT),
    ({"split_offsets": (-4,)}, {}, Reason.SPLIT_OFFSETS_MALFORMED),
    ({"split_offsets": (4, 100, 99)}, {}, Reason.SPLIT_OFFSETS_MALFORMED),
    ({"split_offsets": (4, 100_003)}, {}, Reason.SPLIT_OFFSETS_MALFORMED),
    ({"file_size_in_bytes": 4}, {}, Reason.SPLIT_OFFSETS_MALFORMED),
    ({"equality_ids": (1,)}, {}, Reason.DELETE_FIELD_SET),
    ({"referenced_data_file": "s3://b/f"}, {}, Reason.DELETE_FIELD_SET),
    ({"lower_bounds": {1: b"1234567"}}, {}, Reason.BOUND_MALFORMED),
    ({"file_path": ""}, {}, Reason.MANIFEST_MALFORMED),
    ({"file_format": "PUFFIN"}, {}, Reason.MANIFEST_MALFORMED),
    ({"file_format": "CSV"}, {}, Reason.MANIFEST_MALFORMED),
]


@pytest.mark.parametrize("place", [0, 5, 9])
@pytest.mark.parametrize(("changes", "ids", "reason"), REFUSED)
def test_one_wrong_entry_among_good_ones_is_found(
    changes: dict[str, Any], ids: dict[str, Any], reason: Reason, place: int
) -> None:
    one = context()
    if ids.get("status") in (ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED):
        ids = ids | {"snapshot_id": 1, "sequence_number": 1, "file_sequence_number": 1}
    raws = [raw_entry(data_file(number), one) for number in range(10)]
    raws[place] = raw_entry(data_file(3, **changes), one, **ids)
    content = manifest_of_raw((10, b"".join(raws)), context=one)
    assert reason_of(content, one) == reason
    assert reason_of(foreign_manifest(content), one) == reason


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("place", [0, 3, 9])
@pytest.mark.parametrize("name", MAPS)
def test_a_column_twice_in_a_map_is_refused(name: str, place: int, is_plain: bool) -> None:
    one = context()
    pairs: dict[int, object] = {1: b"region-1", 2: b"region-2"} if "bound" in name else {1: 7, 2: 8}
    second = b"\x04\x10region-2" if "bound" in name else b"\x04\x10"
    others = dict.fromkeys(MAPS, None)
    files = [data_file(number, **(others | {name: pairs})) for number in range(10)]
    raws = [raw_entry(file, one) for file in files]
    good = manifest_of_raw((10, b"".join(raws)), context=one)
    assert raws[place].count(second) == 1
    raws[place] = raws[place].replace(second, b"\x02" + second[1:])
    bad = manifest_of_raw((10, b"".join(raws)), context=one)
    if is_plain:
        good, bad = foreign_manifest(good), foreign_manifest(bad)
    assert walk(good, one).added_files_count == 10
    assert reason_of(bad, one) == Reason.COLUMN_REPEATED


def test_a_column_twice_in_several_blocks_of_a_map_is_refused() -> None:
    one = context()
    good = raw_entry(data_file(column_sizes={1: 7, 2: 8}), one)
    sized = b"\x02\x03\x08\x02\x0e\x04\x10\x00"
    assert good.count(sized) == 1
    blocks = b"\x02\x02\x02\x0e\x02%b\x10\x00"
    right, wrong = (good.replace(sized, blocks % column) for column in (b"\x04", b"\x02"))
    assert walk(manifest_of_raw((1, right), context=one), one).added_files_count == 1
    assert reason_of(manifest_of_raw((1, wrong), context=one), one) == Reason.COLUMN_REPEATED


def test_a_row_id_is_refused_wherever_it_stands() -> None:
    one = context(format_version=3)
    good = raw_entry(data_file(), one)
    # The last five fields: sort order 0, then four nulls of which the first is the row id.
    assert good.endswith(b"\x02\0\0\0\0\0")
    bad = good[:-4] + b"\x02\x0a\0\0\0"
    content = manifest_of_raw((2, good + bad), context=one)
    assert reason_of(content, one) == Reason.ROW_ID_SET


@pytest.mark.parametrize("field", ["content_offset", "content_size_in_bytes"])
def test_a_place_in_a_file_is_not_a_data_files(field: str) -> None:
    one = context(format_version=3)
    bad = data_file(1, **{field: 4})
    content = manifest(data_file(), data_file(), bad, context=one)
    assert reason_of(content, one) == Reason.DELETE_FIELD_SET


@pytest.mark.parametrize("names", [("format-version",), ("format-version", "partition-spec-id")])
def test_a_header_without_a_version_is_of_version_1_and_nothing_else(
    names: tuple[str, ...],
) -> None:
    first = context(format_version=1)
    walked = walk(without_header(manifest(data_file(), context=first), *names), first)
    assert walked.added_files_count == 1
    for version in (2, 3):
        one = context(format_version=version)
        bare = without_header(manifest(data_file(), context=one), *names)
        assert reason_of(bare, one) == Reason.FORMAT_VERSION_MISMATCH
        assert reason_of(bare, first) == Reason.FORMAT_VERSION_MISMATCH


def test_another_version_or_content_than_the_tables_is_refused() -> None:
    content = manifest(data_file(), context=context())
    other = context(format_version=3)
    assert reason_of(content, other) == Reason.FORMAT_VERSION_MISMATCH
    deletes = context(content=ManifestContent.DELETES)
    assert reason_of(content, deletes) == Reason.MANIFEST_CONTENT_MISMATCH
    relabeled = header_with(content, content=b"deletes")
    assert reason_of(relabeled, deletes) == Reason.MANIFEST_CONTENT_MISMATCH


def test_a_data_manifest_with_a_delete_entry_is_refused() -> None:
    deletes = context(content=ManifestContent.DELETES)
    hidden = header_with(manifest(delete_file(), context=deletes), content=b"data")
    assert reason_of(hidden, context()) == Reason.MANIFEST_CONTENT_MISMATCH


@pytest.mark.parametrize(
    ("file", "format_version"),
    [
        (delete_file(), 3),
        (replace(deletion_vector(), content_offset=None), 3),
        (replace(deletion_vector(), referenced_data_file=None), 3),
        (replace(deletion_vector(), content_size_in_bytes=None), 3),
        (delete_file(content=2), 2),
    ],
)
def test_delete_files_that_the_version_does_not_take_are_refused(
    file: DataFile, format_version: int
) -> None:
    deletes = context(format_version=format_version, content=ManifestContent.DELETES)
    content = manifest(file, context=deletes)
    assert reason_of(content, deletes) == Reason.MANIFEST_CONTENT_MISMATCH


def test_another_partition_type_is_refused() -> None:
    content = manifest(data_file(partition=(1.5,)), context=context(fields=SCORE))
    assert reason_of(content, context()) == Reason.PARTITION_TYPE_MISMATCH
    content = manifest(data_file(partition=()), context=context(fields=()))
    assert reason_of(content, context()) == Reason.PARTITION_TYPE_MISMATCH


@pytest.mark.parametrize(
    "partition",
    [b"\x02\x02\xff\x02\x08", b"\x02\x02r\x02\xfe\xff\xff\xff\xff\x7f", b"\x04\x02r\0", b"\x01"],
    ids=["not UTF-8", "a date of over 32 bits", "no such branch", "a negative branch"],
)
def test_partition_values_of_another_type_are_refused(partition: bytes) -> None:
    one = context()
    good = raw_entry(data_file(partition=("QQ", 1)), one)
    bad = good.replace(b"\x02\x04QQ\x02\x02", partition)
    assert bad != good
    content = manifest_of_raw((2, good + bad), context=one)
    assert reason_of(content, one) in (Reason.MANIFEST_MALFORMED, Reason.MANIFEST_TRUNCATED)


def test_a_path_that_is_not_utf8_is_refused() -> None:
    one = context()
    bad = raw_entry(data_file(file_path="s3://b/QQ"), one).replace(b"QQ", b"\xff\xfe")
    assert reason_of(manifest_of_raw((1, bad), context=one), one) == Reason.MANIFEST_MALFORMED


@pytest.mark.parametrize("place", [0, 2])
def test_a_map_whose_size_lies_is_refused(place: int) -> None:
    one = context()
    good = raw_entry(data_file(column_sizes={1: 1, 2: 2}), one)
    sized = b"\x02\x03\x08\x02\x02\x04\x04\x00"
    assert good.count(sized) == 1
    # Three pairs announced in the bytes of two: a jump fits, a reader of pairs runs on.
    lying = good.replace(sized, b"\x02\x05\x08\x02\x02\x04\x04\x00")
    raws = [good] * 3
    raws[place] = lying
    content = manifest_of_raw((3, b"".join(raws)), context=one)
    kind = partition_type(one.spec, one.schema)
    with pytest.raises(InvalidRequestError) as caught:
        walk_additions(content, kind, 2, ManifestContent.DATA)
    assert caught.value.reason in (Reason.MANIFEST_MALFORMED, Reason.MANIFEST_TRUNCATED)


@pytest.mark.thorough
def test_every_truncation_is_named_as_such() -> None:
    one = context()
    content = manifest(*(data_file(number) for number in range(20)), context=one)
    header = read_header(content)
    for length in range(len(content)):
        if length == header.end_offset:
            continue  # a manifest of no entries; its line's count does not fit
        assert reason_of(content[:length], one) == Reason.MANIFEST_TRUNCATED


def test_a_block_with_more_or_fewer_entries_than_it_says_is_refused() -> None:
    one = context()
    raw = b"".join(raw_entry(data_file(number), one) for number in range(3))
    assert reason_of(manifest_of_raw((4, raw), context=one), one) == Reason.MANIFEST_TRUNCATED
    for count in (0, 2):
        content = manifest_of_raw((count, raw), context=one)
        assert reason_of(content, one) == Reason.MANIFEST_MALFORMED
    absurd = manifest_of_raw((2**62, raw), context=one)
    assert reason_of(absurd, one) == Reason.MANIFEST_MALFORMED


@pytest.mark.parametrize("format_version", VERSIONS)
def test_no_damage_gets_further_than_a_refusal(format_version: int) -> None:
    one = context(format_version=format_version)
    raw = raw_entry(data_file(1), one) + raw_entry(data_file(2), one)
    kind = partition_type(one.spec, one.schema)
    for position in range(len(raw)):
        for value in (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFE, 0xFF):
            damaged = raw[:position] + bytes((value,)) + raw[position + 1 :]
            content = manifest_of_raw((2, damaged), context=one)
            try:
                walk_additions(content, kind, format_version, ManifestContent.DATA)
            except InvalidRequestError:
                continue


def test_what_is_no_manifest_is_refused() -> None:
    one = context()
    good = manifest(data_file(), context=one)
    assert reason_of(b"PAR1" + bytes(100), one) == Reason.MANIFEST_MALFORMED
    assert reason_of(b"", one) == Reason.MANIFEST_TRUNCATED
    for schema in (b'"long"', b'{"type":"record","name":"a","fields":[]}', b"[" * 50_000):
        changed = header_with(good, **{"avro.schema": schema})
        assert reason_of(changed, one) == Reason.MANIFEST_MALFORMED
    flat = json.loads(read_header(good).metadata["avro.schema"])
    flat["fields"][-1]["type"] = "long"
    changed = header_with(good, **{"avro.schema": json.dumps(flat).encode()})
    assert reason_of(changed, one) == Reason.MANIFEST_MALFORMED


def test_endless_varints_and_nested_counts_end_quickly() -> None:
    one = context()
    good = raw_entry(data_file(), one)
    bomb = good[:5] + b"\xff" * 100_000
    assert reason_of(manifest_of_raw((1, bomb), context=one), one) == Reason.MANIFEST_MALFORMED
    zeros = compress("deflate", bytes(1 << 22))
    content = manifest(context=one) + b"\x02" + len(zeros).to_bytes(2, "little")
    with pytest.raises(InvalidRequestError):
        walk(content, one)


def test_an_entry_is_checked_as_the_entry_it_decodes_to() -> None:
    one = context()
    entry = ManifestEntry(ManifestEntryStatus.ADDED, None, None, None, data_file(7))
    walked = walk(encode_manifest([entry], one, sync=SYNC).content, one)
    assert walked.paths == [data_file(7).file_path]


def test_manifests_of_the_reference_implementation_can_be_stepped_over() -> None:
    folder = table_dir("v2_empty").parent
    tables = ("v1_void", "v2_identity_all", "v2_bucket_all", "v2_position_deletes", "v3_bucket_ns")
    for path in (path for table in tables for path in folder.glob(f"{table}/metadata/*-m*.avro")):
        header = read_header(path.read_bytes())
        assert manifest_layout.layout_of(header.metadata["avro.schema"]) is not None
        decoded = decode_manifest(path.read_bytes())
        one = ManifestContext(decoded.format_version, decoded.schema, decoded.spec, decoded.content)
        # They are committed, so each entry of theirs has its snapshot id.
        found = reason_of(path.read_bytes(), one)
        assert found in (Reason.ENTRY_SNAPSHOT_ID_SET, Reason.ENTRY_NOT_ADDED)


@pytest.mark.parametrize("seed", range(6))
def test_stepping_and_decoding_agree_on_damaged_manifests(seed: int) -> None:
    chance = random.Random(seed)
    verdicts = set()
    for _ in range(100):
        one = context(format_version=chance.choice(VERSIONS))
        files = [data_file(chance.randrange(1000)) for _ in range(chance.choice((1, 2, 5, 12)))]
        content = manifest(*files, context=one, codec="null")
        if chance.random() < 0.5:
            content = foreign_manifest(content, codec="null")
        content = _damaged(content, chance)
        stepped, decoded = _stepped(content, one), _decoded(content, one)
        assert stepped == decoded, f"seed {seed}"
        verdicts.add(stepped is None)
    assert verdicts == {True, False}


def _damaged(content: bytes, chance: random.Random) -> bytes:
    blocks = list(iter_blocks(content, read_header(content)))
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2))):
        block = chance.choice(blocks)
        place = chance.randrange(block.start, block.stop)
        changed[place] = chance.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    return bytes(changed)


def _stepped(content: bytes, one: ManifestContext) -> object:
    kind = partition_type(one.spec, one.schema)
    try:
        walked = walk_additions(content, kind, one.format_version, one.content)
    except InvalidRequestError:
        return None
    partitions = {repr(partition) for partition in walked.partitions}
    return sorted(walked.paths), walked.added_rows_count, walked.added_size_bytes, partitions


def _decode_strictly(content: bytes) -> None:
    """Decode all entries. Errors: also for a column that stands twice in a map."""
    header = read_header(content)
    decoder = record_decoder(header.metadata["avro.schema"], is_strict=True)
    for block, raw in iter_raw_blocks(content, header):
        position = 0
        for _ in range(block.count):
            _, position = decode_record(decoder, raw, position)


def _decoded(content: bytes, one: ManifestContext) -> object:
    try:
        found = decode_manifest(content).entries
        _decode_strictly(content)
        for entry in found:
            check_addition(entry, one.content, one.format_version)
    except (InvalidMetadataError, InvalidRequestError):
        return None
    files = [entry.data_file for entry in found]
    return (
        sorted(file.file_path for file in files),
        sum(file.record_count for file in files),
        sum(file.file_size_in_bytes for file in files),
        {repr(file.partition) for file in files},
    )
