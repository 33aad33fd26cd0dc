"""Merged manifests say of every live file what the manifests said that they replace."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError, InvariantError, UnsupportedError
from committer.iceberg.avro.container import iter_blocks, iter_raw_blocks, read_header
from committer.iceberg.entry.data_file import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.manifest.manifest_writer import (
    EncodedManifest,
    ManifestContext,
    encode_manifest,
    manifest_file,
)
from committer.iceberg.manifest.partition_summary import summarize_partitions
from committer.iceberg.metadata.table_metadata import TableMetadata, parse_table_metadata
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.schema.schema import Schema
from committer.iceberg.splice.manifest_clusters import ManifestClusters
from committer.iceberg.splice.manifest_merge import ManifestMerge
from committer.plan.batch.batch import manifest_context
from tests.support.builders.fixtures import metadata_files_of, read_bytes, table_names
from tests.support.iceberg.manifest_builders import (
    SCORE,
    as_text,
    context,
    data_file,
    deletion_vector,
    foreign_manifest,
    manifest_of_raw,
)

ADDED, EXISTING, DELETED = (
    ManifestEntryStatus.ADDED,
    ManifestEntryStatus.EXISTING,
    ManifestEntryStatus.DELETED,
)
SYNC = b"the merged sync "
COMMIT_ID = 2**62 + 7
VERSIONS = pytest.mark.parametrize("format_version", [1, 2, 3])


@dataclass(frozen=True)
class Source:
    """A manifest as a head lists it."""

    row: ManifestFile
    content: bytes

    @property
    def live(self) -> list[ManifestEntry]:
        decoded = decode_manifest(self.content, manifest_file=self.row)
        return [entry for entry in decoded.entries if entry.is_live]


def source(
    *entries: ManifestEntry,
    context: ManifestContext,
    number: int = 1,
    codec: str = "deflate",
    first_row_id: int | None = None,
) -> Source:
    """Build a manifest that commit `number` has added."""
    encoded = encode_manifest(entries, context, codec=codec, sync=bytes([number % 256]) * 16)
    row = manifest_file(
        encoded,
        context,
        manifest_path=f"s3://bucket/db/t/metadata/{number}-m0.avro",
        snapshot_id=2**61 + number,
        sequence_number=number if context.format_version > 1 else 0,
    )
    if context.format_version > 2 and context.content is ManifestContent.DATA:
        row = replace(row, first_row_id=10_000 * number if first_row_id is None else first_row_id)
    return Source(row, encoded.content)


def added(*numbers: int, snapshot_id: int | None = None) -> list[ManifestEntry]:
    return [ManifestEntry(ADDED, snapshot_id, None, None, data_file(one)) for one in numbers]


def merge(
    sources: Iterable[Source], context: ManifestContext, *, codec: str = "deflate"
) -> EncodedManifest:
    merging = ManifestMerge(context, codec=codec)
    for one in sources:
        for _ in merging.add(one.row, one.content):
            pass
    return merging.finish(SYNC)


def listed(encoded: EncodedManifest, context: ManifestContext) -> Source:
    """Return the merged manifest as the next commit lists it."""
    row = manifest_file(
        encoded,
        context,
        manifest_path="s3://bucket/db/t/metadata/merged-m0.avro",
        snapshot_id=COMMIT_ID,
        sequence_number=900 if context.format_version > 1 else 0,
    )
    if context.format_version > 2 and context.content is ManifestContent.DATA:
        row = replace(row, first_row_id=5_000_000)
    return Source(row, encoded.content)


def by_path(entries: Iterable[ManifestEntry]) -> dict[tuple[str, int | None], ManifestEntry]:
    """Return entries by their identity, whatever order or status they have."""
    live = list(entries)
    found = {
        (entry.data_file.file_path, entry.data_file.content_offset): replace(entry, status=EXISTING)
        for entry in live
    }
    assert len(found) == len(live)
    return found


def _sorted(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    return [entry for _, entry in sorted(by_path(entries).items(), key=lambda pair: str(pair[0]))]


def assert_same(encoded: EncodedManifest, sources: Sequence[Source], one: ManifestContext) -> None:
    """Check that the merged manifest, read back, and its row match the sources."""
    merged = listed(encoded, one)
    wanted = [entry for each in sources for entry in each.live]
    raw = decode_manifest(encoded.content).entries
    assert {entry.status for entry in raw} <= {EXISTING}
    assert None not in {entry.snapshot_id for entry in raw}
    assert as_text(_sorted(merged.live)) == as_text(_sorted(wanted))
    row = merged.row
    assert (row.added_files_count, row.deleted_files_count) == (0, 0)
    assert (row.added_rows_count, row.deleted_rows_count) == (0, 0)
    assert row.existing_files_count == len(wanted)
    assert row.existing_rows_count == sum(entry.data_file.record_count for entry in wanted)
    numbers = [entry.sequence_number or 0 for entry in wanted]
    assert row.min_sequence_number == min(numbers, default=row.sequence_number)
    kind = partition_type(one.spec, one.schema)
    assert row.partitions == summarize_partitions(
        kind, [entry.data_file.partition for entry in wanted]
    )


# --- What entries say ----------------------------------------------------------------------------


@VERSIONS
def test_additions_become_existing_entries_with_the_ids_of_their_commits(
    format_version: int,
) -> None:
    one = context(format_version=format_version)
    sources = [source(*added(n, n + 500), context=one, number=n) for n in range(1, 120)]
    merged = merge(sources, one)
    assert_same(merged, sources, one)
    entries = {e.data_file.file_path: e for e in decode_manifest(merged.content).entries}
    entry = entries[data_file(507).file_path]
    assert entry.snapshot_id == 2**61 + 7
    assert entry.sequence_number == (None if format_version == 1 else 7)
    if format_version == 3:
        assert entry.data_file.first_row_id == 70_000 + data_file(7).record_count


@VERSIONS
def test_entries_that_were_merged_before_keep_their_ids_and_their_blocks(
    format_version: int,
) -> None:
    one = context(format_version=format_version)
    first = [source(*added(*range(n, n + 40)), context=one, number=n) for n in range(1, 400, 40)]
    once = listed(merge(first, one), one)
    later = source(*added(1000), context=one, number=401)
    twice = merge([later, once], one)
    assert_same(twice, [*first, later], one)
    assert set(blocks(once.content)) <= set(blocks(twice.content))


def blocks(content: bytes) -> list[bytes]:
    return [
        content[block.start : block.stop] for block in iter_blocks(content, read_header(content))
    ]


@VERSIONS
def test_deleted_entries_are_left_out(format_version: int) -> None:
    one = context(format_version=format_version)
    mixed = [
        ManifestEntry(status, 40 + number, 3, 2, data_file(number))
        for number, status in enumerate([DELETED, EXISTING, DELETED, DELETED, EXISTING])
    ]
    gone = ManifestEntry(DELETED, 50, 3, 2, data_file(9, partition=("only here", 1)))
    sources = [
        source(*mixed, *added(10, 11), context=one, number=8),
        source(gone, *added(12), context=one, number=9),
    ]
    merged = merge(sources, one)
    assert_same(merged, sources, one)
    assert merged.existing_files_count == 5


def test_a_manifest_of_nothing_but_deleted_entries_merges_to_nothing() -> None:
    one = context()
    sources = [source(ManifestEntry(DELETED, 5, 1, 1, data_file(1)), context=one)]
    merged = merge(sources, one)
    assert (merged.existing_files_count, merged.min_sequence_number) == (0, None)
    assert decode_manifest(merged.content).entries == ()


@pytest.mark.parametrize("format_version", [2, 3])
def test_an_added_entry_with_a_number_of_its_own_keeps_it(format_version: int) -> None:
    # Iceberg Java's rewrites add files with an explicit, older data sequence number.
    one = context(format_version=format_version)
    entry = ManifestEntry(ADDED, None, 2, None, data_file(1))
    sources = [source(entry, *added(2), context=one, number=30)]
    merged = merge(sources, one)
    assert_same(merged, sources, one)
    assert merged.min_sequence_number == 2


def test_row_ids_run_on_over_live_entries_without_one() -> None:
    one = context(format_version=3)
    kept = ManifestEntry(EXISTING, 4, 2, 2, data_file(1, first_row_id=77))
    inherits = ManifestEntry(EXISTING, 4, 2, 2, data_file(2))
    gone = ManifestEntry(DELETED, 4, 2, 2, data_file(3))
    sources = [
        source(*added(4), kept, gone, inherits, *added(5), context=one, number=6),
        source(*added(6), context=one, number=7, first_row_id=0),
    ]
    merged = merge(sources, one)
    assert_same(merged, sources, one)
    ids = [entry.data_file.first_row_id for entry in decode_manifest(merged.content).entries]
    assert ids == [60_000, 77, 60_000 + 104, 60_000 + 104 + 102, 0]


def test_data_without_row_ids_in_version_3_is_not_merged() -> None:
    one = context(format_version=3)
    without = source(*added(1), context=one)
    with pytest.raises(InvariantError, match="row ids"):
        merge([Source(replace(without.row, first_row_id=None), without.content)], one)


def test_deletion_vectors_and_equality_deletes_are_merged_among_themselves() -> None:
    one = context(format_version=3, content=ManifestContent.DELETES)
    sources = [
        source(
            *(ManifestEntry(ADDED, None, None, None, deletion_vector(m)) for m in (n, n + 1)),
            context=one,
            number=n,
        )
        for n in range(1, 40, 2)
    ]
    assert_same(merge(sources, one), sources, one)

    clusters = ManifestClusters(one)
    for each in sources:
        clusters.add_all(each.row, each.content)
    (clustered,) = clusters.manifests(1_000_000, lambda: SYNC)
    assert_same(clustered, sources, one)


def test_an_existing_entry_without_a_sequence_number_is_refused() -> None:
    one = context(fields=())
    good = source(ManifestEntry(ADDED, None, None, None, unpartitioned(1)), context=one)
    # Status ADDED becomes EXISTING; its numbers stay null, which only an addition may leave so.
    broken = manifest_of_raw((1, b"\0" + decode_raw(good.content)[1:]), context=one)
    with pytest.raises(InvalidMetadataError, match="sequence number"):
        merge([Source(good.row, broken)], one)


def unpartitioned(number: int, **changes: object) -> DataFile:
    return data_file(number, partition=(), **changes)


def decode_raw(content: bytes) -> bytes:
    ((_, raw),) = iter_raw_blocks(content, read_header(content))
    return raw


# --- Other writers -------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "snappy"])
def test_other_codecs_are_compressed_anew(codec: str) -> None:
    one = context()
    entries = [ManifestEntry(EXISTING, 3, 2, 2, data_file(n)) for n in range(300)]
    sources = [source(*entries, context=one, codec=codec), source(*added(500), context=one)]
    merged = merge(sources, one)
    assert read_header(merged.content).codec == "deflate"
    assert_same(merged, sources, one)


@VERSIONS
@pytest.mark.parametrize("drop", [0, 140])
def test_maps_without_sizes_and_other_layouts_are_merged_too(
    format_version: int, drop: int
) -> None:
    one = context(format_version=format_version)
    ours = [source(*added(*range(n, n + 50)), context=one, number=n + 1) for n in range(0, 200, 50)]
    theirs = [Source(each.row, foreign_manifest(each.content, drop=drop)) for each in ours]
    assert_same(merge(theirs, one), theirs, one)


def test_a_manifest_from_before_an_upgrade_is_written_in_the_new_version() -> None:
    old = source(*added(1, 2, snapshot_id=9), context=context(format_version=1), number=3)
    for format_version in (2, 3):
        one = context(format_version=format_version)
        row = replace(old.row, first_row_id=100 if format_version == 3 else None)
        sources = [Source(row, old.content), source(*added(3), context=one, number=4)]
        merged = merge(sources, one)
        assert_same(merged, sources, one)
        assert merged.min_sequence_number == 0


def test_values_of_a_column_that_no_schema_has_any_more_are_not_lost() -> None:
    one = context(fields=SCORE)
    sources = [
        source(ManifestEntry(ADDED, None, None, None, data_file(1, partition=(1.5,))), context=one)
    ]
    without = Schema(one.schema.fields[:3], 9)
    with pytest.raises(UnsupportedError, match="`score`"):
        merge(sources, replace(one, schema=without))


def with_sizes(said: bytes) -> Source:
    """Build two existing entries in one block; `said` replaces the bytes of the first map of each,
    {1: 5, 2: 6}.
    """
    one = context(fields=())
    entries = [
        ManifestEntry(EXISTING, 3, 2, 2, unpartitioned(n, column_sizes={1: 5, 2: 6}))
        for n in range(2)
    ]
    whole = source(*entries, context=one)
    raw = decode_raw(whole.content)
    right = b"\x02\x03\x08\x02\x0a\x04\x0c\0"
    assert raw.count(right) == 2
    return Source(whole.row, manifest_of_raw((2, raw.replace(right, said)), context=one))


def test_a_map_in_several_blocks_is_read_to_its_end() -> None:
    found = with_sizes(b"\x02\x01\x04\x02\x0a\x01\x04\x04\x0c\0")
    assert [entry.data_file.column_sizes for entry in found.live] == [{1: 5, 2: 6}] * 2
    one = context(fields=())
    assert_same(merge([found], one), [found], one)


@pytest.mark.parametrize(
    "said",
    [
        b"\x02\x03\x06\x02\x0a\x04\x0c\0",  # a byte too few
        b"\x02\x01\x08\x02\x0a\x04\x0c\0",  # a pair too many: who jumps does not see it
    ],
)
def test_a_map_of_another_size_than_it_says_is_found(said: bytes) -> None:
    with pytest.raises(InvalidMetadataError):
        merge([with_sizes(said)], context(fields=()))


def test_truncated_blocks_are_refused() -> None:
    one = context(fields=())
    entries = [ManifestEntry(EXISTING, 3, 2, 2, unpartitioned(n)) for n in range(2)]
    whole = source(*entries, context=one)
    raw = decode_raw(whole.content)
    for stop in range(1, len(raw)):
        broken = manifest_of_raw((2, raw[:stop]), context=one)
        with pytest.raises(InvalidMetadataError):
            merge([Source(whole.row, broken)], one)


@pytest.mark.simulation
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_any_mixture_reads_back_as_before(data: st.DataObject) -> None:
    format_version = data.draw(st.sampled_from([1, 2, 3]))
    one = context(format_version=format_version)
    number = 0
    sources = []
    for commit in range(1, data.draw(st.integers(1, 6)) + 1):
        entries = []
        for _ in range(data.draw(st.sampled_from([0, 1, 2, 9]))):
            number += 1
            entries.append(data.draw(_entry(number, format_version)))
        codec, drop = data.draw(
            st.sampled_from([("deflate", None), ("snappy", None), ("null", 0), ("null", 140)])
        )
        found = source(*entries, context=one, number=commit, codec=codec)
        if drop is not None:
            found = Source(found.row, foreign_manifest(found.content, drop=drop))
        sources.append(found)
    merged = merge(sources, one)
    assert_same(merged, sources, one)
    again = listed(merged, one)
    assert_same(merge([again], one), sources, one)


@st.composite
def _entry(draw: st.DrawFn, number: int, format_version: int) -> ManifestEntry:
    maps = st.sampled_from([None, {}, {1: 5}, {7: 300}, {n: 3 * n for n in range(70)}])
    bounds = st.sampled_from([None, {}, {1: b"a"}, {300: b"b" * 90, 2: b""}])
    file = data_file(
        number,
        partition=(draw(st.sampled_from(["a", "b" * 70, None])), draw(st.sampled_from([1, None]))),
        record_count=draw(st.sampled_from([0, 63, 64, 2**40])),
        column_sizes=draw(maps),
        nan_value_counts=draw(maps),
        lower_bounds=draw(bounds),
        key_metadata=draw(st.none() | st.just(b"key")),
        split_offsets=draw(st.none() | st.just((4, 2**40)) | st.just(tuple(range(90)))),
        sort_order_id=draw(st.none() | st.just(1)),
        first_row_id=draw(st.none() | st.integers(0, 2**50)) if format_version == 3 else None,
    )
    status = draw(st.sampled_from([ADDED, ADDED, EXISTING, DELETED]))
    if status is ADDED:
        snapshot_id = draw(st.none() | st.just(2**60))
        return ManifestEntry(ADDED, snapshot_id, None, None, replace(file, first_row_id=None))
    return ManifestEntry(status, 2**60 + number, number, number + 1, file)


# --- Manifests of the reference implementation ---------------------------------------------------


# Its partition values cannot be read: a writer's fault that `test_manifest.py` tells of.
UNREADABLE = "v2_identity_fixed_java_quirk"


@pytest.mark.thorough
@pytest.mark.parametrize("table", [one for one in table_names() if one != UNREADABLE])
def test_manifests_of_the_reference_implementation_are_merged_entry_for_entry(table: str) -> None:
    metadata = _latest(table)
    for snapshot in metadata.snapshots[-8:]:
        if snapshot.manifest_list is None:
            continue
        groups: dict[tuple[ManifestContent, int], list[ManifestFile]] = defaultdict(list)
        for row in decode_manifest_list(read_bytes(snapshot.manifest_list)).rows:
            is_data = row.content is ManifestContent.DATA
            if metadata.format_version < 3 or not is_data or row.first_row_id is not None:
                groups[row.content, row.partition_spec_id].append(row)
        for rows in groups.values():
            sources = [Source(row, read_bytes(row.manifest_path)) for row in rows]
            one = manifest_context(metadata, rows[0].partition_spec_id, rows[0].content)
            merged = merge(sources, one)
            assert_same(merged, sources, one)
            assert_same(merge([listed(merged, one)], one), sources, one)


def _latest(table: str) -> TableMetadata:
    newest = max(
        metadata_files_of(table), key=lambda one: (one["last-updated-ms"], len(one["snapshots"]))
    )
    return parse_table_metadata(json.dumps(newest).encode())


# --- Other readers -------------------------------------------------------------------------------


@VERSIONS
def test_fastavro_reads_the_merged_manifest(format_version: int) -> None:
    one = context(format_version=format_version)
    sources = [source(*added(n, n + 500), context=one, number=n) for n in range(1, 100)]
    records = list(fastavro.reader(BytesIO(merge(sources, one).content)))
    wanted = by_path(entry for each in sources for entry in each.live)
    assert len(records) == len(wanted)
    for record in records:
        file = record["data_file"]
        entry = wanted[file["file_path"], None]
        assert (record["status"], record["snapshot_id"]) == (0, entry.snapshot_id)
        assert file["record_count"] == entry.data_file.record_count
        assert {p["key"]: p["value"] for p in file["upper_bounds"]} == entry.data_file.upper_bounds
        if format_version > 1:
            numbers = record["sequence_number"], record["file_sequence_number"]
            assert numbers == (entry.sequence_number, entry.file_sequence_number)
        if format_version > 2:
            assert file["first_row_id"] == entry.data_file.first_row_id


@pytest.mark.parametrize("format_version", [1, 2])
def test_pyiceberg_reads_the_merged_manifest(format_version: int, tmp_path: Path) -> None:
    from tests.support.iceberg.foreign_reader import pyiceberg_entries

    one = context(format_version=format_version)
    sources = [source(*added(n, n + 500), context=one, number=n) for n in range(1, 100)]
    path = tmp_path / "merged.avro"
    path.write_bytes(merge(sources, one).content)
    wanted = by_path(entry for each in sources for entry in each.live)
    found = pyiceberg_entries(path, snapshot_id=COMMIT_ID, sequence_number=900)
    assert len(found) == len(wanted)
    for entry in found:
        before = wanted[entry.data_file.file_path, None]
        assert entry.snapshot_id == before.snapshot_id
        assert entry.data_file.lower_bounds == before.data_file.lower_bounds
        if format_version > 1:
            assert entry.sequence_number == before.sequence_number
