"""Appends, streams, upserts, overwrites and compactions by Spark in other formats than Parquet.

Iceberg's own runtime reads the rows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from committer.iceberg.entry.data_file import DataFile, DataFileContent
from frazil.spark import rewrite_data_files
from tests.integration.changes.harness import ChangesHarness

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves the connection of a `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]

COLUMNS = "id INT, region STRING, at TIMESTAMP, tags ARRAY<STRING>"
SCHEMA = "id int, region string, at timestamp, tags array<string>"
FORMATS = ("avro", "orc")


def write(
    harness: ChangesHarness, table: str, ids: range, mode: str = "append", **options: str
) -> None:
    rows = [(each, "ew"[each % 2], None, [str(each)] * (each % 3)) for each in ids]
    writer = harness.frame(rows, SCHEMA).coalesce(1).write.format("frazil").mode(mode)
    named = {name.replace("_", "-"): text for name, text in options.items()}
    writer.options(**waiting(harness), **named).save(table)


def waiting(harness: ChangesHarness) -> dict[str, str]:
    """Return the options that find the committer, and wait for it."""
    found = harness.real.environment()
    settings = {"home": found["FRAZIL_HOME"], "queue.url": found["FRAZIL_QUEUE__URL"]}
    return {"wait": "committed", **settings}


def files(harness: ChangesHarness, table: str) -> list[DataFile]:
    """Return the live data files, and the delete files that apply to them."""
    tasks = harness.tasks(table)
    return [*(task.file for task in tasks), *(each for task in tasks for each in task.delete_files)]


def formats(harness: ChangesHarness, table: str) -> set[str]:
    return {file.file_format for file in files(harness, table)}


def ids(harness: ChangesHarness, table: str) -> list[int]:
    found = harness.rows(table)
    assert all(tags == [str(number)] * (number % 3) for number, _, _, tags in found)
    return sorted(number for number, *_ in found)


@pytest.mark.parametrize("name", FORMATS)
def test_every_write_has_the_format_of_the_table(
    harness: ChangesHarness, tmp_path: Path, name: str
) -> None:
    table = f"formats.writes_{name}"
    harness.create(table, COLUMNS, partitioned_by="region", write_format_default=name)
    write(harness, table, range(10))
    stream(harness, table, tmp_path, range(10, 20))
    write(harness, table, range(8, 12), upsert_keys="id,region")
    assert ids(harness, table) == [*range(20)]
    assert formats(harness, table) == {name.upper()}
    kinds = {file.content for file in files(harness, table)}
    assert kinds == {DataFileContent.DATA, DataFileContent.EQUALITY_DELETES}
    result = rewrite_data_files(harness.spark, table, options={"rewrite-all": True})
    assert result.rewritten_files > result.added_files == 2
    assert formats(harness, table) == {name.upper()}
    assert ids(harness, table) == [*range(20)]
    write(harness, table, range(30, 40), "overwrite")
    assert ids(harness, table) == [*range(30, 40)]
    assert formats(harness, table) == {name.upper()}


def stream(harness: ChangesHarness, table: str, folder: Path, numbers: range) -> None:
    source = folder / "in"
    source.mkdir()
    rows = [
        {"id": each, "region": "ew"[each % 2], "tags": [str(each)] * (each % 3)} for each in numbers
    ]
    (source / "rows.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    frame: Any = harness.spark.readStream.schema(SCHEMA).json(str(source))
    writer = frame.writeStream.format("frazil").option("checkpointLocation", str(folder / "c"))
    writer.options(**waiting(harness)).trigger(availableNow=True).start(table).awaitTermination()


@pytest.mark.parametrize("name", [pytest.param("avro", marks=pytest.mark.heavy), "orc"])
def test_a_write_may_choose_its_format(harness: ChangesHarness, name: str) -> None:
    table = f"formats.chosen_{name}"
    harness.create(table, COLUMNS)
    write(harness, table, range(5))
    write(harness, table, range(5, 9), write_format=name)
    assert formats(harness, table) == {"PARQUET", name.upper()}
    assert ids(harness, table) == [*range(9)]
