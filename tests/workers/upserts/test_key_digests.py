from __future__ import annotations

from decimal import Decimal
from uuid import uuid4

import pyarrow as pa

from workers.upserts.key_digests import digests_of, shared_by


def keys(*columns: pa.Array) -> pa.RecordBatch:
    return pa.record_batch(list(columns), [f"k{at}" for at in range(len(columns))])


def of(*numbers: int, salt: bytes = b"salt") -> bytes:
    return digests_of(keys(pa.array(numbers, pa.int64())), salt)


def test_a_key_that_two_tasks_have_is_found() -> None:
    tasks = [of(1, 2, 3), b"", of(4, 5), of(6, 3)]
    assert shared_by(tasks) == (0, 3)
    assert shared_by(tasks[:3]) is None
    assert shared_by([]) is None


def test_the_digest_is_of_the_whole_key() -> None:
    first = keys(pa.array(["ab", "a"]), pa.array(["c", "bc"]))
    second = keys(pa.array(["ab", "abc"]), pa.array(["bc", ""]))
    assert shared_by([digests_of(each, b"s") for each in (first, second)]) is None
    assert shared_by([digests_of(each, b"s") for each in (first, first)]) == (0, 1)


def test_keys_of_any_type_have_digests() -> None:
    columns = (
        pa.array([Decimal("1.20")], pa.decimal128(9, 2)),
        pa.array([b"\0\1"]),
        pa.array([20_000], pa.int32()).view(pa.date32()),
        pa.array([1], pa.timestamp("us", "UTC")),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([uuid4().bytes], pa.binary(16))),
        pa.array([True]),
    )
    found = digests_of(keys(*columns), b"s")
    assert len(found) == 8
    assert found == digests_of(keys(*columns), b"s")


def test_another_run_draws_other_digests() -> None:
    assert of(1) != of(1, salt=b"other")


def test_no_two_of_many_keys_are_taken_for_one() -> None:
    assert shared_by([of(*range(20_000)), of(*range(20_000, 40_000))]) is None
