"""Waiting rows keep their order and cost about what they hold, however they trickle in."""

from __future__ import annotations

import pyarrow as pa

from workers.files.row_buffer import RowBuffer, batch_bytes, owned_bytes


def batch(start: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(start, start + count), pa.int64())})


def test_rows_come_out_in_the_order_they_came() -> None:
    buffer = RowBuffer()
    sizes = [1, 5, 100_000, 1, *([1] * 200), 50_000, 2]
    for at, size in enumerate(sizes):
        rows = batch(sum(sizes[:at]), size)
        buffer.add(rows, owned_bytes(rows))
    assert buffer.num_rows == sum(sizes)
    assert buffer.take_all().column("n").to_pylist() == list(range(sum(sizes)))
    assert buffer.num_rows == buffer.size_bytes == 0


def test_a_trickle_of_rows_does_not_cost_an_array_each() -> None:
    buffer = RowBuffer()
    for number in range(10_000):
        row = batch(number, 1)
        buffer.add(row, owned_bytes(row))
    assert buffer.size_bytes < 10_000 * 8 * 2
    kept = buffer.take_all()
    assert kept.column("n").num_chunks < 250


def test_a_slice_costs_its_own_rows() -> None:
    assert batch_bytes(batch(0, 100_000).slice(5, 10)) < 500


def test_rows_that_own_their_memory_cost_as_much_by_either_count() -> None:
    owned = batch(0, 100_000)
    assert abs(owned_bytes(owned) - batch_bytes(owned)) < 100
