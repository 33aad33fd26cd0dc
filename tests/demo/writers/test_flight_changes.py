"""The input of the second act: what its verdict rests on holds for any number of flights."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from committer.demo.writers.flight_changes import (
    CHANGE_COLUMNS,
    TABLE_COLUMNS,
    ChangeInput,
    latest_rows,
    plan_changes,
    write_changes,
)
from committer.demo.writers.flights import read_flights

STREAMS, BATCHES = 4, 6


@pytest.fixture(scope="module")
def flights() -> pa.Table:
    return read_flights(2_000)


@pytest.fixture(scope="module")
def changes(flights: pa.Table) -> ChangeInput:
    return plan_changes(flights, STREAMS, BATCHES)


def keys(rows: pa.Table) -> set[int]:
    return set(rows["id"].to_pylist())


def test_each_flight_belongs_to_one_stream_or_to_the_batch(
    flights: pa.Table, changes: ChangeInput
) -> None:
    groups = [keys(pa.concat_tables(batches)) for batches in changes.streams]
    groups.append(keys(changes.corrections))
    assert sorted(key for group in groups for key in group) == [*range(flights.num_rows)]
    assert groups[-1] == set(range(changes.first_correction, flights.num_rows))
    assert keys(changes.loaded) < keys(changes.corrections)
    assert [len(batches) for batches in changes.streams] == [BATCHES] * STREAMS


def test_a_key_changes_in_order_across_micro_batches_and_out_of_order_within_one(
    changes: ChangeInput,
) -> None:
    """Between micro-batches the later one counts, whatever the sequence column says."""
    out_of_order = across = 0
    for batches in changes.streams:
        before: dict[int, int] = {}
        for batch in batches:
            here: dict[int, list[int]] = {}
            pairs = zip(batch["id"].to_pylist(), batch["seq"].to_pylist(), strict=True)
            for key, sequence in pairs:
                here.setdefault(key, []).append(sequence)
            for key, sequences in here.items():
                assert before.get(key, 0) < min(sequences)
                across += key in before
                out_of_order += sequences != sorted(sequences)
            before |= {key: max(sequences) for key, sequences in here.items()}
    assert out_of_order > 50
    assert across > 500


@pytest.mark.parametrize("rows", [1, 2, 7, 2_000])
def test_the_latest_rows_are_all_flights_that_were_not_canceled(
    flights: pa.Table, rows: int
) -> None:
    some = flights.slice(0, rows)
    latest = latest_rows(plan_changes(some, STREAMS, BATCHES).all_changes)
    flown = [
        {"id": key, **row}
        for key, row in enumerate(some.to_pylist())
        if row["dep_time"] is not None
    ]
    assert latest.to_pylist() == flown
    assert latest.schema.names == list(TABLE_COLUMNS)


def test_canceled_flights_are_deleted_by_streams_and_by_the_merge(changes: ChangeInput) -> None:
    for rows in (pa.concat_tables(changes.streams[0]), changes.corrections):
        assert {"u", "d"} <= set(rows["op"].to_pylist())


def test_files_hold_what_was_planned(changes: ChangeInput, tmp_path: Path) -> None:
    write_changes(changes, tmp_path)
    for number, batches in enumerate(changes.streams, start=1):
        files = sorted((tmp_path / f"stream-{number:02d}").iterdir())
        assert [pq.ParquetFile(path).read() for path in files] == batches
        assert [path.stat().st_mtime for path in files] == sorted(
            {path.stat().st_mtime for path in files}
        )
    assert pq.ParquetFile(tmp_path / "corrections.parquet").read().equals(changes.corrections)
    loaded = pq.ParquetFile(tmp_path / "loaded.parquet").read()
    assert loaded.equals(changes.loaded)
    assert loaded.schema.names == list(CHANGE_COLUMNS)
