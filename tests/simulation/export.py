"""A table of a simulation as files that any engine can read.

Metadata of committers and other engines stays byte for byte; the data files, which have no content
in a simulation, become Parquet files with as many rows as their entries say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ports.pointer_swap import LoadedTable
from tests.simulation.scenario import Scenario, build_sim_table
from tests.simulation.servers import Servers

# Rows of the n-th file begin with this many times n.
IDS_A_FILE = 1_000


def rehoused(scenario: Scenario, warehouse: Path) -> list[LoadedTable]:
    """Return the tables of a scenario with locations in the warehouse of the export."""
    return [
        build_sim_table(
            scenario.seed,
            table.identifier.name,
            properties=table.metadata.properties,
            version=table.metadata.format_version,
            warehouse=warehouse.as_uri(),
        )
        for table in scenario.tables
    ]


def export(servers: Servers, metadata: TableMetadata, rows: dict[str, int]) -> Sequence[int]:
    """Write everything below the table's location to disk. `rows` of each live data file, by its
    location. Returns the ids of all live rows.
    """
    ids: list[int] = []
    for location, content in asyncio.run(_objects(servers, metadata.location)).items():
        if not location.endswith(".parquet"):
            _write(location, content)
    for number, (location, count) in enumerate(sorted(rows.items())):
        own = range(number * IDS_A_FILE, number * IDS_A_FILE + count)
        ids.extend(own)
        _write(location, _parquet(own))
    return ids


async def _objects(servers: Servers, location: str) -> dict[str, bytes]:
    found = [one.location async for one in servers.storage.list(location)]
    return {one: await servers.storage.get(one) for one in found}


def _write(location: str, content: bytes) -> None:
    path = Path(location.removeprefix("file://"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _parquet(ids: range) -> bytes:
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": list(ids)}, schema=schema), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
