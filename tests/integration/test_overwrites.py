"""Overwrites as Spark runs them, against a real committer: rows by DuckDB and PyIceberg.

No Spark runs here; `test_spark_writer.py` has it call the same code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog as ForeignCatalog
from pyiceberg.table import StaticTable

from committer.errors import PublishError
from tests.support.integration.duckdb_iceberg import duckdb_with_iceberg
from tests.support.integration.readers import local
from tests.support.integration.real_harness import RealHarness, real_harness
from tests.support.integration.sink_writes import Row, SinkWriter, run_of

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

COMMITTED = {"wait": "committed"}
DYNAMIC = {"overwrite-mode": "dynamic"}
SERIALIZABLE = {"isolation-level": "serializable"}
SCHEMA = pa.schema([("id", pa.int64()), ("carrier", pa.string())])


@pytest.fixture(scope="module")
def harness() -> Iterator[RealHarness]:
    with real_harness(FRAZIL_COMMIT__MIN_INTERVAL_MS="20") as harness:
        asyncio.run(harness.start())
        yield harness


@pytest.fixture
def writer(harness: RealHarness, request: pytest.FixtureRequest) -> SinkWriter:
    """Return a writer to a new table, partitioned by bucket(2, carrier): AA is in one partition,
    UA in the other."""
    name = f"db.{request.node.name.partition('[')[0]}"
    asyncio.run(harness.create_table(name))
    return SinkWriter(harness, name, SCHEMA)


def rows(carrier: str, *ids: int) -> list[Row]:
    return [{"id": each, "carrier": carrier} for each in ids]


def ids(writer: SinkWriter) -> list[int]:
    """Return the ids in the table, by two readers that agree."""
    table = asyncio.run(writer.harness.load(writer.table))
    by_pyiceberg = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    with duckdb_with_iceberg() as connection:
        found = connection.execute(
            "SELECT id FROM iceberg_scan(?) ORDER BY id", [local(table.metadata_location)]
        ).fetchall()
    assert sorted(by_pyiceberg.column("id").to_pylist()) == [each for (each,) in found]
    return [each for (each,) in found]


def labels(writer: SinkWriter) -> list[str]:
    metadata = asyncio.run(writer.harness.load(writer.table)).metadata
    return [(one.summary or {})["operation"] for one in metadata.snapshots]


def test_a_static_overwrite_replaces_all_rows(writer: SinkWriter) -> None:
    writer.append([rows("AA", 1, 2), rows("UA", 3)])
    writer.overwrite([rows("AA", 4), rows("UA", 5, 6)])
    assert ids(writer) == [4, 5, 6]
    assert labels(writer) == ["append", "overwrite"]
    writer.overwrite([[], []])
    assert ids(writer) == []


def test_a_filter_limits_what_is_replaced(writer: SinkWriter) -> None:
    writer.append([rows("AA", 1, 2), rows("UA", 3)])
    writer.overwrite([rows("UA", 4)], {"overwrite-filter": "Carrier = 'UA'"})
    assert ids(writer) == [1, 2, 4]
    writer.overwrite([[]], {"overwrite-filter": "carrier = 'AA'"})
    assert ids(writer) == [4]
    writer.append([rows("UA", 5, 6)])
    with pytest.raises(PublishError, match=r"did not land, and is not kept: .*partial"):
        writer.overwrite([rows("UA", 7)], {"overwrite-filter": "id = 5"})
    assert ids(writer) == [4, 5, 6]


def test_a_dynamic_overwrite_replaces_the_partitions_of_its_rows(writer: SinkWriter) -> None:
    writer.append([rows("AA", 1, 2), rows("UA", 3)])
    writer.overwrite([rows("UA", 4), rows("UA", 5)], DYNAMIC)
    assert ids(writer) == [1, 2, 4, 5]
    assert writer.overwrite([[], []], DYNAMIC) is None
    assert ids(writer) == [1, 2, 4, 5]


@pytest.mark.parametrize("mode", ["static", "dynamic"])
@pytest.mark.parametrize("before", [[], [1]])
def test_an_isolation_level_holds_since_the_write_began(
    harness: RealHarness, mode: str, before: list[int]
) -> None:
    name = f"db.isolated_{mode}_{len(before)}"
    asyncio.run(harness.create_table(name))
    writer = SinkWriter(harness, name, SCHEMA)
    if before:
        writer.append([rows("UA", *before)])
    checked = {"overwrite-mode": mode, **SERIALIZABLE}
    beaten = writer.begin(checked)
    writer.append([rows("UA", 2)])
    with pytest.raises(PublishError, match=r"not kept: added: snapshot .* run the job again"):
        beaten.end([rows("UA", 3)])
    assert ids(writer) == [*before, 2]
    writer.begin(checked).end([rows("UA", 3)])
    assert ids(writer) == [3]
    snapshot = writer.append([rows("UA", 4)])
    writer.append([rows("UA", 5)])
    assert snapshot is not None
    with pytest.raises(PublishError, match="not kept: added"):
        writer.overwrite(
            [rows("UA", 6)], {"validate-from-snapshot-id": str(snapshot.snapshot_id), **checked}
        )


def test_a_conflict_that_nobody_waits_for_is_kept(writer: SinkWriter) -> None:
    beaten = writer.begin({**SERIALIZABLE, "wait": "durable"})
    writer.append([rows("UA", 1)])
    beaten.end([rows("UA", 2)])
    # Its request lies behind: whoever waits for this one has seen that one ended.
    writer.append([rows("UA", 3)])
    assert ids(writer) == [1, 3]
    kept = [one for one in asyncio.run(writer.harness.quarantined()) if not one.is_told_only]
    assert [(one.table, one.conflict) for one in kept] == [(writer.table, "added")]


def test_a_named_overwrite_that_is_told_of_a_conflict_runs_again(writer: SinkWriter) -> None:
    checked = {"producer": "nightly", **SERIALIZABLE}
    beaten = writer.begin({"epoch": "1", **checked})
    writer.append([rows("UA", 1)])
    with pytest.raises(PublishError, match="did not land"):
        beaten.end([rows("UA", 2)])
    writer.overwrite([rows("UA", 3)], {"epoch": "2", **checked})
    assert ids(writer) == [3]
    receipt = writer.overwrite([rows("UA", 4)], {"epoch": "2", **checked})
    assert receipt is not None
    assert receipt.duplicate
    assert ids(writer) == [3]


def test_complete_mode_has_each_epoch_once_and_the_last_one_counts(writer: SinkWriter) -> None:
    for epoch in range(3):
        result = [rows("AA", *range(epoch)), rows("UA", 10 + epoch), []]
        for _ in range(2 if epoch == 1 else 1):  # Spark runs one of them twice
            writer.micro_batch(run_of("counts", epoch), result, complete=True)
    writer.micro_batch(run_of("counts", 2), [rows("AA", 99)], COMMITTED, complete=True)
    assert ids(writer) == [0, 1, 12]
    writer.micro_batch(run_of("counts", 3), [[], []], COMMITTED, complete=True)
    assert ids(writer) == []


def test_the_base_of_an_isolated_overwrite_is_the_head_of_its_branch(writer: SinkWriter) -> None:
    writer.append([rows("UA", 1)])
    table = writer.table
    catalog = ForeignCatalog("frazil", uri=f"sqlite:///{writer.harness.catalog_file}")
    foreign = catalog.load_table(table)
    snapshot = foreign.current_snapshot()
    assert snapshot is not None
    foreign.manage_snapshots().create_branch(snapshot.snapshot_id, "audit").commit()
    writer.append([rows("UA", 2)])  # which is on main alone
    on_branch = {"branch": "audit", **SERIALIZABLE}
    writer.append([rows("UA", 3)], {"branch": "audit"})
    writer.overwrite([rows("UA", 4)], on_branch)
    beaten = writer.begin(on_branch)
    writer.append([rows("UA", 5)], {"branch": "audit"})
    with pytest.raises(PublishError, match="not kept: added: snapshot"):
        beaten.end([rows("UA", 6)])
    assert ids(writer) == [1, 2]
    scan = catalog.load_table(table).scan().use_ref("audit")
    assert sorted(scan.to_arrow().column("id").to_pylist()) == [4, 5]
