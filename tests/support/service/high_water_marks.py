"""Shows the effect of a table's high-water mark on a running committer."""

from __future__ import annotations

from committer.request.table_identifier import TableIdentifier
from tests.support.faults.counting_storage import CountingStorage
from tests.support.service.service_harness import ServiceHarness

NAME = TableIdentifier.parse("db.flights")


def is_frozen(harness: ServiceHarness) -> bool:
    """Return whether metrics, `/status` and `/readyz` report a frozen table."""
    samples = harness.metrics.instruments.samples()
    values = [one.value for one in samples if one.name == "frazil_table_frozen"]
    said = harness.status_collector.status().conditions.get(f"table {NAME}", "")
    assert ("does not hold what was committed" in said) == (values == [1.0])
    return values == [1.0]


class PickyHighWaterMarks(CountingStorage):
    """Does not replace one object."""

    refused = ""

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        self.is_away = location == self.refused
        try:
            return await super().replace(location, content, etag=etag)
        finally:
            self.is_away = False
