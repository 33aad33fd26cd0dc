"""The verdict by its real readers: a table that holds a row too many or too few fails it.

PyIceberg writes here, because what is proven are the readers and the demo's own table.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from committer.demo.demo_readers import (
    TableReport,
    read_by_duckdb,
    read_by_pyiceberg,
    sums_by_carrier,
)
from committer.demo.demo_table import TABLE, create_table, flights_table
from committer.demo.demo_verdict import Reading, differences, disagreements
from committer.demo.hints import write_query_script
from committer.demo.writers.flights import read_flights
from committer.settings.service_settings import Settings

ROWS = 500


class Table:
    """The demo's table, in a folder."""

    def __init__(self, settings: Settings) -> None:
        self._catalog = settings.catalog.all_properties

    def append(self, rows: pa.Table) -> None:
        catalog = SqlCatalog(self._catalog.name, uri=self._catalog.uri)
        catalog.load_table(str(TABLE)).append(rows)
        catalog.close()

    def report(self) -> TableReport:
        return read_by_pyiceberg(self._catalog, str(TABLE))

    def readings(self) -> tuple[Reading, Reading]:
        report = self.report()
        return report.reading, read_by_duckdb(report.metadata_location)


@pytest.fixture
async def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    monkeypatch.setenv("FRAZIL_QUEUE__URL", "none")
    settings = Settings(home=tmp_path)
    await create_table(settings, flights_table())
    return Table(settings)


@pytest.mark.thorough
def test_both_readers_find_exactly_what_was_put_in(table: Table) -> None:
    flights = read_flights(ROWS)
    table.append(flights.slice(0, 200))
    table.append(flights.slice(200))
    expected = sums_by_carrier(flights)
    one, other = table.readings()
    assert (one.reader, other.reader) == ("PyIceberg", "DuckDB")
    assert differences(expected, one) == differences(expected, other) == []
    assert disagreements(one, other) == []
    assert len(one.paths) > 2
    snapshots = table.report().snapshots
    assert [(each.rows, each.total_rows) for each in snapshots] == [(200, 200), (300, 500)]


@pytest.mark.thorough
def test_a_row_too_many_or_too_few_fails_both_readers(table: Table) -> None:
    flights = read_flights(ROWS)
    table.append(flights.slice(0, ROWS - 1))
    for reading in table.readings():
        assert differences(sums_by_carrier(flights), reading)[0].endswith("499 rows, expected 500")
    table.append(flights.slice(ROWS - 2))
    for reading in table.readings():
        assert differences(sums_by_carrier(flights), reading)[0].endswith("501 rows, expected 500")


@pytest.mark.thorough
def test_an_empty_table_has_no_rows(table: Table) -> None:
    one, other = table.readings()
    assert dict(one.carriers) == dict(other.carriers) == {}
    assert list(one.paths) == list(other.paths) == []


@pytest.mark.thorough
def test_the_query_script_answers_sql(
    table: Table,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table.append(read_flights(3))
    script = write_query_script(tmp_path, table.report())
    monkeypatch.setattr("sys.argv", [str(script), "SELECT 'n=' || count(*) FROM flights"])
    exec(compile(script.read_text(), script, "exec"), {})
    assert "n=3" in capsys.readouterr().out
