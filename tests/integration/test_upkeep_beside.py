"""Upkeep of deletes beside Iceberg Java, PyIceberg and DuckDB: the rows stay as they are.

Java deletes by position and rewrites data; Frazil upserts, so that deletes are left which apply to
nothing; Java upgrades the table. Then the table's properties ask Frazil to clean up.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from tests.integration.beside_model import Model
from tests.integration.beside_run import Run
from tests.integration.changing_rows import Changer
from tests.support.integration.java_engine import JavaEngine, java_engine
from tests.support.integration.readers import local
from tests.support.integration.real_harness import CATALOG, RealHarness, real_harness, until
from workers.requests.connections import open_connections

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(900),
]

NAME = "upkeep.deletes"
WANTED = ("frazil.deletes.remove-dangling", "frazil.deletes.convert-positions")


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[RealHarness, JavaEngine]]:
    with real_harness() as harness:
        asyncio.run(harness.start())
        with java_engine(harness) as java:
            yield harness, java


async def live_deletes(harness: RealHarness) -> list[DataFile]:
    head = (await harness.load(NAME)).metadata.current_snapshot
    assert head is not None
    assert head.manifest_list is not None
    return _deletes_of(head.manifest_list)


def _deletes_of(manifest_list: str) -> list[DataFile]:
    rows = decode_manifest_list(_read(manifest_list)).rows
    entries = (
        entry
        for row in rows
        if row.content
        for entry in decode_manifest(_read(row.manifest_path), manifest_file=row).entries
    )
    return [entry.data_file for entry in entries if entry.is_live]


def _read(location: str) -> bytes:
    return Path(local(location)).read_bytes()


def kinds(deletes: list[DataFile]) -> tuple[int, int, int]:
    """Count vectors, position delete files, and equality delete files."""
    vectors = sum(one.is_deletion_vector for one in deletes)
    equality = sum(one.content is DataFileContent.EQUALITY_DELETES for one in deletes)
    return vectors, len(deletes) - vectors - equality, equality


async def test_dangling_deletes_go_and_positions_become_vectors_and_rows_stay(
    engines: tuple[RealHarness, JavaEngine],
) -> None:
    harness, java = engines
    await asyncio.to_thread(java.sql, f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.upkeep")
    await asyncio.to_thread(
        java.sql,
        f"CREATE TABLE {CATALOG}.{NAME} (id BIGINT, region STRING, text STRING) USING iceberg"
        " PARTITIONED BY (region) TBLPROPERTIES ('format-version' = '2',"
        " 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read',"
        " 'write.distribution-mode' = 'none', 'write.delete.granularity' = 'partition')",
    )
    connections = await open_connections(harness.settings)
    try:
        changer = Changer(harness, connections, NAME, "changer")
        run = Run(harness, java, NAME, changer, Model(random.Random(5)))
        for _ in range(3):
            await run.java_insert()
            await run.frazil_append()
            await run.frazil_upsert()
        await run.java_rewrite()
        for _ in range(3):
            await run.frazil_append()
            await run.java_insert()
            await run.java_delete()
            await run.java_update()
            await run.frazil_delete()
        await run.compare()
        before = kinds(await live_deletes(harness))
        assert before[0] == 0
        assert before[1] > 0
        assert before[2] > 0
        asked = ", ".join(f"'{one}' = 'true'" for one in WANTED)
        await asyncio.to_thread(
            java.sql,
            f"ALTER TABLE {CATALOG}.{NAME} SET TBLPROPERTIES ('format-version' = '3', {asked})",
        )

        async def is_clean() -> bool:
            # Each commit of ours may begin what is due.
            await run.frazil_append()
            await run.java_insert()
            _, positions, equality = kinds(await live_deletes(harness))
            return positions == equality == 0

        await until(is_clean, "vectors only", timeout_s=240.0)
        await run.compare()
        after = kinds(await live_deletes(harness))
        assert after[0] > 0
    finally:
        await connections.close()
    assert await harness.quarantined() == []
    print(f"(vectors, position deletes, equality deletes): {before}, then {after}")
