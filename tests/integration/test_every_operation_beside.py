"""Every operation of Frazil, Spark with Iceberg Java and PyIceberg on one table, in random order.

After each step the rows are those of a model, by Java, DuckDB, and PyIceberg where it can read the
table's deletes. Each kind of step is drawn once or more.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import product

import pytest

from tests.integration import beside_files as files
from tests.integration import beside_layout as layout
from tests.integration import beside_refs as refs
from tests.integration.beside_model import Model
from tests.integration.beside_run import Run
from tests.integration.changing_rows import Changer
from tests.support.integration.java_engine import JavaEngine, java_engine
from tests.support.integration.real_harness import CATALOG, RealHarness, real_harness
from workers.requests.connections import Connections, open_connections

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

Step = Callable[[Run], Awaitable[None]]
# Each of them is drawn once, in random order, and some more often.
KINDS: tuple[Step, ...] = (
    Run.frazil_append,
    Run.frazil_overwrite,
    Run.frazil_copy_on_write,
    Run.frazil_delete_region,
    Run.frazil_delete_files,
    Run.frazil_delete,
    Run.frazil_update,
    Run.frazil_upsert,
    Run.frazil_compact,
    Run.frazil_compact_without_number,
    Run.frazil_behind_java,
    Run.frazil_two_deletes_at_once,
    Run.java_insert,
    Run.java_delete,
    Run.java_update,
    Run.java_rewrite,
    Run.pyiceberg_append,
    refs.frazil_stage,
    refs.frazil_publish_staged,
    refs.frazil_publish_unmoved,
    refs.frazil_cherry_pick,
    refs.java_cherry_pick,
    refs.frazil_create_branch,
    refs.frazil_replace_branch,
    refs.frazil_append_to_branch,
    refs.frazil_delete_from_branch,
    refs.frazil_fast_forward,
    refs.frazil_tag,
    refs.frazil_rollback,
    refs.frazil_set_current_snapshot,
    refs.java_rollback,
    layout.frazil_add_column,
    layout.frazil_widen_column,
    layout.frazil_rename_column,
    layout.frazil_drop_column,
    layout.frazil_move_column,
    layout.frazil_alter_spec,
    layout.frazil_replace_partitions,
    layout.frazil_alter_sort_order,
    layout.frazil_set_property,
    layout.frazil_remove_property,
    files.frazil_rewrite_manifests,
    files.frazil_rewrite_named_manifests,
    files.frazil_join_positions,
    files.frazil_convert_equality,
    files.frazil_adopt,
    files.frazil_transaction,
)
MORE_STEPS = 10


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[RealHarness, JavaEngine]]:
    # Iceberg's commits are not waited for: they never meet Frazil's, but where a step says so.
    quick = {"FRAZIL_COMMIT__MIN_INTERVAL_MS": "0", "FRAZIL_COMMIT__YIELD_TO_OTHERS_MS": "0"}
    with real_harness(**quick) as harness:
        asyncio.run(harness.start())
        with java_engine(harness) as java:
            yield harness, java


@pytest.mark.heavy
@pytest.mark.parametrize(("format_version", "seed"), [*product((2, 3), (1, 2, 3, 4))])
async def test_rows_are_a_models_after_every_operation_of_any_engine(
    engines: tuple[RealHarness, JavaEngine], format_version: int, seed: int
) -> None:
    harness, _ = engines
    chance = random.Random(f"{format_version}/{seed}")
    # PyIceberg writes no manifests of version 3.
    kinds = [one for one in KINDS if format_version < 3 or one is not Run.pyiceberg_append]
    steps = [*kinds, *chance.choices(kinds, k=MORE_STEPS)]
    chance.shuffle(steps)
    connections = await open_connections(harness.settings)
    done: Counter[str] = Counter()
    try:
        run = await start(engines, connections, f"v{format_version}_{seed}", chance)
        for number, step in enumerate(steps):
            try:
                await step(run)
                await run.compare()
            except BaseException as error:
                said = f"step {number} of seed {seed}, version {format_version}"
                error.add_note(f"{said}: {step.__name__} after {[*done]}")
                raise
            done[step.__name__] += 1
    finally:
        await connections.close()
    assert await harness.quarantined() == []
    assert set(done) == {one.__name__ for one in kinds}
    assert max(run.unread.values(), default=0) < len(steps), "a reader has hardly read it"
    print(f"version {format_version}: {dict(done)}; not read: {dict(run.unread)}")


async def start(
    engines: tuple[RealHarness, JavaEngine],
    connections: Connections,
    suffix: str,
    chance: random.Random,
) -> Run:
    """Create the table and the other one."""
    harness, java = engines
    await asyncio.to_thread(java.sql, f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.every")
    runs = []
    for name in (f"every.one_{suffix}", f"every.other_{suffix}"):
        await asyncio.to_thread(java.sql, creation(name, suffix[1]))
        changer = Changer(harness, connections, name, f"changer-{suffix}")
        runs.append(Run(harness, java, name, changer, Model(chance)))
    run, run.other = runs
    return run


def creation(name: str, format_version: str) -> str:
    properties: Mapping[str, str] = {
        "format-version": format_version,
        "write.delete.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.distribution-mode": "none",
        "commit.retry.num-retries": "50",
    }
    texts = ", ".join(f"'{key}' = '{text}'" for key, text in properties.items())
    return (
        f"CREATE TABLE {CATALOG}.{name} (id BIGINT, region STRING, text STRING) USING iceberg"
        f" PARTITIONED BY (region) TBLPROPERTIES ({texts})"
    )
