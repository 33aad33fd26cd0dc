"""Joining manifests: blocks are moved, small ones gathered, and every reader sees the sum."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path

import fastavro
import pytest

from committer.errors import InvariantError
from committer.iceberg.avro.container import iter_blocks, read_header
from committer.iceberg.entry.data_file import DataFile, ManifestContent
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_writer import EncodedManifest, ManifestContext
from committer.iceberg.manifest.partition_summary import summarize_partitions
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.splice.manifest_splice import ManifestPart, join_manifests
from tests.support.iceberg.manifest_builders import (
    SCORE,
    context,
    data_file,
    delete_file,
    foreign_manifest,
    manifest,
    walk,
)

NEW_SYNC = b"the new sync mrk"
SNAPSHOT_ID = 2**62 + 5


def part(content: bytes, one: ManifestContext) -> ManifestPart:
    return ManifestPart(content, walk(content, one))


def join(*contents: bytes, context: ManifestContext, codec: str = "deflate") -> EncodedManifest:
    return join_manifests(
        [part(content, context) for content in contents],
        context,
        sync=NEW_SYNC,
        codec=codec,
        snapshot_id=SNAPSHOT_ID if context.format_version == 1 else None,
    )


def block_contents(content: bytes) -> list[tuple[int, bytes]]:
    header = read_header(content)
    return [(b.count, content[b.start : b.stop]) for b in iter_blocks(content, header)]


def files(start: int, stop: int) -> list[DataFile]:
    return [data_file(number) for number in range(start, stop)]


def test_blocks_of_eight_entries_or_more_are_moved_byte_for_byte() -> None:
    one = context()
    first = manifest(*files(700, 708), context=one, sync=b"a" * 16)
    second = manifest(*files(0, 700), context=one, sync=b"b" * 16)
    joined = join(first, second, context=one)
    blocks = block_contents(joined.content)
    # In the order of the parts: what is compressed anew would come behind.
    assert blocks == block_contents(first) + block_contents(second)
    assert len(blocks) > 3
    assert read_header(joined.content).sync == NEW_SYNC


def test_smaller_blocks_are_compressed_together() -> None:
    one = context()
    small = [manifest(*files(7 * n, 7 * n + 7), context=one) for n in range(10)]
    joined = join(*small, context=one)
    assert [count for count, _ in block_contents(joined.content)] == [70]
    singles = [manifest(data_file(n), context=one) for n in range(1000)]
    counts = [count for count, _ in block_contents(join(*singles, context=one).content)]
    assert sum(counts) == 1000
    assert min(counts[:-1]) > 50


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_the_result_is_the_sum_of_its_parts(format_version: int) -> None:
    one = context(format_version=format_version)
    parts = [files(0, 300), files(300, 301), files(301, 310), []]
    joined = join(*(manifest(*group, context=one) for group in parts), context=one)
    wanted = files(0, 310)
    decoded = decode_manifest(joined.content)
    assert sorted(e.data_file.file_path for e in decoded.entries) == [f.file_path for f in wanted]
    by_path = {entry.data_file.file_path: entry.data_file for entry in decoded.entries}
    assert [by_path[file.file_path] for file in wanted] == wanted
    assert joined.added_files_count == 310
    assert joined.added_rows_count == sum(file.record_count for file in wanted)
    assert (joined.existing_files_count, joined.deleted_rows_count) == (0, 0)
    assert joined.min_sequence_number is None
    together = walk(manifest(*wanted, context=one), one)
    kind = partition_type(one.spec, one.schema)
    assert joined.partitions == summarize_partitions(kind, together.partitions)
    assert next(fastavro.reader(BytesIO(joined.content)))["status"] == 1


def test_ids_stay_null_for_the_list_to_give() -> None:
    one = context(format_version=3)
    joined = join(manifest(*files(0, 20), context=one), context=one)
    for entry in decode_manifest(joined.content).entries:
        assert (entry.snapshot_id, entry.sequence_number, entry.data_file.first_row_id) == (
            None,
            None,
            None,
        )


def test_version_1_gets_its_snapshot_id_in_every_entry() -> None:
    one = context(format_version=1)
    ours = manifest(*files(0, 100), context=one)
    theirs = foreign_manifest(manifest(*files(100, 130), context=one), drop=140)
    joined = join(ours, theirs, context=one)
    decoded = decode_manifest(joined.content)
    assert len(decoded.entries) == 130
    assert {entry.snapshot_id for entry in decoded.entries} == {SNAPSHOT_ID}
    with pytest.raises(InvariantError, match="snapshot id"):
        join_manifests([part(ours, one)], one, sync=NEW_SYNC)


def test_maps_without_sizes_are_moved_too() -> None:
    one = context()
    theirs = foreign_manifest(manifest(*files(0, 50), context=one))
    joined = join(theirs, context=one)
    assert block_contents(joined.content) == block_contents(theirs)
    assert [e.data_file for e in decode_manifest(joined.content).entries] == files(0, 50)


def test_another_layout_is_encoded_anew() -> None:
    one = context()
    theirs = foreign_manifest(manifest(*files(0, 50), context=one), drop=143)
    joined = join(theirs, manifest(*files(50, 60), context=one), context=one)
    found = {e.data_file.file_path: e.data_file for e in decode_manifest(joined.content).entries}
    assert [found[file.file_path] for file in files(0, 60)] == files(0, 60)
    assert walk(joined.content, one).is_ours


@pytest.mark.parametrize("codec", ["null", "zstandard", "snappy"])
def test_another_codec_is_inflated_and_compressed_anew(codec: str) -> None:
    one = context()
    other = manifest(*files(0, 500), context=one, codec=codec)
    joined = join(other, context=one)
    assert read_header(joined.content).codec == "deflate"
    assert [e.data_file for e in decode_manifest(joined.content).entries] == files(0, 500)


def test_delete_manifests_are_joined_like_others() -> None:
    deletes = context(content=ManifestContent.DELETES)
    wanted = [delete_file(number) for number in range(12)]
    joined = join(
        manifest(*wanted[:9], context=deletes),
        manifest(*wanted[9:], context=deletes),
        context=deletes,
    )
    decoded = decode_manifest(joined.content)
    assert decoded.content == ManifestContent.DELETES
    assert [entry.data_file for entry in decoded.entries] == wanted


def test_summaries_of_floats_are_those_of_all_parts() -> None:
    one = context(fields=SCORE)
    groups = [0.0], [float("nan")], [None, -0.0]
    contents = [
        manifest(*(data_file(partition=(value,)) for value in group), context=one)
        for group in groups
    ]
    (summary,) = join(*contents, context=one).partitions
    assert (summary.contains_null, summary.contains_nan) == (True, True)
    assert (summary.lower_bound, summary.upper_bound) == (b"\0" * 7 + b"\x80", b"\0" * 8)


@pytest.mark.parametrize("format_version", [1, 2])
def test_pyiceberg_reads_the_joined_manifest(format_version: int, tmp_path: Path) -> None:
    from tests.support.iceberg.foreign_reader import pyiceberg_entries

    one = context(format_version=format_version)
    joined = join(
        manifest(*files(0, 100), context=one),
        manifest(*files(100, 103), context=one),
        foreign_manifest(manifest(*files(103, 120), context=one)),
        context=one,
    )
    path = tmp_path / "joined.avro"
    path.write_bytes(joined.content)
    found = pyiceberg_entries(path, snapshot_id=SNAPSHOT_ID, sequence_number=3)
    by_path = {entry.data_file.file_path: entry for entry in found}
    assert len(found) == len(by_path) == 120
    for file in files(0, 120):
        read = by_path[file.file_path]
        assert read.snapshot_id == SNAPSHOT_ID
        assert read.data_file.record_count == file.record_count
        assert read.data_file.upper_bounds == file.upper_bounds
        assert read.data_file.value_counts == file.value_counts


# --- Sort orders ---------------------------------------------------------------------------------

# The fast way knows shorter paths only.
LONG_PATH = f"s3://bucket/{'a' * 9_000}/"


def unsorted(numbers: range) -> list[DataFile]:
    """Build files of which some claim to be sorted, some to be unsorted, and some neither."""
    orders = (None, 0, 3, None)
    return [data_file(number, sort_order_id=orders[number % 4]) for number in numbers]


@pytest.mark.thorough
@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.parametrize("made", ["ours", "foreign", "plain", "without the field", "decoded"])
def test_files_that_name_no_sort_order_are_unsorted(format_version: int, made: str) -> None:
    one = context(format_version=format_version)
    groups = [unsorted(range(2)), unsorted(range(2, 7)), unsorted(range(7, 400))]
    if made == "decoded":
        last = groups[-1][-1]
        groups[-1][-1] = replace(last, file_path=LONG_PATH + last.file_path, sort_order_id=None)
    contents = [manifest(*group, context=one) for group in groups]
    if made == "plain":
        contents = [manifest(*group, context=one, codec="null") for group in groups]
    elif made in ("foreign", "without the field"):
        drop = 140 if made == "without the field" else 0
        contents = [foreign_manifest(content, drop=drop) for content in contents]
    joined = decode_manifest(join(*contents, context=one).content)
    found = {entry.data_file.file_path: entry.data_file for entry in joined.entries}
    assert len(found) == 400
    for file in (file for group in groups for file in group):
        order = 0 if made == "without the field" else file.sort_order_id or 0
        assert found[file.file_path] == replace(file, sort_order_id=order)


def test_only_blocks_with_files_without_a_sort_order_are_compressed_anew() -> None:
    one = context()
    named, mixed = files(0, 700), unsorted(range(700, 708))
    first, second = manifest(*named, context=one), manifest(*mixed, context=one)
    blocks = block_contents(join(first, second, context=one).content)
    assert blocks[: len(block_contents(first))] == block_contents(first)
    assert len(blocks) == len(block_contents(first)) + 1


def test_position_deletes_have_no_sort_order() -> None:
    one = context(content=ManifestContent.DELETES)
    ours = manifest(*(delete_file(number) for number in range(20)), context=one)
    for content in (ours, foreign_manifest(ours, drop=143)):
        joined = decode_manifest(join(content, context=one).content)
        assert {entry.data_file.sort_order_id for entry in joined.entries} == {None}
