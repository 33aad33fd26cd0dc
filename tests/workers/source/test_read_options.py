"""Options of reads: what is understood, and what an error says."""

from __future__ import annotations

import pytest

from committer.errors import InvalidFilterError, SettingsError
from committer.iceberg.expressions.expression import EqualTo, Reference
from committer.iceberg.reading.append_stream import StreamLimits, StreamStart
from workers.source.read_options import (
    ReadOptions,
    StreamOptions,
    TimeTravel,
    parse_read_options,
)


def parsed(**options: str) -> ReadOptions:
    return _parsed(options, streaming=False)


def parsed_stream(**options: str) -> ReadOptions:
    return _parsed(options, streaming=True)


def _parsed(options: dict[str, str], *, streaming: bool) -> ReadOptions:
    given = {name.replace("_", "-"): text for name, text in options.items()}
    return parse_read_options({"path": "db.t", **given}, streaming=streaming)


def test_a_name_alone_reads_all_of_the_current_state() -> None:
    assert parsed() == ReadOptions(table="db.t", settings={})


def test_every_option_of_a_batch_is_understood() -> None:
    found = parse_read_options(
        {
            "Table": "db.t$files",
            "columns": "id, carrier ,point.x",
            "metadata-columns": "_file,_pos",
            "filter": "id = 7",
            "push-filters": "true",
            "split-size": "100",
            "lookback": "3",
            "file-open-cost": "0",
            "snapshot-id": "12",
            "catalog.uri": "sqlite:///catalog.db",
        },
        streaming=False,
    )
    assert found == ReadOptions(
        table="db.t$files",
        settings={"catalog.uri": "sqlite:///catalog.db"},
        travel=TimeTravel(snapshot_id=12),
        columns=("id", "carrier", "point.x"),
        metadata_columns=("_file", "_pos"),
        row_filter=EqualTo(Reference("id"), 7),
        push_filters=True,
        split_size=100,
        lookback=3,
        file_open_cost=0,
    )


def test_every_option_of_a_stream_is_understood() -> None:
    found = parsed_stream(
        branch="audit",
        starting_snapshot_id="5",
        streaming_max_files_per_micro_batch="10",
        streaming_max_rows_per_micro_batch="1000",
        streaming_skip_delete_snapshots="true",
        streaming_skip_overwrite_snapshots="true",
    )
    assert found.travel == TimeTravel(branch="audit")
    assert found.stream == StreamOptions(StreamStart(5), StreamLimits(10, 1000), True, True)
    assert parsed_stream(stream_from_timestamp="7").stream.start == StreamStart(None, 7)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"snapshot_id": "1"}, TimeTravel(snapshot_id=1)),
        ({"as_of_timestamp": "1700000000000"}, TimeTravel(as_of_ms=1_700_000_000_000)),
        ({"as_of": "2023-11-14T22:13:20Z"}, TimeTravel(as_of_ms=1_700_000_000_000)),
        ({"branch": "audit"}, TimeTravel(branch="audit")),
        ({"tag": "q1"}, TimeTravel(tag="q1")),
        ({"start_snapshot_id": "1"}, TimeTravel(after=1)),
        ({"start_snapshot_id": "1", "end_snapshot_id": "2"}, TimeTravel(after=1, up_to=2)),
        ({"start_snapshot_id": "1", "branch": "b"}, TimeTravel(branch="b", after=1)),
    ],
)
def test_a_state_of_the_table_is_named_in_one_way(
    options: dict[str, str], expected: TimeTravel
) -> None:
    assert parsed(**options).travel == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snapshot_id": "1", "tag": "q1"}, "`snapshot-id` and `tag` exclude each other"),
        ({"as_of": "1", "branch": "b"}, "`as-of` and `branch` exclude"),
        ({"as_of": "1", "as_of_timestamp": "1"}, "`as-of-timestamp` and `as-of` exclude"),
        ({"start_snapshot_id": "1", "snapshot_id": "2"}, "`start-snapshot-id` and `snapshot-id`"),
        ({"start_snapshot_id": "1", "tag": "q1"}, "`start-snapshot-id` and `tag` exclude"),
        (
            {"start_snapshot_id": "1", "end_snapshot_id": "2", "branch": "b"},
            "`end-snapshot-id` and `branch` exclude",
        ),
        ({"end_snapshot_id": "2"}, "`end-snapshot-id` needs `start-snapshot-id`"),
        ({"snapshot_id": "x"}, "`snapshot-id`: expected a whole number"),
        ({"as_of": "yesterday"}, "option `as-of`: `yesterday`: expected a time such as"),
        ({"split_size": "0"}, "`split-size`: expected a whole number from 1 on"),
        ({"push_filters": "maybe"}, "`push-filters`: expected `false` or `true`"),
        ({"wait": "durable"}, "unknown option `wait` of format `frazil`: expected as-of,"),
        ({"stream_from_timestamp": "1"}, "`stream-from-timestamp` is for spark.readStream"),
        ({"table": "db.other"}, "says `db.other`, but the path is `db.t`"),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parsed(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snapshot_id": "1"}, "`snapshot-id` is for spark.read, not for spark.readStream"),
        (
            {"starting_snapshot_id": "1", "stream_from_timestamp": "1"},
            "`starting-snapshot-id` and `stream-from-timestamp` exclude",
        ),
        ({"streaming_max_files_per_micro_batch": "0"}, "from 1 on, found `0`"),
    ],
)
def test_what_a_stream_cannot_take_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parsed_stream(**options)


def test_a_filter_is_text_of_the_filter_language() -> None:
    with pytest.raises(InvalidFilterError):
        parsed(filter="id ==== 7")


def test_a_table_is_named_with_its_namespace() -> None:
    for options in ({}, {"table": ""}):
        with pytest.raises(SettingsError, match=r'load\("db.flights"\)'):
            parse_read_options(options, streaming=False)
    with pytest.raises(SettingsError, match=r"a name such as `db.flights`, found `t`"):
        parse_read_options({"path": "t"}, streaming=False)
