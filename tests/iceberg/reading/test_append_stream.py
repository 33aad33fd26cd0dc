"""Streams of appended rows over the histories of the fixtures: positions, limits, what is lost.

Every stream is checked against what its snapshots have added, as the manifests of Iceberg Java say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from committer.errors import InvariantError, NotFoundError, UnsupportedError
from committer.iceberg.entry.data_file import ManifestEntryStatus
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.metadata.table_metadata import TableMetadata, parse_table_metadata
from committer.iceberg.reading.append_stream import (
    START,
    AppendStream,
    StreamLimits,
    StreamPosition,
    StreamStart,
)
from committer.iceberg.scan.plan_files import plan_files
from committer.iceberg.scan.scan_filter import ScanFilter
from tests.support.builders.fixtures import expected, read_bytes

APPENDS = "v2_merged_manifests"  # eight appends, of one or two files each
NO_LIMITS = StreamLimits()
ADDED = ManifestEntryStatus.ADDED.value


def metadata_of(name: str) -> TableMetadata:
    return parse_table_metadata(read_bytes(expected(name)["metadata_location"]))


def stream_of(
    metadata: TableMetadata, start: StreamStart | None = None, **skips: bool
) -> AppendStream:
    return AppendStream(
        metadata, metadata.current_snapshot, read_bytes, start or StreamStart(), **skips
    )


def history(metadata: TableMetadata) -> list[int]:
    """Return the ids of the current snapshot and its ancestors, the oldest first."""
    return [one.snapshot_id for one in metadata.branch_history()][::-1]


def files_between(
    stream: AppendStream,
    after: StreamPosition,
    up_to: StreamPosition,
    row_filter: Expression = ALWAYS_TRUE,
) -> list[str]:
    found = ScanFilter(stream.metadata.partition_specs, stream.metadata.current_schema, row_filter)
    return [task.file.file_path for task in stream.between(after, up_to, found)]


def batches(stream: AppendStream, limits: StreamLimits) -> Iterator[list[str]]:
    """Yield the files of each micro-batch, from the beginning to the end, as an engine asks."""
    position = stream.first_position()
    while (found := stream.advance(position, limits)) != position:
        yield files_between(stream, position, found)
        position = StreamPosition.of_json(json.loads(json.dumps(found.to_json())))


def added_by(name: str, snapshot_id: int) -> set[str]:
    return {
        entry["file"]["file_path"]
        for entries in expected(name)["manifest_entries"].values()
        for entry in entries
        if entry["snapshot_id"] == snapshot_id and entry["status"] == ADDED
    }


def with_operations(metadata: TableMetadata, operations: dict[int, str]) -> TableMetadata:
    """Call snapshots of the branch (by their number, from 0) something else than appends."""
    known = {history(metadata)[number]: name for number, name in operations.items()}
    changed = (
        replace(one, summary={**(one.summary or {}), "operation": known[one.snapshot_id]})
        if one.snapshot_id in known
        else one
        for one in metadata.snapshots
    )
    return replace(metadata, snapshots=tuple(changed))


@pytest.mark.parametrize("files_max", [None, 1, 2, 3, 100])
@pytest.mark.parametrize("rows_max", [None, 1, 3, 4, 7, 1000])
def test_every_appended_file_comes_once_whatever_the_limits_are(
    files_max: int | None, rows_max: int | None
) -> None:
    metadata = metadata_of(APPENDS)
    found = [*batches(stream_of(metadata), StreamLimits(files_max, rows_max))]
    rows = {
        task.file.file_path: task.file.record_count
        for task in plan_files(metadata, read=read_bytes)
    }
    files = [path for batch in found for path in batch]
    assert sorted(files) == sorted(rows) and len(set(files)) == len(files) == 13
    for batch in found:
        assert files_max is None or len(batch) <= files_max
        assert rows_max is None or len(batch) == 1 or sum(rows[path] for path in batch) <= rows_max
    # No micro-batch stops before a limit makes it.
    for batch, after in pairwise(found):
        fits = rows_max is None or sum(rows[path] for path in (*batch, after[0])) <= rows_max
        assert not fits or len(batch) == files_max


def test_a_stream_begins_with_all_rows_of_the_oldest_snapshot_and_goes_on_with_appends() -> None:
    metadata = metadata_of("v2_expired")
    stream, ids = stream_of(metadata), history(metadata)
    first = stream.first_position()
    assert first == StreamPosition(ids[0], is_whole=True)
    end = stream.advance(first, NO_LIMITS)
    assert (end.snapshot_id, end.is_complete) == (ids[-1], True)
    whole = {
        task.file.file_path for task in plan_files(metadata, read=read_bytes, snapshot_id=ids[0])
    }
    files = files_between(stream, first, end)
    assert whole < set(files) and len(files) == len(set(files))
    assert set(files) == {task.file.file_path for task in plan_files(metadata, read=read_bytes)}


def test_a_snapshot_to_begin_with_counts_itself() -> None:
    metadata = metadata_of(APPENDS)
    ids = history(metadata)
    stream = stream_of(metadata, StreamStart(snapshot_id=ids[2]))
    first = stream.first_position()
    found = set(files_between(stream, first, stream.advance(first, NO_LIMITS)))
    wanted = {path for each in ids[2:] for path in added_by(APPENDS, each)}
    assert found and wanted <= found
    assert not found & {path for each in ids[:2] for path in added_by(APPENDS, each)}


def test_a_time_begins_with_the_first_snapshot_that_is_not_older() -> None:
    metadata = metadata_of(APPENDS)
    third = metadata.snapshots[2]
    for from_ms in (third.timestamp_ms, metadata.snapshots[1].timestamp_ms + 1):
        stream = stream_of(metadata, StreamStart(from_ms=from_ms))
        assert stream.first_position() == StreamPosition(third.snapshot_id)
    future = stream_of(metadata, StreamStart(from_ms=metadata.last_updated_ms + 1))
    assert future.first_position() == START
    assert future.advance(START, NO_LIMITS) == START
    assert files_between(future, START, START) == []


def test_a_time_before_what_has_expired_is_refused() -> None:
    stream = stream_of(metadata_of("v2_expired"), StreamStart(from_ms=0))
    with pytest.raises(NotFoundError, match=r"begins with 0 ms.*rows before it cannot be told"):
        stream.first_position()
    never_expired = stream_of(metadata_of(APPENDS), StreamStart(from_ms=0))
    assert never_expired.first_position().snapshot_id == history(never_expired.metadata)[0]


def test_a_stream_of_an_empty_table_waits_for_its_first_snapshot() -> None:
    metadata = metadata_of(APPENDS)
    empty = AppendStream(replace(metadata, snapshots=(), refs={}), None, read_bytes)
    assert empty.first_position() == START
    assert empty.advance(START, NO_LIMITS) == START
    stream = stream_of(metadata)
    end = stream.advance(START, NO_LIMITS)
    assert len(files_between(stream, START, end)) == 13


def test_what_a_compaction_rewrites_does_not_come_again() -> None:
    metadata = metadata_of("v2_rewrites")
    ids, appends = (
        history(metadata),
        [one for one in metadata.snapshots if one.operation == "append"],
    )
    kept = stream_of(
        metadata, StreamStart(snapshot_id=ids[0]), skip_deletes=True, skip_overwrites=True
    )
    first = kept.first_position()
    end = kept.advance(first, StreamLimits(files_max=1000))
    assert end.snapshot_id == ids[-1] and end.is_complete
    found = files_between(kept, first, end)
    assert len(found) == sum(int((one.summary or {})["added-data-files"]) for one in appends)
    # A limit is no reason to stop at a snapshot without files.
    assert len([*batches(kept, StreamLimits(files_max=1))]) >= len(found)


@pytest.mark.parametrize("limits", [NO_LIMITS, StreamLimits(files_max=100)])
def test_a_snapshot_that_removes_rows_is_an_error_unless_it_is_to_be_skipped(
    limits: StreamLimits,
) -> None:
    metadata = with_operations(metadata_of(APPENDS), {2: "overwrite", 4: "delete", 5: "replace"})
    ids = history(metadata)
    first = StreamPosition(ids[0])
    with pytest.raises(
        UnsupportedError, match=r'operation `overwrite`.*"streaming-skip-overwrite-'
    ):
        stream_of(metadata).advance(first, limits)
    with pytest.raises(UnsupportedError, match=r'operation `delete`.*"streaming-skip-delete-'):
        stream_of(metadata, skip_overwrites=True).advance(first, limits)
    both = stream_of(metadata, skip_overwrites=True, skip_deletes=True)
    end = both.advance(first, limits)
    assert (end.snapshot_id, end.is_complete) == (ids[-1], True)
    found = files_between(both, first, end)
    skipped = {path for number in (2, 4, 5) for path in added_by(APPENDS, ids[number])}
    assert len(found) == 13 - len(skipped) and not skipped & set(found)


def test_a_snapshot_of_no_known_operation_is_an_error() -> None:
    metadata = with_operations(metadata_of(APPENDS), {2: "transmute"})
    stream = stream_of(metadata, skip_overwrites=True, skip_deletes=True)
    with pytest.raises(UnsupportedError, match="is of operation `transmute`: expected append"):
        stream.advance(stream.first_position(), NO_LIMITS)


def test_a_rolled_back_or_expired_position_is_named() -> None:
    metadata = metadata_of("v2_rollback_cherrypick")
    lost = {one.snapshot_id for one in metadata.snapshots} - set(history(metadata))
    stream = stream_of(metadata)
    for snapshot_id in lost:
        for is_complete in (True, False):
            position = StreamPosition(snapshot_id, is_complete=is_complete)
            with pytest.raises(NotFoundError, match=r"not in the history of snapshot.*rolled back"):
                stream.advance(position, NO_LIMITS)
    with pytest.raises(NotFoundError, match="has read snapshot 7, which has expired"):
        stream.advance(StreamPosition(7, is_complete=True), NO_LIMITS)
    with pytest.raises(NotFoundError, match="begins with snapshot 7, which has expired"):
        stream_of(metadata, StreamStart(snapshot_id=7)).first_position()


def test_a_complete_snapshot_may_expire_a_half_read_one_may_not() -> None:
    metadata = metadata_of(APPENDS)
    ids = history(metadata)
    kept = tuple(one for one in metadata.snapshots if one.snapshot_id != ids[0])
    stream = stream_of(replace(metadata, snapshots=kept))
    end = stream.advance(StreamPosition(ids[0], 1, is_complete=True), NO_LIMITS)
    found = files_between(stream, StreamPosition(ids[0], 1, is_complete=True), end)
    assert not set(found) & added_by(APPENDS, ids[0]) and len(found) == 12
    with pytest.raises(NotFoundError, match="has expired"):
        stream.advance(StreamPosition(ids[0], 0), NO_LIMITS)


def test_positions_count_all_files_whatever_the_filter_is() -> None:
    metadata = metadata_of(APPENDS)
    # All files are of one snapshot then, and the filter leaves out some of the first.
    kept = tuple(one for one in metadata.snapshots if one is metadata.current_snapshot)
    metadata = replace(metadata, snapshots=kept)
    stream = stream_of(metadata)
    first = stream.first_position()
    limits = StreamLimits(files_max=1)
    row_filter = parse_where("id < 12")
    wanted = {
        task.file.file_path for task in plan_files(metadata, read=read_bytes, filter=row_filter)
    }
    position, whole = first, list[str]()
    while (end := stream.advance(position, limits)) != position:
        everything = files_between(stream, position, end)
        found = files_between(stream, position, end, row_filter)
        assert found == [path for path in everything if path in wanted]
        position, whole = end, [*whole, *everything]
    assert wanted < set(whole)


def test_an_offset_survives_json_and_another_version_is_refused() -> None:
    for position in (START, StreamPosition(7, 3), StreamPosition(7, 3, True, True)):
        assert StreamPosition.of_json(json.loads(json.dumps(position.to_json()))) == position
    assert START.to_json()["snapshot_id"] == -1
    with pytest.raises(UnsupportedError, match="expected one of this version"):
        StreamPosition.of_json({**START.to_json(), "version": 2})


def test_an_end_before_the_start_is_never_read() -> None:
    metadata = metadata_of(APPENDS)
    stream, ids = stream_of(metadata), history(metadata)
    done = StreamPosition(ids[1], 2, is_complete=True)
    with pytest.raises(NotFoundError):
        files_between(stream, done, StreamPosition(ids[0], 1, is_complete=True))
    with pytest.raises(InvariantError, match="is not behind"):
        files_between(stream, done, StreamPosition(ids[1], 1))
