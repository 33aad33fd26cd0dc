"""Rows that are distributed before they are written: the files that a table asks for, as Iceberg's
own writer makes them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.scan.plan_files import plan_files
from frazil.spark import distribute
from tests.integration.changes.harness import ChangesHarness
from tests.support.integration.real_harness import CATALOG
from workers.files.file_system import local_path

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves the connection of a `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]

COLUMNS = "id BIGINT, region STRING, at TIMESTAMP"
SPEC = "days(at), bucket(3, id), truncate(1, region)"
ROWS = 600


def rows(harness: ChangesHarness, tasks: int = 4) -> Any:
    """Return rows that lie in each task in every partition."""
    return harness.spark.range(0, ROWS, 1, tasks).selectExpr(
        "id * 7919 % 600 AS id",
        "concat(substring('ewn', int(id % 3) + 1, 1), id % 5) AS region",
        "timestamp_seconds(id % 4 * 86400 - 3) AS at",
    )


def write(harness: ChangesHarness, frame: Any, table: str, **options: str) -> None:
    writer = frame.write.format("frazil").mode("append").option("wait", "committed")
    writer.options(**harness.settings())
    for name, value in options.items():
        writer = writer.option(name.replace("_", "-"), value)
    writer.save(table)


def live(harness: ChangesHarness, table: str) -> list[DataFile]:
    def read(location: str) -> bytes:
        return local_path(location).read_bytes()

    return [task.file for task in plan_files(harness.metadata(table), read=read)]


def files_of_partitions(harness: ChangesHarness, table: str) -> Counter[tuple[object, ...]]:
    return Counter(file.partition for file in live(harness, table))


@pytest.mark.heavy
def test_rows_of_a_partition_are_one_file_as_icebergs_writer_makes_them(
    harness: ChangesHarness,
) -> None:
    about: dict[str, Any] = {"write_distribution__mode": "hash"}
    for name in ("ours", "theirs", "plain"):
        harness.create(f"dist.{name}", COLUMNS, partitioned_by=SPEC, **about)
    frame = rows(harness)
    frame.writeTo(f"{CATALOG}.dist.theirs").append()
    # The option is a check here: the mark of the rows has come to the writer.
    write(harness, distribute(frame, "dist.ours"), "dist.ours", distribution_mode="hash")
    write(harness, frame, "dist.plain")
    expected = files_of_partitions(harness, "dist.theirs")
    assert set(expected.values()) == {1} and len(expected) == 36
    assert files_of_partitions(harness, "dist.ours") == expected
    assert files_of_partitions(harness, "dist.plain").total() > 100
    assert harness.rows("dist.ours") == harness.rows("dist.theirs") == harness.rows("dist.plain")
    with pytest.raises(Exception, match=r'distribute\(df, "db.table", mode="hash"\)'):
        write(harness, frame, "dist.plain", distribution_mode="hash")


def test_ranges_of_a_sorted_table_do_not_overlap_and_files_are_in_order(
    harness: ChangesHarness,
) -> None:
    harness.create("dist.ranges", COLUMNS)
    harness.sql(f"ALTER TABLE {CATALOG}.dist.ranges WRITE ORDERED BY bucket(2, id), id DESC")
    write(harness, distribute(rows(harness), "dist.ranges", partitions=3), "dist.ranges")
    files = live(harness, "dist.ranges")
    assert len(files) == 3 and {file.sort_order_id for file in files} == {1}
    found = [pq.read_table(local_path(f.file_path)).column("id").to_pylist() for f in files]
    buckets = {
        row[0]: row[1]
        for row in harness.sql(
            f"SELECT id, {CATALOG}.system.bucket(2, id) FROM {CATALOG}.dist.ranges"
        )
    }
    keys = [[(buckets[value], -value) for value in ids] for ids in found]
    assert all(of_file == sorted(of_file) for of_file in keys)
    whole = [key for of_file in sorted(keys) for key in of_file]
    assert whole == sorted(whole) and len(whole) == ROWS


@pytest.mark.parametrize("mode", [pytest.param("hash", marks=pytest.mark.heavy), "range"])
def test_a_stream_is_distributed_too(harness: ChangesHarness, tmp_path: Path, mode: str) -> None:
    table = f"dist.stream_{mode}"
    harness.create(table, COLUMNS, partitioned_by="bucket(4, id)")
    harness.sql(f"ALTER TABLE {CATALOG}.{table} WRITE ORDERED BY id")
    rows(harness).write.parquet(str(tmp_path / "source"))
    source = harness.spark.readStream.schema(rows(harness).schema).parquet(str(tmp_path / "source"))
    query = (
        distribute(source, table, mode=mode, partitions=2)
        .writeStream.format("frazil")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .option("distribution-mode", mode)
        .option("wait", "committed")
        .options(**harness.settings())
        .trigger(availableNow=True)
        .start(table)
    )
    query.awaitTermination()
    assert len(harness.rows(table)) == ROWS
    # Two partitions of a range may share a task, and one may lie in two.
    assert len(live(harness, table)) <= (4 if mode == "hash" else 5)
