"""Options of Delta Lake and of Iceberg's own runtime are taken for ours, or answered with ours."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from committer.errors import SettingsError
from workers.settings.options import WriteOptions, parse_options
from workers.source.read_options import ReadOptions, parse_read_options


def written(options: Mapping[str, str], *, overwrite: bool = False) -> WriteOptions:
    return parse_options({"table": "db.t", **options}, streaming=False, overwrite=overwrite)


def read(options: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    return parse_read_options({"table": "db.t", **options}, streaming=streaming)


def test_what_means_the_same_is_taken_for_ours() -> None:
    overwrite = written({"partitionOverwriteMode": "DYNAMIC"}, overwrite=True).overwrite
    assert overwrite is not None and overwrite.mode == "dynamic"
    stream = read({"maxFilesPerTrigger": "7", "ignoreDeletes": "true"}, streaming=True).stream
    assert (stream.limits.files_max, stream.skip_deletes) == (7, True)


def test_both_names_of_one_option_are_refused_where_they_differ() -> None:
    both = {"partitionOverwriteMode": "dynamic", "overwrite-mode": "static"}
    with pytest.raises(SettingsError, match="`partitionOverwriteMode` and `overwrite-mode` mean"):
        written(both, overwrite=True)
    assert written({**both, "overwrite-mode": "dynamic"}, overwrite=True).overwrite is not None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("replaceWhere", r'mode\("overwrite"\) with option\("overwrite-filter"'),
        ("REPLACEWHERE", r"`replaceWhere`: use mode"),
        ("overwriteSchema", "frazil table evolve"),
        ("txnAppId", r'option\("producer".*option\("epoch"'),
        ("txnVersion", r'option\("producer"'),
        ("userMetadata", "queryName"),
        ("snapshot-property.job", "`snapshot-property.job`: .*queryName"),
        ("target-file-size-bytes", "frazil table set db.t write.target-file-size-bytes="),
        ("compression-codec", "write.parquet.compression-codec"),
        ("fanout-enabled", "leave it out"),
        ("optimizeWrite", r"frazil.spark.distribute\("),
        ("partitionBy", r'option\("partition-by"'),
    ],
)
def test_an_option_of_others_writes_names_what_does_its_work(name: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        written({name: "x"})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("versionAsOf", r'option\("snapshot-id".*option\("branch".*option\("tag"'),
        ("timestampAsOf", r'option\("as-of", "2026-05-01T12:00:00Z"\), which is UTC'),
        ("startingVersion", r'option\("starting-snapshot-id"'),
        ("startingTimestamp", r'option\("stream-from-timestamp"'),
        ("readChangeFeed", "`start-snapshot-id` and `end-snapshot-id`"),
        ("skipChangeCommits", "streaming-skip-overwrite-snapshots"),
        ("vectorization-enabled", "leave it out"),
        ("batch-size", "leave it out"),
    ],
)
def test_an_option_of_others_reads_names_what_does_its_work(name: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read({name: "1"})


def test_an_option_of_reads_is_none_of_a_write() -> None:
    with pytest.raises(SettingsError, match="unknown option `maxfilespertrigger`"):
        written({"maxFilesPerTrigger": "7"})
