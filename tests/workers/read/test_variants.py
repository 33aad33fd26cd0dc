"""Variants read from Parquet files, whole and shredded, decoded by Spark's own reader."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql.types import VariantVal

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.values.types import LongType, VariantType
from tests.support.workers.reading import parquet_file, read_all, read_of, task_of
from tests.support.workers.tables import optional, required, schema
from workers.arrow.arrow_types import FIELD_ID
from workers.read.variant_bytes import encode_object, fields_of
from workers.read.variants import plain_variants

KNOWN = schema(required(1, "id", LongType()), optional(2, "v", VariantType()))
ONE = b"\x0c\x01"
X = b"\x05x"


def metadata_of(*names: str) -> bytes:
    """Encode the names of a variant, with offsets of one byte."""
    texts = [name.encode() for name in names]
    ends = [sum(map(len, texts[:at])) for at in range(len(texts) + 1)]
    return bytes((1, len(texts), *ends)) + b"".join(texts)


def read(folder: Path, column: pa.Array) -> list[Any]:
    """Write a column of variants, and return what Spark makes of each that is read."""
    fields = [
        pa.field("id", pa.int64(), False, {FIELD_ID: "1"}),
        pa.field("v", column.type, True, {FIELD_ID: "2"}),
    ]
    ids = pa.array(range(len(column)), pa.int64())
    file = parquet_file(folder, pa.Table.from_arrays([ids, column], schema=pa.schema(fields)))
    found = read_all(read_of(KNOWN), task_of(file)).column("v").to_pylist()
    return [
        None if one is None else VariantVal(one["value"], one["metadata"]).toPython()
        for one in found
    ]


def shredded(typed: pa.Array, *values: bytes | None, names: tuple[str, ...] = ()) -> pa.Array:
    metadata = pa.array([metadata_of(*names)] * len(typed), pa.binary())
    rest = pa.array([*values, *([None] * (len(typed) - len(values)))], pa.binary())
    return pa.StructArray.from_arrays([metadata, rest, typed], ["metadata", "value", "typed_value"])


def test_variants_that_are_whole_are_read_as_they_are(tmp_path: Path) -> None:
    rows = [{"metadata": metadata_of(), "value": ONE}, None]
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    assert read(tmp_path, pa.array(rows, kind)) == [1, None]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), [True, False]),
        (pa.int8(), [-7]),
        (pa.int16(), [300]),
        (pa.int32(), [1 << 30]),
        (pa.int64(), [-(1 << 60)]),
        (pa.float64(), [0.1]),
        (pa.float32(), [1.5]),
        (pa.decimal128(9, 2), [Decimal("-12.34")]),
        (pa.decimal128(18, 2), [Decimal("1234567890.12")]),
        (pa.decimal128(38, 2), [Decimal("-12345678901234567890.12")]),
        (pa.string(), ["é", "x" * 63, "y" * 64]),
        (pa.binary(), [b"\xff"]),
    ],
    ids=str,
)
def test_shredded_values_are_put_back(tmp_path: Path, kind: pa.DataType, values: list[Any]) -> None:
    typed = pa.array([None, *values], kind)
    assert read(tmp_path, shredded(typed, X)) == ["x", *values]


def test_times_and_uuids_are_put_back(tmp_path: Path) -> None:
    for kind, number in (
        (pa.date32(), 11),
        (pa.timestamp("us", "UTC"), 12),
        (pa.timestamp("us"), 13),
        (pa.time64("us"), 17),
        (pa.timestamp("ns", "UTC"), 18),
        (pa.timestamp("ns"), 19),
    ):
        width = kind.bit_width
        typed = pa.array([5], pa.int32() if width == 32 else pa.int64()).view(kind)
        assert values_of(shredded(typed)) == [
            bytes((number << 2,)) + (5).to_bytes(width // 8, "little")
        ]
    uuid = UUID(int=7)
    typed = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([uuid.bytes], pa.binary(16)))
    assert values_of(shredded(typed)) == [bytes((20 << 2,)) + uuid.bytes]


def values_of(column: pa.Array) -> list[bytes]:
    found: list[bytes] = [one["value"] for one in plain_variants(column).to_pylist()]
    return found


def member(typed: pa.Array, *values: bytes | None) -> pa.Array:
    rest = pa.array([*values, *([None] * (len(typed) - len(values)))], pa.binary())
    return pa.StructArray.from_arrays([rest, typed], ["value", "typed_value"])


def test_objects_have_their_shredded_fields_and_the_others(tmp_path: Path) -> None:
    a = member(pa.array([1, None, None, None], pa.int32()), None, X, None, None)
    b = member(pa.array(["b", None, "c", None], pa.string()))
    mask = pa.array([False, False, False, True])
    typed = pa.StructArray.from_arrays([a, b], ["a", "b"], mask=mask)
    rest = encode_object({"z": ONE}, {"z": 0})
    column = shredded(typed, None, None, rest, X, names=("z", "b", "a"))
    assert read(tmp_path, column) == [{"a": 1, "b": "b"}, {"a": "x"}, {"b": "c", "z": 1}, "x"]


def test_arrays_are_put_back_with_values_of_other_types(tmp_path: Path) -> None:
    elements = member(pa.array([1, None, None, 2], pa.int64()), None, X)
    typed = pa.ListArray.from_arrays(pa.array([0, None, 3, 3, 4], pa.int32()), elements)
    assert read(tmp_path, shredded(typed, None, ONE)) == [[1, "x", None], 1, [], [2]]


def test_large_objects_and_arrays_have_wide_numbers(tmp_path: Path) -> None:
    names = [f"n{at:05}" for at in range(300)]
    ids = {name: at for at, name in enumerate(names)}
    packed = encode_object(dict.fromkeys(names, X), ids)
    assert len(list(fields_of(packed))) == 300
    assert dict(fields_of(packed)) == dict.fromkeys(range(300), X)
    elements = member(pa.array(range(70_000), pa.int64()))
    typed = pa.ListArray.from_arrays(pa.array([0, 70_000], pa.int32()), elements)
    assert read(tmp_path, shredded(typed)) == [list(range(70_000))]


def test_what_is_no_variant_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    a = member(pa.array([1], pa.int32()))
    typed = pa.StructArray.from_arrays([a], ["a"])
    with pytest.raises(InvalidMetadataError, match=r"data\.parquet.*`a`"):
        read(tmp_path, shredded(typed, names=("b",)))
    with pytest.raises(InvalidMetadataError, match=r"data\.parquet.*object"):
        read(tmp_path, shredded(typed, X, names=("a",)))
    with pytest.raises(UnsupportedError, match="uint8"):
        read(tmp_path, shredded(pa.array([1], pa.uint8())))
