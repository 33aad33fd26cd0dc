"""Transforms of whole columns equal the reference's, value by value; batches fall apart by them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg_core import transform as core

from committer.errors import InvalidMetadataError, PublishError, UnsupportedError
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.values.single_value import parse_json_value
from committer.iceberg.values.transforms import (
    IDENTITY,
    VOID,
    Transform,
    bucket_hash,
    parse_transform,
)
from committer.iceberg.values.type_json import parse_type
from committer.iceberg.values.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    UUIDType,
)
from tests.support.builders.fixtures import vectors
from tests.support.iceberg.extremes import CASES, EXTREMES
from tests.support.workers.tables import optional, schema, struct
from workers.arrow.arrow_schema import arrow_schema
from workers.arrow.arrow_types import arrow_type
from workers.arrow.arrow_values import to_array, to_values
from workers.arrow.partitioning import (
    Partition,
    Partitioner,
    apply_transform,
    bind_partitioner,
    partition_key,
)


def spec(*fields: tuple[int, str, str]) -> PartitionSpec:
    return PartitionSpec(
        1,
        tuple(
            PartitionField((source,), 1000 + at, name, parse_transform(text))
            for at, (source, name, text) in enumerate(fields)
        ),
    )


def transformed(text: str, kind: IcebergType, array: pa.Array) -> list[object]:
    transform = parse_transform(text)
    return to_values(apply_transform(transform, array), transform.result_type(kind))


# --- Equal to the reference -----------------------------------------------------------------------


@cache
def transform_cases() -> dict[tuple[str, str], tuple[list[object], list[object]]]:
    """Return values and results of Iceberg Java by type and transform."""
    grouped: dict[tuple[str, str], tuple[list[object], list[object]]] = {}
    for case in vectors("transforms")["cases"]:
        kind = parse_type(case["type"])
        for text, answer in case["results"].items():
            values, results = grouped.setdefault((case["type"], text), ([], []))
            result_type = parse_type(answer["result_type"])
            values.append(parsed(kind, case["value"]))
            results.append(parsed(result_type, answer["result"]))
    return grouped


def parsed(kind: IcebergType, value: object) -> object:
    """Parse a value of the vectors: JSON has no NaN and no infinity, they are text."""
    if isinstance(kind, FloatType | DoubleType) and isinstance(value, str):
        return float(value)
    return None if value is None else parse_json_value(kind, value)


@pytest.mark.parametrize(("kind", "transform"), CASES, ids=str)
def test_columns_and_values_agree_at_the_ends_of_each_type(
    kind: IcebergType, transform: Transform
) -> None:
    """Also about what wraps around."""
    values = [None, *EXTREMES[kind]]
    found = transformed(str(transform), kind, to_array(values, kind))
    assert found == [transform.apply(kind, value) for value in values]


def test_hours_beyond_32_bits_wrap_around_as_iceberg_java_s_do() -> None:
    hours = [2**31 - 1, 2**31, -(2**31) - 1]
    times = to_array([hour * 3_600_000_000 for hour in hours], TimestampType())
    assert transformed("hour", TimestampType(), times) == [2**31 - 1, -(2**31), 2**31 - 1]


def test_a_decimal_that_needs_another_digit_is_refused_with_its_row_s_value() -> None:
    table = schema(optional(7, "price", DecimalType(4, 2)))
    partitioner = bind_partitioner(spec((7, "p", "truncate[50]")), table, arrow_schema(table))
    array = to_array(
        [Decimal("1.00"), None, Decimal("-99.99"), Decimal("99.99")], DecimalType(4, 2)
    )
    batch = pa.RecordBatch.from_arrays([array], schema=arrow_schema(table))
    assert len(list(partitioner.split(batch.slice(0, 2)))) == 2
    message = (
        r"column price has the value -99.99, which partition field p \(truncate\[50\]\) rounds"
        r" down to -100.00: a decimal\(4, 2\) cannot hold that"
    )
    with pytest.raises(PublishError, match=message):
        list(partitioner.split(batch))


def test_every_transform_of_the_vectors_gives_the_reference_s_result() -> None:
    assert len(transform_cases()) > 150
    for (type_text, text), (values, results) in transform_cases().items():
        kind = parse_type(type_text)
        array = to_array([None, *values, None], kind)
        got = transformed(text, kind, array)
        assert list(map(repr, got)) == list(map(repr, [None, *results, None])), (type_text, text)
        part = transformed(text, kind, array.slice(1, 9))
        assert list(map(repr, part)) == list(map(repr, results[:9])), (type_text, text)
        assert transformed(text, kind, array.slice(0, 0)) == [], (type_text, text)


def as_core(array: pa.Array) -> list[object]:
    return to_values(array, DateType() if array.type == pa.date32() else IntegerType())


@pytest.mark.parametrize("name", ["long", "timestamp", "timestamptz_ns", "date", "decimal", "text"])
def test_many_random_values_agree_with_another_implementation(name: str) -> None:
    rng = np.random.default_rng(20)
    longs = rng.integers(-(2**62), 2**62, 4000)
    arrays = {
        "long": pa.array(longs),
        "timestamp": pa.array(longs >> 11).view(pa.timestamp("us")),
        "timestamptz_ns": pa.array(longs).view(pa.timestamp("ns", "UTC")),
        "date": pa.array((longs >> 44).astype(np.int32)).view(pa.date32()),
        "decimal": pa.array(
            [Decimal(int(v)).scaleb(-2) for v in longs[:500]], pa.decimal128(38, 2)
        ),
        "text": pa.array(["é" * int(v % 90) + "😀" * int(v % 3) for v in longs]),
    }
    array = arrays[name]
    pairs = [("bucket[97]", core.bucket(array, 97))]
    if name in ("long", "decimal", "text"):
        pairs.append(("truncate[7]", core.truncate(array, 7)))
    if name in ("timestamp", "timestamptz_ns", "date"):
        pairs += [(unit, getattr(core, unit)(array)) for unit in ("year", "month", "day")]
    if name in ("timestamp", "timestamptz_ns"):
        pairs.append(("hour", core.hour(array)))
    for text, expected in pairs:
        assert apply_transform(parse_transform(text), array).to_pylist() == as_core(expected), text


@settings(max_examples=150, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=40) | st.binary(min_size=250, max_size=270)))
def test_bytes_of_any_length_hash_like_one_by_one(values: list[bytes | None]) -> None:
    expected = [None if v is None else bucket_hash(BinaryType())(v) & 0x7FFFFFFF for v in values]
    wide = 2**31 - 1
    expected = [None if v is None else v % wide for v in expected]
    assert transformed(f"bucket[{wide}]", BinaryType(), pa.array(values, pa.binary())) == expected


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(-(10**38) + 1, 10**38 - 1), max_size=20),
    st.sampled_from([1, 7, 10, 2**31 - 1]),
)
def test_decimals_of_any_size_are_cut_and_hashed_like_one_by_one(
    numbers: list[int], width: int
) -> None:
    kind = DecimalType(38, 0)
    values: list[object] = [Decimal(number) for number in numbers]
    array = to_array(values, kind)
    cut = parse_transform(f"truncate[{width}]")
    # Cutting may need a 39th digit, which no file can hold; Arrow would not show it.
    fits = [at for at, v in enumerate(numbers) if abs(v // width * width) < 10**38]
    result = apply_transform(cut, array).take(pa.array(fits, pa.int64()))
    assert result.to_pylist() == [cut.apply(kind, values[at]) for at in fits]
    hashed = parse_transform("bucket[1000]")
    assert transformed("bucket[1000]", kind, array) == [hashed.apply(kind, v) for v in values]


def test_an_unknown_transform_is_refused() -> None:
    table = schema(optional(1, "id", LongType()))
    with pytest.raises(UnsupportedError, match="zorder"):
        bind_partitioner(spec((1, "p", "zorder")), table, arrow_schema(table))


def test_fixed_partition_values_are_refused() -> None:
    table = schema(optional(1, "code", FixedType(4)))
    with pytest.raises(UnsupportedError, match="identity of a fixed column"):
        bind_partitioner(spec((1, "p", "identity")), table, arrow_schema(table))
    for transform in ("bucket[4]", "void"):
        bind_partitioner(spec((1, "p", transform)), table, arrow_schema(table))


def test_a_source_column_that_the_table_lacks_is_refused() -> None:
    table = schema(optional(1, "id", LongType()))
    with pytest.raises(InvalidMetadataError, match="field id 7"):
        bind_partitioner(spec((7, "p", "identity")), table, arrow_schema(table))


# --- Splitting ------------------------------------------------------------------------------------

TABLE = schema(
    optional(1, "id", LongType()),
    optional(2, "carrier", StringType()),
    optional(3, "at", TimestampType()),
    optional(4, "place", struct(optional(5, "zone", IntegerType()))),
    optional(6, "ratio", DoubleType()),
    optional(7, "key", UUIDType()),
)


def partitioner(*fields: tuple[int, str, str]) -> Partitioner:
    return bind_partitioner(spec(*fields), TABLE, arrow_schema(TABLE))


def rows(count: int) -> pa.RecordBatch:
    zones = pa.array([None if n % 5 == 0 else n % 3 for n in range(count)], pa.int32())
    place = pa.StructArray.from_arrays(
        [zones], fields=list(arrow_schema(TABLE).field("place").type),
        mask=pa.array([n % 7 == 0 for n in range(count)], pa.bool_()),
    )  # fmt: skip
    ratios = [0.0, -0.0, float("nan"), None, 1.5]
    columns = [
        pa.array(range(count), pa.int64()),
        pa.array([None if n % 11 == 0 else "abc"[n % 3] for n in range(count)], pa.string()),
        pa.array([n * 10**10 - 10**13 for n in range(count)], pa.int64()).view(pa.timestamp("us")),
        place,
        pa.array([ratios[n % 5] for n in range(count)], pa.float64()),
        to_array([UUID(int=n % 2) for n in range(count)], UUIDType()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(TABLE))


def ids_by_partition(
    parts: Iterator[tuple[Partition, pa.RecordBatch]],
) -> dict[Partition, list[int]]:
    found: dict[Partition, list[int]] = {}
    for partition, part in parts:
        part.validate(full=True)
        assert partition_key(partition) not in found
        found[partition_key(partition)] = part.column(0).to_pylist()
    return found


@pytest.mark.parametrize(
    "fields",
    [
        [(2, "carrier", "identity")],
        [(3, "day", "day"), (2, "bucket", "bucket[4]")],
        [(5, "zone", "identity"), (1, "id", "truncate[100]"), (3, "year", "year")],
        [(6, "ratio", "identity")],
        [(7, "key", "identity"), (1, "id", "void")],
    ],
)
def test_rows_go_to_the_partition_of_their_own_values_and_keep_their_order(
    fields: list[tuple[int, str, str]],
) -> None:
    batch = rows(500).slice(3)
    expected: dict[Partition, list[int]] = {}
    names = ["id", "carrier", "at", "place", "ratio", "key"]
    columns = dict(zip(names, batch.columns, strict=True))
    sources = {
        1: to_values(columns["id"], LongType()),
        2: to_values(columns["carrier"], StringType()),
        3: to_values(columns["at"], TimestampType()),
        5: [None if place is None else place["zone"] for place in columns["place"].to_pylist()],
        6: to_values(columns["ratio"], DoubleType()),
        7: to_values(columns["key"], UUIDType()),
    }
    for row in range(len(batch)):
        partition = tuple(
            field.transform.apply(TABLE.field(field.source_id).field_type, value)  # type: ignore[union-attr]
            for field in spec(*fields).fields
            for value in [sources[field.source_id][row]]
        )
        expected.setdefault(partition_key(partition), []).append(sources[1][row])  # type: ignore[arg-type]
    assert ids_by_partition(partitioner(*fields).split(batch)) == expected


def test_an_unpartitioned_spec_and_a_batch_of_one_partition_are_not_copied() -> None:
    batch = rows(50)
    [(nothing, whole)] = partitioner().split(batch)
    assert nothing == () and whole is batch
    [(partition, whole)] = partitioner((1, "id", "truncate[1000]")).split(batch)
    assert partition == (0,) and whole is batch


def test_a_part_does_not_keep_the_rows_of_the_other_parts_alive() -> None:
    batch = rows(10_000)
    parts = dict(partitioner((1, "id", "truncate[9990]")).split(batch))
    assert parts[(9990,)].get_total_buffer_size() < 4096


def test_an_empty_batch_has_no_partition() -> None:
    assert list(partitioner((2, "carrier", "identity")).split(rows(0))) == []


def test_a_dropped_source_column_gives_null() -> None:
    dropped = PartitionSpec(1, (PartitionField((99,), 1000, "gone", VOID),))
    [(partition, _)] = bind_partitioner(dropped, TABLE, arrow_schema(TABLE)).split(rows(3))
    assert partition == (None,)


def test_more_combinations_than_a_number_holds_stay_apart() -> None:
    # 2048 ** 7 is a multiple of 2 ** 64: without care the first column would not count.
    count, width = 4096, 8
    table = schema(*(optional(n, f"c{n}", LongType()) for n in range(1, width + 1)))
    whole = PartitionSpec(
        1, tuple(PartitionField((n,), 999 + n, f"c{n}", IDENTITY) for n in range(1, width + 1))
    )
    halves = [pa.array(np.arange(count) % 2048) for _ in range(width - 1)]
    columns = [pa.array(np.arange(count)), *halves]
    batch = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(table))
    parts = list(bind_partitioner(whole, table, arrow_schema(table)).split(batch))
    assert len(parts) == count
    assert all(tuple(part.to_pylist()[0].values()) == partition for partition, part in parts)


def test_partition_keys_know_nan_and_signed_zero() -> None:
    assert partition_key((float("nan"),)) == partition_key((float("nan"),))
    assert partition_key((0.0,)) != partition_key((-0.0,))
    assert arrow_type(DoubleType()) == pa.float64()
