"""Z-order keys: bits of each column in turn, and the order of each column alone."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from committer.errors import UnsupportedError
from workers.compaction.zorder import zorder_keys


def keys(*columns: pa.Array) -> list[bytes]:
    found: list[bytes] = zorder_keys(columns).to_pylist()
    return found


def test_bits_come_from_each_column_in_turn() -> None:
    first, second = pa.array([b"\xf0" + b"\0" * 7]), pa.array([b"\x00\xff" + b"\0" * 6])
    assert keys(first, second) == [b"\xaa\x00\x55\x55" + b"\0" * 12]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([None, 1 - 2**63, -1, 0, 1, 2**63 - 1], pa.int64()),
        pa.array([None, -(2**31), -1, 0, 7], pa.int32()),
        pa.array([None, float("-inf"), -2.5, -1e-300, 0.0, 1e-300, 2.5, float("inf")]),
        pa.array([None, -1.5, 0.0, 3.5], pa.float32()),
        pa.array([None, Decimal("-9.99"), Decimal("0.00"), Decimal("1.01")], pa.decimal128(5, 2)),
        pa.array(["", "a", "ab", "b", "\u00e9"]),
        pa.array([b"\x00\x01", b"\x7f", b"\xff"]),
        pa.array([b"\x00" * 16, b"\x01" * 16, b"\xff" * 16], pa.binary(16)),
        pa.array([False, True]),
    ],
    ids=lambda column: str(column.type),
)
def test_a_column_alone_keeps_its_order(column: pa.Array) -> None:
    found = keys(column)
    assert found == sorted(found) and len(set(found)) == len(found)
    assert keys(column.slice(1)) == found[1:]


def test_nulls_are_the_least_and_need_no_other_rows() -> None:
    assert keys(pa.array([None], pa.int64())) == keys(pa.nulls(1)) == [b"\0" * 8]
    assert keys(pa.array([None, "a"])) == [b"\0" * 8, b"a" + b"\0" * 7]
    assert keys(pa.array([], pa.int64()), pa.array([], pa.string())) == []


def test_a_nested_column_has_no_place_in_an_order() -> None:
    with pytest.raises(UnsupportedError, match="list"):
        zorder_keys([pa.array([[1]])])
