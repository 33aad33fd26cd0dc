"""Acts on a harness of several tables: creates them, publishes transactions, counts what landed."""

from __future__ import annotations

from committer.ports.pointer_swap import LoadedTable
from committer.request.request_format import EncodedRequest
from tests.support.service.service_harness import ServiceHarness

NAMES = ("db.flights", "db.ships", "db.trains")


async def create(harness: ServiceHarness, *names: str) -> list[LoadedTable]:
    return [await harness.create_table(name) for name in names or NAMES]


async def publish(harness: ServiceHarness, requests: list[EncodedRequest]) -> None:
    for sealed in requests:
        await harness.publish(sealed)


async def counts(harness: ServiceHarness, *names: str) -> list[int]:
    """Return how many live files each table has."""
    return [len(await harness.live_files(name)) for name in names or NAMES]


async def transactions(harness: ServiceHarness, name: str) -> list[str | None]:
    """Return what the snapshots of a table say of their transactions."""
    metadata = await harness.load(name)
    return [(one.summary or {}).get("frazil.transaction") for one in metadata.snapshots]
