"""A real committer on file system tables, read by engines that know nothing but a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from tests.support.integration.catalog_real_harness import catalog_real_harness
from tests.support.integration.duckdb_iceberg import duckdb_with_iceberg
from tests.support.integration.readers import (
    expected,
    seen_by_all,
)
from tests.support.integration.real_harness import until
from tests.support.integration.traffic import all_ids, all_paths, producers

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]
NAME = "db.flights"


async def test_rows_of_a_real_committer_are_read_by_the_folder_alone() -> None:
    with catalog_real_harness({"type": "hadoop"}) as harness:
        await harness.start()
        table = await harness.create_table(NAME)
        async with producers(harness, table, 2) as published:
            for _ in range(3):
                for producer in published:
                    await producer.publish()
                await until(harness.is_settled, "an empty inbox")
        ids = all_ids(published)
        contents = expected(len(all_paths(published)), ids)
        seen = await seen_by_all(harness, NAME)
        assert seen == dict.fromkeys(seen, contents)
        assert await harness.quarantined() == []

        folder = harness.warehouse / "db/flights"
        loaded = await harness.load(NAME)
        number = (folder / "metadata/version-hint.text").read_text()
        assert loaded.metadata_location.endswith(f"/v{number}.metadata.json")
        assert not (harness.folder / "catalog.db").exists()
        # By the hint, as neither reader lists a folder.
        theirs = StaticTable.from_metadata(f"file://{folder}").scan().to_arrow()
        assert sorted(theirs.column("id").to_pylist()) == sorted(ids)
        assert _ids_by_duckdb(folder) == sorted(ids)
    print(f"{len(ids)} rows in {int(number) - 1} commits, by {', '.join(seen)}, and by the hint")


def _ids_by_duckdb(folder: Path) -> list[int]:
    with duckdb_with_iceberg() as connection:
        found = connection.execute("SELECT id FROM iceberg_scan(?) ORDER BY id", [str(folder)])
        return [number for (number,) in found.fetchall()]
