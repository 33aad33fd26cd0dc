"""Expiry by a real committer on real files: what Iceberg Java would expire, and all readers go on.

Iceberg Java deletes rows at the beginning, so that data files die too, and expires at the end: it
must find nothing to do but what is not worth a commit yet, and leave exactly our files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.ports.pointer_swap import LoadedTable
from tests.support.integration.java_engine import JavaEngine, java_engine
from tests.support.integration.readers import expected, live_files, local, seen_by_all
from tests.support.integration.real_harness import RealHarness, real_harness, until
from tests.support.integration.traffic import producers

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(300),
]

VERSIONS = (1, 2, 3)
KEPT = 100
PREVIOUS = 20
PROPERTIES = {
    "frazil.commit.min-interval-ms": "0",
    "frazil.commit.yield-to-others-ms": "0",
    "frazil.expire.enabled": "true",
    "history.expire.min-snapshots-to-keep": str(KEPT),
    "history.expire.max-snapshot-age-ms": "0",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": str(PREVIOUS),
    "write.delete.mode": "copy-on-write",
}


@dataclass(slots=True)
class Shared:
    """One committer and one Spark for the whole file."""

    harness: RealHarness
    java: JavaEngine


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    with real_harness() as harness:
        asyncio.run(harness.start())
        with java_engine(harness) as java:
            yield Shared(harness, java)


def avro_files(table: LoadedTable) -> set[str]:
    folder = Path(local(table.metadata.location)) / "metadata"
    return {str(path) for path in folder.glob("*.avro")}


def needed(table: LoadedTable) -> set[str]:
    """Return the lists of all snapshots, and the manifests that they list."""
    found = set()
    for snapshot in table.metadata.snapshots:
        path = Path(local(snapshot.manifest_list or ""))
        rows = decode_manifest_list(path.read_bytes()).rows
        found |= {str(path), *(local(row.manifest_path) for row in rows)}
    return found


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_left_is_what_java_leaves_and_all_readers_read_it(
    shared: Shared, version: int
) -> None:
    name, harness, java = f"db.expiring{version}", shared.harness, shared.java
    table = await harness.create_table(name, format_version=version, properties=PROPERTIES)
    async with producers(harness, table, 1, waiting=1) as [producer]:
        await producer.publish(4)
        dead = [Path(each) for each in producer.paths if _has_id_below_8(each)]
        java.sql(f"DELETE FROM frazil.{name} WHERE id < 8")
        await producer.publish(KEPT + 12)
        before = len(harness.events("snapshots.expired"))

        async def has_expired() -> bool:
            await producer.publish()
            return (
                len((await harness.load(name)).metadata.snapshots) <= KEPT + KEPT // 20 + 3
                and len(harness.events("snapshots.expired")) > before
            )

        await until(has_expired, "an expiry", timeout_s=120.0)

        async def is_clean() -> bool:
            await producer.publish()
            return not any(path.exists() for path in dead)

        await until(is_clean, "no file of the deleted rows", timeout_s=120.0)
        ids = [each for each in producer.ids if each >= 8]
    await until(harness.is_settled, "an empty inbox")
    await asyncio.sleep(2.0)  # the last clean-up behind the last commit

    ours = await harness.load(name)
    assert needed(ours) <= avro_files(ours)
    files = len(live_files(ours))
    seen = await seen_by_all(harness, name)
    assert seen == dict.fromkeys(seen, expected(files, ids))
    assert java.sql(f"SELECT count(*), sum(id) FROM frazil.{name}") == [[len(ids), sum(ids)]]
    oldest = ours.metadata.snapshots[0].snapshot_id
    assert java.value(f"SELECT count(*) FROM frazil.{name} VERSION AS OF {oldest}") > 0
    metadata_files = list(
        (Path(local(ours.metadata.location)) / "metadata").glob("*.metadata.json")
    )
    # The first ones of Java's own commit aside, what fell off the log is gone.
    assert len(metadata_files) <= PREVIOUS + 4

    java.sql(
        f"CALL frazil.system.expire_snapshots(table => '{name}',"
        f" older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => {KEPT})"
    )
    left = await harness.load(name)
    kept = [one.snapshot_id for one in left.metadata.snapshots]
    assert kept == [one.snapshot_id for one in ours.metadata.snapshots][-KEPT:]
    # Nothing of what we have expired was left behind: now there is only what is needed.
    leftover = avro_files(left) - needed(left)
    assert len(leftover) <= 2, leftover
    expired = harness.events("snapshots.expired")
    print(
        f"v{version}: {sum(one['snapshots'] for one in expired)} snapshots expired so far,"
        f" {sum(one['manifest_lists'] + one['manifests'] for one in expired)} metadata and"
        f" {sum(one['data_files'] for one in expired)} data files deleted; Java expired"
        f" {len(ours.metadata.snapshots) - KEPT} more and left the same {KEPT}"
    )


def _has_id_below_8(path: str) -> bool:
    import duckdb

    found = duckdb.execute("SELECT min(id) FROM read_parquet(?)", [path]).fetchone()
    return found is not None and found[0] < 8
