"""Iceberg Java in Spark and our committer on one catalog: each reads and keeps what the other did.

Every table here is filled by real producers through a real committer, in each format version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from committer.iceberg.metadata.table_metadata import TableMetadata
from tests.support.integration.java_engine import JavaEngine, java_engine
from tests.support.integration.readers import expected, live_files, seen_by_all
from tests.support.integration.real_harness import RealHarness, real_harness, until
from tests.support.integration.traffic import (
    RealProducer,
    all_ids,
    all_paths,
    producers,
    publish_until,
)

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(180),
]

VERSIONS = (1, 2, 3)
JAVA_APPENDS = 5


@dataclass(slots=True)
class Shared:
    """One committer and one Spark for the whole file; each test makes a table of its own."""

    harness: RealHarness
    java: JavaEngine
    producers_made: int = 0
    java_ids: list[int] = field(default_factory=list)

    def append_by_java(self, name: str, count: int) -> list[int]:
        """Append one row at a time with Iceberg Java and its default retries; return the ids."""
        start = len(self.java_ids) + 1
        ids = [-number for number in range(start, start + count)]
        self.java_ids += ids
        for each in ids:
            self.java.sql(f"INSERT INTO frazil.{name} VALUES ({each}, 'ZZ')")
        return ids


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    with real_harness() as harness:
        asyncio.run(harness.start())
        with java_engine(harness) as java:
            yield Shared(harness, java)


async def filled(
    shared: Shared, name: str, *, format_version: int, rounds: int = 2
) -> RealProducer:
    """Create a table with some commits of one producer."""
    table = await shared.harness.create_table(name, format_version=format_version)
    async with producers(shared.harness, table, 1) as [producer]:
        for _ in range(rounds):
            await producer.publish(3)
            await until(shared.harness.is_settled, "an empty inbox")
    return producer


async def metadata_of(shared: Shared, name: str) -> TableMetadata:
    return (await shared.harness.load(name)).metadata


@pytest.mark.parametrize("version", VERSIONS)
async def test_java_reads_rows_files_partitions_and_history_as_we_wrote_them(
    shared: Shared, version: int
) -> None:
    name, java = f"db.read{version}", shared.java
    producer = await filled(shared, name, format_version=version)
    metadata = await metadata_of(shared, name)
    assert metadata.format_version == version
    table = f"frazil.{name}"

    rows = java.sql(f"SELECT id, carrier FROM {table} ORDER BY id")
    assert rows == [[each, ("AA", "UA")[each % 2]] for each in sorted(producer.ids)]
    filtered = java.sql(f"SELECT count(*) FROM {table} WHERE carrier = 'AA' AND id >= 6")
    assert filtered == [[sum(1 for each in producer.ids if each % 2 == 0 and each >= 6)]]

    files = java.sql(f"SELECT file_path, record_count FROM {table}.files ORDER BY file_path")
    ours = live_files(await shared.harness.load(name))
    assert [(path.removeprefix("file://"), count) for path, count in files] == sorted(
        (file.path, file.record_count) for file in ours
    )
    bounds = java.sql(f"SELECT readable_metrics.id.lower_bound FROM {table}.files ORDER BY 1")
    assert bounds[0] == [min(producer.ids)]
    partitions = java.sql(f"SELECT record_count, file_count FROM {table}.partitions")
    assert partitions == [[len(producer.ids) // 2, len(files) // 2]] * 2

    snapshots = java.sql(
        f"SELECT snapshot_id, parent_id, operation, summary['total-records']"
        f" FROM {table}.snapshots ORDER BY committed_at"
    )
    assert [(each[0], each[1]) for each in snapshots] == [
        (each.snapshot_id, each.parent_snapshot_id) for each in metadata.snapshots
    ]
    assert {each[2] for each in snapshots} == {"append"}
    assert snapshots[-1][3] == str(len(producer.ids))
    history = java.sql(f"SELECT snapshot_id, is_current_ancestor FROM {table}.history")
    assert history == [[each.snapshot_id, True] for each in metadata.snapshots]
    old = java.value(f"SELECT count(*) FROM {table} VERSION AS OF {snapshots[0][0]}")
    assert old == int(snapshots[0][3])
    print(
        f"v{version}: Java reads {len(rows)} rows, {len(files)} files, 2 partitions,"
        f" {len(snapshots)} snapshots as written; the first snapshot has {old} rows"
    )


@pytest.mark.parametrize("version", VERSIONS)
async def test_rows_of_java_and_ours_are_all_there_when_both_append_at_once(
    shared: Shared, version: int
) -> None:
    name, harness = f"db.shared{version}", shared.harness
    table = await harness.create_table(name, format_version=version)
    conflicts_before = len(harness.events("commit.conflicted"))
    async with producers(harness, table, 2, waiting=1) as published:
        appending = asyncio.create_task(
            asyncio.to_thread(shared.append_by_java, name, JAVA_APPENDS)
        )
        async with asyncio.TaskGroup() as tasks:
            for producer in published:
                tasks.create_task(publish_until(appending, producer))
        java_ids = await appending  # raises if one of Java's appends failed
        await until(harness.is_settled, "an empty inbox")

    ids = all_ids(published) + java_ids
    contents = expected(len(all_paths(published)) + len(java_ids), ids)
    seen = await seen_by_all(harness, name)
    assert seen == dict.fromkeys(seen, contents)
    count = shared.java.sql(f"SELECT count(*), count(DISTINCT id), sum(id) FROM frazil.{name}")
    assert count == [[len(ids), len(set(ids)), sum(ids)]]
    metadata = await metadata_of(shared, name)
    ours = [each for each in metadata.snapshots if "frazil.requests-count" in (each.summary or {})]
    assert len(metadata.snapshots) == len(ours) + len(java_ids)
    assert await harness.quarantined() == []
    if version == 3:
        row_ids = shared.java.sql(f"SELECT _row_id FROM frazil.{name} ORDER BY 1")
        assert [each for (each,) in row_ids] == list(range(len(ids)))
    conflicts = len(harness.events("commit.conflicted")) - conflicts_before
    print(
        f"v{version}: {len(java_ids)} appends by Java, none failed, among {len(ours)} commits of"
        f" ours ({sum(each.epochs for each in published)} requests, {conflicts} conflicts seen by"
        f" the committer): {len(ids)} rows, each once, by Iceberg Java, {', '.join(seen)}"
    )


@pytest.mark.parametrize("version", VERSIONS)
async def test_merged_manifests_say_to_java_what_the_small_ones_said(
    shared: Shared, version: int
) -> None:
    name, harness = f"db.merged{version}", shared.harness
    few = {"commit.manifest.min-count-to-merge": "3", "frazil.commit.min-interval-ms": "0"}
    table = await harness.create_table(name, format_version=version, properties=few)
    known: dict[str, list[object]] = {}
    row_ids: dict[int, int] = {}
    async with producers(harness, table, 1, waiting=1) as [producer]:
        for _ in range(2):
            await producer.publish(4)
            known |= _entries_by_java(shared, name)
            row_ids |= _row_ids_by_java(shared, name, version)
        # Iceberg Java merges too, by the same property, what it finds at its commit.
        java_ids = await asyncio.to_thread(shared.append_by_java, name, 2)
        await producer.publish(5)
        await until(harness.is_settled, "an empty inbox")

    metadata = await metadata_of(shared, name)
    replaced = [
        int((each.summary or {})["manifests-replaced"])
        for each in metadata.snapshots
        if "frazil.requests-count" in (each.summary or {})
    ]
    assert sum(map(bool, replaced)) >= 2
    now = _entries_by_java(shared, name)
    assert {path: now[path] for path in known} == known
    after = _row_ids_by_java(shared, name, version)
    assert {each: after[each] for each in row_ids} == row_ids
    assert len(set(after.values())) == len(after)
    ids = producer.ids + java_ids
    contents = expected(len(producer.paths) + len(java_ids), ids)
    seen = await seen_by_all(harness, name)
    assert seen == dict.fromkeys(seen, contents)
    count = shared.java.sql(f"SELECT count(*), count(DISTINCT id), sum(id) FROM frazil.{name}")
    assert count == [[len(ids), len(set(ids)), sum(ids)]]
    bounds = shared.java.sql(
        f"SELECT count(*) FROM frazil.{name} WHERE id >= {min(producer.ids)} AND id <= 5"
    )
    assert bounds == [[sum(1 for each in producer.ids if each <= 5)]]
    print(
        f"v{version}: {sum(replaced)} manifests merged by {sum(map(bool, replaced))} of"
        f" {len(replaced)} commits, {len(java_ids)} appends by Java: {len(known)} entries and"
        f" {len(row_ids)} row ids as before; {len(ids)} rows, each once, by Iceberg Java,"
        f" {', '.join(seen)}"
    )


def _entries_by_java(shared: Shared, name: str) -> dict[str, list[object]]:
    """Return snapshot id and sequence numbers of each live file, as Iceberg Java inherits them."""
    found = shared.java.sql(
        "SELECT data_file.file_path, snapshot_id, sequence_number, file_sequence_number"
        f" FROM frazil.{name}.entries WHERE status < 2"
    )
    entries = {str(path): numbers for path, *numbers in found}
    assert len(entries) == len(found)
    return entries


def _row_ids_by_java(shared: Shared, name: str, version: int) -> dict[int, int]:
    """Return the row id of each row by its `id`; nothing before version 3."""
    if version < 3:
        return {}
    return dict(shared.java.sql(f"SELECT id, _row_id FROM frazil.{name}"))


@pytest.mark.parametrize("version", VERSIONS)
async def test_we_go_on_after_java_rewrote_manifests_and_expired_snapshots(
    shared: Shared, version: int
) -> None:
    name, harness = f"db.kept{version}", shared.harness
    first = await filled(shared, name, format_version=version, rounds=3)
    before = await metadata_of(shared, name)
    rewritten = shared.java.sql(f"CALL frazil.system.rewrite_manifests('{name}')")
    expired = shared.java.sql(
        f"CALL frazil.system.expire_snapshots(table => '{name}',"
        " older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
    )
    left = await metadata_of(shared, name)
    assert len(left.snapshots) == 1 < len(before.snapshots)

    async with producers(harness, await harness.load(name), 1, waiting=1) as [second]:
        second.number = 1
        await second.publish(2)
    # The epochs that landed before are still known: a replay of the first producer adds nothing.
    await _replay(harness, name, first)
    await until(harness.is_settled, "an empty inbox")

    published = [first, second]
    contents = expected(len(all_paths(published)), all_ids(published))
    seen = await seen_by_all(harness, name)
    assert seen == dict.fromkeys(seen, contents)
    count = shared.java.sql(f"SELECT count(*), count(DISTINCT id), sum(id) FROM frazil.{name}")
    assert count == [[contents.rows, contents.distinct_ids, contents.sum_of_ids]]
    assert await harness.quarantined() == []
    print(
        f"v{version}: Java rewrote {rewritten[0][0]} manifests into {rewritten[0][1]} and expired"
        f" {len(before.snapshots)} snapshots (deleted files: {expired[0]}); we committed"
        f" {second.epochs} more requests and knew a replayed epoch as a duplicate; {contents.rows}"
        f" rows, each once, by Iceberg Java, {', '.join(seen)}"
    )


async def _replay(harness: RealHarness, name: str, producer: RealProducer) -> None:
    """Run the last epoch again, as a Spark query does after a crash: another attempt, same rows."""
    epoch = producer.epochs - 1
    async with producers(harness, await harness.load(name), 1, waiting=1) as [again]:
        again.epochs = epoch
        await again.publish()
        assert again.receipts[epoch].duplicate
