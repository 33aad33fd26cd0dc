"""Files that PyIceberg's `add_files` adds get the same entry here."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO, parquet_file_to_data_file
from pyiceberg.manifest import DataFile as TheirFile
from pyiceberg.table.metadata import TableMetadataV2

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.new_table import new_table_metadata
from committer.iceberg.metadata.table_metadata import print_table_metadata
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionSpec
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
)
from tests.support.workers.parquet_files import adopt, parquet_bytes
from tests.support.workers.tables import optional, schema, struct
from tests.support.workers.write_target import spec_of
from workers.adoption.adopt_file import Adopted
from workers.adoption.adoption_target import AdoptionTarget


@dataclass(frozen=True)
class Column:
    kind: IcebergType
    stored: pa.DataType
    value: Callable[[random.Random], object]


def _ints(low: int, high: int) -> Callable[[random.Random], object]:
    return lambda chance: chance.choice((low, high, 0, chance.randint(low, high)))


def _decimals(digits: int, scale: int) -> Callable[[random.Random], object]:
    limit = 10**digits - 1
    return lambda chance: Decimal(chance.randint(-limit, limit)).scaleb(-scale)


def _text(chance: random.Random) -> object:
    return "".join(chance.choices("aé😀 ", k=chance.randint(0, 40)))


COLUMNS = {
    "flag": Column(BooleanType(), pa.bool_(), lambda chance: chance.random() < 0.5),
    "int": Column(IntegerType(), pa.int32(), _ints(-(2**31), 2**31 - 1)),
    "long": Column(LongType(), pa.int64(), _ints(-(2**63), 2**63 - 1)),
    "wider": Column(LongType(), pa.int32(), _ints(-(2**31), 2**31 - 1)),
    "float": Column(FloatType(), pa.float32(), lambda chance: chance.uniform(-9, 9)),
    "double": Column(DoubleType(), pa.float64(), lambda chance: chance.uniform(-9e9, 9e9)),
    "decimal": Column(DecimalType(9, 2), pa.decimal128(9, 2), _decimals(9, 2)),
    "wide": Column(DecimalType(30, 4), pa.decimal128(30, 4), _decimals(30, 4)),
    "day": Column(DateType(), pa.date32(), _ints(-700_000, 2_900_000)),
    "time": Column(TimeType(), pa.time64("us"), _ints(0, 86_399_999_999)),
    "at": Column(TimestampType(), pa.timestamp("us"), _ints(-(2**52), 2**52)),
    "zoned": Column(TimestamptzType(), pa.timestamp("us", "UTC"), _ints(-(2**52), 2**52)),
    "text": Column(StringType(), pa.string(), _text),
    "bytes": Column(BinaryType(), pa.binary(), lambda chance: chance.randbytes(20)),
}
POINT = struct(optional(50, "x", LongType()), optional(51, "y", StringType()))
NESTED = {
    "point": (POINT, pa.struct({"x": pa.int64(), "y": pa.string()})),
    "list": (ListType(52, LongType(), False), pa.list_(pa.int64())),
    "map": (MapType(53, StringType(), 54, LongType(), False), pa.map_(pa.string(), pa.int64())),
}
INNER: dict[str, Callable[[random.Random], object]] = {
    "point": lambda chance: {"x": chance.choice((None, 3, -9)), "y": _text(chance)},
    "list": lambda chance: [chance.choice((None, 3, -9)) for _ in range(chance.randint(0, 3))],
    "map": lambda chance: [("a", chance.randint(-9, 9))] * chance.randint(0, 1),
}


def metadata_of(spec: PartitionSpec, **properties: str) -> TableMetadata:
    kinds = {name: column.kind for name, column in COLUMNS.items()}
    kinds |= {name: kind for name, (kind, _) in NESTED.items()}
    fields = [optional(number, name, kind) for number, (name, kind) in enumerate(kinds.items(), 1)]
    return new_table_metadata(
        table_uuid=UUID(int=1),
        location="file:///t",
        schema=schema(*fields),
        partition_spec=spec,
        sort_order=UNSORTED,
        properties=properties,
        format_version=2,
        now_ms=1,
    )


def rows(chance: random.Random, *, constant: bool) -> pa.Table:
    """Make up to 6 rows of every type, or equal ones."""
    count = chance.randint(1, 6)
    columns: dict[str, pa.Array] = {}
    for name, column in COLUMNS.items():
        columns[name] = pa.array(_values(chance, column.value, count, constant), column.stored)
    for name, (_, stored) in NESTED.items():
        columns[name] = pa.array(_values(chance, INNER[name], count, constant), stored)
    return pa.table(columns)


def _values(
    chance: random.Random, value: Callable[[random.Random], object], count: int, constant: bool
) -> list[object]:
    nulls = chance.choice((0, 0.3, 1))
    values = [None if chance.random() < nulls else value(chance) for _ in range(count)]
    return values[:1] * count if constant else values


def both(folder: Path, table: pa.Table, metadata: TableMetadata) -> tuple[DataFile, TheirFile]:
    path = folder / "a.parquet"
    path.write_bytes(parquet_bytes(table, row_group_size=2, use_dictionary=["text"]))
    theirs = parquet_file_to_data_file(
        PyArrowFileIO(),
        TableMetadataV2.model_validate_json(print_table_metadata(metadata)),
        f"file://{path}",
    )
    ours = adopt(path.read_bytes(), AdoptionTarget.of(metadata), f"file://{path}")
    assert isinstance(ours, Adopted), ours
    return ours.file, theirs


@pytest.mark.parametrize("mode", ["truncate(16)", "full", "counts"])
def test_entries_of_random_files_are_those_of_pyiceberg(tmp_path: Path, mode: str) -> None:
    metadata = metadata_of(UNPARTITIONED, **{"write.metadata.metrics.default": mode})
    for seed in range(20):
        check(*both(tmp_path, rows(random.Random(seed), constant=False), metadata))


PARTITIONS = spec_of(
    (1, "flag", "identity"),
    (3, "long", "identity"),
    (3, "tens", "truncate[10]"),
    (7, "decimal", "identity"),
    (9, "month", "month"),
    (12, "hour", "hour"),
    (13, "prefix", "truncate[3]"),
)


def test_partitions_of_random_files_are_those_of_pyiceberg(tmp_path: Path) -> None:
    metadata = metadata_of(PARTITIONS)
    for seed in range(20):
        ours, theirs = both(tmp_path, rows(random.Random(seed), constant=True), metadata)
        check(ours, theirs)
        expected = [theirs.partition[at] for at in range(len(ours.partition))]
        assert list(ours.partition) == expected, seed


# Of elements, keys and values only sizes are recorded, as Iceberg Java does it.
_REPEATED = {20, 21, 22}


def check(ours: DataFile, theirs: TheirFile) -> None:
    assert (ours.file_path, ours.file_format) == (theirs.file_path, theirs.file_format.value)
    assert ours.record_count == theirs.record_count
    assert ours.file_size_in_bytes == theirs.file_size_in_bytes
    assert list(ours.split_offsets or ()) == list(theirs.split_offsets or ())
    assert dict(ours.column_sizes or {}) == dict(theirs.column_sizes or {})
    for name in ("value_counts", "null_value_counts"):
        found, expected = (dict(getattr(one, name) or {}) for one in (ours, theirs))
        assert found == {key: count for key, count in expected.items() if key not in _REPEATED}
    for name in ("lower_bounds", "upper_bounds"):
        found, expected = (dict(getattr(one, name) or {}) for one in (ours, theirs))
        # PyIceberg has none of a column of which a row group is all null.
        assert {key: found.get(key) for key in expected if key not in _REPEATED} == {
            key: bound for key, bound in expected.items() if key not in _REPEATED
        }, name
