"""Every operation of Frazil, Spark with Iceberg Java and PyIceberg on one table, in random order.

After each step the rows are those of a model, by Java, DuckDB, and PyIceberg where it can read the
table's deletes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping

import pytest

from tests.integration.beside_run import Run
from tests.integration.changing_rows import Changer
from tests.integration.java_engine import JavaEngine, java_engine
from tests.integration.real_harness import CATALOG, RealHarness, real_harness
from workers.requests.connections import open_connections

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(900),
]

STEPS = 36


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[RealHarness, JavaEngine]]:
    with real_harness() as harness:
        asyncio.run(harness.start())
        with java_engine(harness) as java:
            yield harness, java


STEPS_OF: Mapping[str, int] = {
    "frazil_append": 3,
    "frazil_delete": 3,
    "frazil_update": 3,
    "frazil_upsert": 2,
    "frazil_overwrite": 2,
    "frazil_delete_region": 1,
    "frazil_replace_partitions": 1,
    "frazil_compact": 2,
    "frazil_copy_on_write": 2,
    "frazil_behind_java": 2,
    "frazil_two_deletes_at_once": 2,
    "java_insert": 2,
    "java_delete": 2,
    "java_update": 2,
    "java_rewrite": 1,
    "pyiceberg_append": 2,
}


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("format_version", [2, 3])
async def test_rows_are_a_models_after_every_operation_of_any_engine(
    engines: tuple[RealHarness, JavaEngine], format_version: int, seed: int
) -> None:
    harness, java = engines
    name = f"every.v{format_version}_{seed}"
    await asyncio.to_thread(java.sql, f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.every")
    await asyncio.to_thread(
        java.sql,
        f"CREATE TABLE {CATALOG}.{name} (id BIGINT, region STRING, text STRING) USING iceberg"
        f" PARTITIONED BY (region) TBLPROPERTIES ('format-version' = '{format_version}',"
        " 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read',"
        " 'write.distribution-mode' = 'none', 'commit.retry.num-retries' = '50')",
    )
    connections = await open_connections(harness.settings)
    try:
        chance = random.Random(f"{format_version}/{seed}")
        changer = Changer(harness, connections, name, f"changer-{seed}")
        run = Run(harness, java, name, changer, chance)
        # PyIceberg writes no manifests of version 3.
        is_written = format_version < 3
        steps = {each: n for each, n in STEPS_OF.items() if is_written or "pyiceberg" not in each}
        for number in range(STEPS):
            [step] = chance.choices(list(steps), list(steps.values()))
            run.steps[step] += 1
            try:
                await getattr(run, step)()
                await run.compare()
            except BaseException as error:
                error.add_note(f"step {number} of seed {seed}, version {format_version}: {step}")
                raise
    finally:
        await connections.close()
    assert await harness.quarantined() == []
    print(f"version {format_version}: {dict(run.steps)}; not read by PyIceberg: {dict(run.unread)}")
