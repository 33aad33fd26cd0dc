"""The walk "Trino on ice IV" through the files of a table, statement by statement, on one of ours.

The table is the walk's: format version 1, ORC, by day, three rows and then one. Two things differ.
A table of Trino begins with an empty snapshot and ours does not, so there is one snapshot less.
Frazil's own writers have no ORC: Trino writes the data files, in a table of its own, and a client
publishes copies of them, as any client may publish ORC.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import fastavro
import pytest

from committer.catalog.hive.hive_layout import parameters_of
from committer.catalog.hive.thrift_connection import Connection
from committer.catalog.hive.thrift_values import Struct, struct, text
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.ports.pointer_swap import Conflict, LoadedTable
from tests.support.builders.table_builders import build_head_swap
from tests.support.integration.readers import local
from tests.support.servers.hive_server import HiveServer
from tests.trino.shared_catalog import SharedCatalog

pytestmark = [pytest.mark.trino, pytest.mark.timeout(600)]

SCHEMA = "logging"
EVENTS = f"{SCHEMA}.events"
THEIRS = f"{SCHEMA}.written_by_trino"
FIRST = (
    ("ERROR", "2021-04-01 12:00:00.000001", "Oh noes", "NullPointerException"),
    ("ERROR", "2021-04-02 15:55:23.383345", "Double oh noes", "NullPointerException"),
    ("WARN", "2021-04-02 00:00:11.112222", "Maybeh oh noes?", "Bad things could be happening??"),
)
SECOND = (("INFO", "2021-04-02 00:00:11.112222", "It is all good", "Just updating you!"),)
UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
METADATA = (
    *(f"0000{number}-{UUID}\\.metadata\\.json" for number in range(3)),
    *[f"{UUID}-m0\\.avro"] * 2,
    *[f"snap-\\d+-\\d+-{UUID}\\.avro"] * 2,
)
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Walk:
    """The table after its two commits."""

    shared: SharedCatalog
    table: LoadedTable

    @property
    def folder(self) -> Path:
        return Path(local(self.table.metadata.location))

    @property
    def snapshot_ids(self) -> list[int]:
        return [one.snapshot_id for one in self.table.metadata.snapshots]

    def manifest_lists(self) -> list[str]:
        query = f'SELECT manifest_list FROM {SCHEMA}."events$snapshots" ORDER BY committed_at'
        found: list[str] = self.shared.trino.column(query)
        return found

    def manifests(self, number: int) -> list[Record]:
        """Return the records of a manifest list, as a tool of Avro prints them."""
        return avro_records(self.manifest_lists()[number])

    def entries(self, number: int) -> list[Record]:
        """Return the records of the manifest that a commit added."""
        return avro_records(self.manifests(number)[0]["manifest_path"])


def avro_records(location: str) -> list[Record]:
    content = Path(local(location)).read_bytes()
    return [
        dict(record) for record in fastavro.reader(io.BytesIO(content)) if isinstance(record, dict)
    ]


@pytest.fixture(scope="session")
def walk(shared: SharedCatalog) -> Walk:
    columns = "level string, event_time timestamp, message string, call_stack list<string>"
    options = ("--partition", "day(event_time)", "--format-version", "1")
    shared.command("table", "create", EVENTS, "--schema", columns, *options)
    shared.trino.sql(
        f"CREATE TABLE {THEIRS} (level varchar, event_time timestamp(6), message varchar,"
        " call_stack array(varchar)) WITH (format = 'ORC', format_version = 1,"
        f" location = '{shared.harness.warehouse_location}/theirs',"
        " partitioning = ARRAY['day(event_time)'])"
    )
    for rows in (FIRST, SECOND):
        asyncio.run(commit_orc(shared, rows))
    return Walk(shared, asyncio.run(shared.harness.load(EVENTS)))


async def commit_orc(shared: SharedCatalog, rows: Sequence[tuple[str, ...]]) -> None:
    """Let Trino write the rows as ORC, and publish copies of its files."""
    values = ", ".join(
        f"('{level}', TIMESTAMP '{at}', '{message}', ARRAY['{call}'])"
        for level, at, message, call in rows
    )
    await asyncio.to_thread(shared.trino.sql, f"INSERT INTO {THEIRS} VALUES {values}")
    table = await shared.harness.load(EVENTS)
    epoch = shared.next_epoch(table)
    files = added_files(await shared.harness.load(THEIRS))
    copied = [copy_to(table, file, f"{epoch.attempt}-{at}") for at, file in enumerate(files)]
    await shared.commit(replace(epoch, files=copied))


def added_files(table: LoadedTable) -> list[DataFile]:
    """Return the files that the newest snapshot added."""
    head = table.metadata.current_snapshot
    assert head is not None and head.manifest_list is not None
    rows = decode_manifest_list(Path(local(head.manifest_list)).read_bytes()).rows
    contents = [(row, Path(local(row.manifest_path)).read_bytes()) for row in rows]
    entries = [
        entry
        for row, content in contents
        for entry in decode_manifest(content, manifest_file=row).entries
    ]
    return [one.data_file for one in entries if one.snapshot_id == head.snapshot_id]


def copy_to(table: LoadedTable, file: DataFile, name: str) -> DataFile:
    folder = Path(file.file_path).parent.name
    target = f"{table.metadata.location}/data/{folder}/{name}.orc"
    Path(local(target)).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(local(file.file_path), local(target))
    return replace(file, file_path=target)


# --- The steps -----------------------------------------------------------------------------------


def test_rows_are_those_of_the_walk(walk: Walk) -> None:
    found = walk.shared.trino.sql(f"SELECT * FROM {EVENTS} ORDER BY level, event_time")
    wanted = [[level, at, message, [call]] for level, at, message, call in (*FIRST, *SECOND)]
    assert found == sorted(wanted)


def test_step_1_folders_hold_metadata_files_manifests_lists_and_days(walk: Walk) -> None:
    names = sorted(each.name for each in (walk.folder / "metadata").iterdir())
    visible = [name for name in names if not name.startswith(".")]
    matched = [[name for name in visible if re.fullmatch(form, name)] for form in METADATA]
    assert [len(found) for found in matched] == [1, 1, 1, 2, 2, 2, 2]
    assert len(visible) == len(METADATA)
    days = sorted(each.name for each in (walk.folder / "data").iterdir())
    assert days == ["event_time_day=2021-04-01", "event_time_day=2021-04-02"]


def test_step_2_each_snapshot_has_a_manifest_list_with_its_id(walk: Walk) -> None:
    ids = [re.search(r"/metadata/snap-(\d+)-", each) for each in walk.manifest_lists()]
    assert [int(found[1]) for found in ids if found] == walk.snapshot_ids
    assert len(ids) == 2


def test_step_3_first_list_names_one_manifest_of_two_files_and_three_rows(walk: Walk) -> None:
    [found] = walk.manifests(0)
    assert found["partition_spec_id"] == 0
    assert found["added_snapshot_id"] == walk.snapshot_ids[0]
    counts = [found[f"{kind}_files_count"] for kind in ("added", "existing", "deleted")]
    assert counts == [2, 0, 0]
    rows = [found[f"{kind}_rows_count"] for kind in ("added", "existing", "deleted")]
    assert rows == [3, 0, 0]
    [partition] = found["partitions"]
    bounds = (partition["lower_bound"].hex(), partition["upper_bound"].hex())
    assert bounds == ("1e490000", "1f490000")
    assert partition["contains_null"] is False
    assert found["manifest_length"] == Path(local(found["manifest_path"])).stat().st_size


def test_step_4_second_list_names_both_manifests_the_newest_first(walk: Walk) -> None:
    found = [(one["added_snapshot_id"], one["added_rows_count"]) for one in walk.manifests(1)]
    assert found == [(walk.snapshot_ids[1], 1), (walk.snapshot_ids[0], 3)]


def test_step_5_entries_say_what_is_in_each_data_file(walk: Walk) -> None:
    entries = sorted(walk.entries(0), key=lambda entry: entry["data_file"]["record_count"])
    assert [entry["status"] for entry in entries] == [1, 1]
    assert {entry["snapshot_id"] for entry in entries} == {walk.snapshot_ids[0]}
    files = [entry["data_file"] for entry in entries]
    days = [(file["partition"]["event_time_day"] - date(1970, 1, 1)).days for file in files]
    assert days == [18718, 18719]
    for file, day in zip(files, ("2021-04-01", "2021-04-02"), strict=True):
        assert f"/data/event_time_day={day}/" in file["file_path"]
        assert file["file_format"] == "ORC"
        assert file["file_size_in_bytes"] == Path(local(file["file_path"])).stat().st_size
    assert [file["record_count"] for file in files] == [1, 2]
    [_, both] = files
    assert by_id(both["value_counts"]) | {4: 2, 5: 2} == {1: 2, 2: 2, 3: 2, 4: 2, 5: 2}
    assert set(by_id(both["null_value_counts"]).values()) == {0}
    lower, upper = by_id(both["lower_bounds"]), by_id(both["upper_bounds"])
    assert (lower[1], upper[1]) == (b"ERROR", b"WARN")
    assert (lower[3], upper[3]) == (b"Double oh noes", b"Maybeh oh noes?")
    assert walk.shared.trino.column(
        f'SELECT lower_bounds[3] FROM {SCHEMA}."events$files" WHERE record_count = 2'
    ) == ["Double oh noes"]


def by_id(pairs: Sequence[Record]) -> dict[int, Any]:
    return {pair["key"]: pair["value"] for pair in pairs}


@pytest.mark.parametrize("shared", ["hive"], indirect=True, scope="session")
def test_step_6_metastore_has_the_pointer_the_one_before_and_totals(
    walk: Walk, hive_server: HiveServer
) -> None:
    found = parameters_of(hive_entry(hive_server))
    assert (found["EXTERNAL"], found["table_type"].upper()) == ("TRUE", "ICEBERG")
    assert found["metadata_location"] == walk.table.metadata_location
    assert found["previous_metadata_location"] == walk.table.metadata.metadata_log[-1].metadata_file
    sizes = [each.stat().st_size for each in walk.folder.glob("data/*/*.orc")]
    assert (found["numFiles"], found["totalSize"]) == (str(len(sizes)), str(sum(sizes)))


def hive_entry(server: HiveServer) -> Struct:
    connection = Connection(*server.address, connect_timeout_s=10, read_timeout_s=60)
    request = {1: struct({1: text(SCHEMA), 2: text("events")})}
    try:
        answer: Struct = connection.call("get_table_req", request)[0].value[1].value
        return answer
    finally:
        connection.close()


def test_step_7_metadata_file_holds_schema_spec_snapshots_and_logs(walk: Walk) -> None:
    found = json.loads(Path(local(walk.table.metadata_location)).read_text())
    assert found["format-version"] == 1
    fields = {each["name"]: each["id"] for each in found["schema"]["fields"]}
    assert fields == {"level": 1, "event_time": 2, "message": 3, "call_stack": 4}
    assert found["schema"]["fields"][3]["type"]["element-id"] == found["last-column-id"] == 5
    [field] = found["partition-specs"][0]["fields"]
    assert (field["transform"], field["source-id"], field["field-id"]) == ("day", 2, 1000)
    assert (found["default-sort-order-id"], found["sort-orders"]) == (
        0,
        [{"order-id": 0, "fields": []}],
    )
    first, second = found["snapshots"]
    assert second["parent-snapshot-id"] == first["snapshot-id"]
    assert "parent-snapshot-id" not in first
    check_summary(first["summary"], added=(2, 3), total=(2, 3))
    check_summary(second["summary"], added=(1, 1), total=(3, 4))
    log = [each["snapshot-id"] for each in found["snapshot-log"]]
    assert log == walk.snapshot_ids
    assert found["current-snapshot-id"] == log[-1]
    versions = [Path(each["metadata-file"]).name[:5] for each in found["metadata-log"]]
    assert versions == ["00000", "00001"]


def check_summary(summary: Record, *, added: tuple[int, int], total: tuple[int, int]) -> None:
    assert summary["operation"] == "append"
    assert (summary["added-data-files"], summary["added-records"]) == tuple(map(str, added))
    assert (summary["total-data-files"], summary["total-records"]) == tuple(map(str, total))


async def test_step_8_commit_is_a_new_metadata_file_and_a_stale_writer_loses(walk: Walk) -> None:
    """Runs last in this file: the table has another commit afterwards."""
    values = "('INFO', TIMESTAMP '2021-04-03 00:00:00', 'by Trino', ARRAY['x'])"
    walk.shared.trino.sql(f"INSERT INTO {EVENTS} VALUES {values}")
    now = await walk.shared.harness.load(EVENTS)
    assert Path(now.metadata_location).name.startswith("00003-")
    assert now.metadata.metadata_log[-1].metadata_file == walk.table.metadata_location
    async with walk.shared.harness.catalog() as catalog, walk.shared.harness.storage() as storage:
        stale = build_head_swap(walk.table)
        await storage.create(catalog.objects_before(stale))
        assert isinstance(await catalog.swap(stale), Conflict)
        assert await catalog.current_location(now.identifier) == now.metadata_location
    await commit_orc(walk.shared, SECOND)
    assert walk.shared.trino.value(f"SELECT count(*) FROM {EVENTS}") == 6
