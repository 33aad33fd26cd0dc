"""The files that every system commits, value for value: 20 columns with metrics, two partitions.

`peers/Bench.java` makes the same ones. A commit never opens a data file, so none is written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from uuid import UUID, uuid5

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import (
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

FILES_A_DAY = 100
_EPOCH = date(1970, 1, 1)
_FIRST_DAY = 20_454  # 2026-01-01
_DAY_US = 86_400_000_000
_NAMESPACE = UUID(int=0xF7A211)


def schema() -> Schema:
    kinds: list[tuple[str, IcebergType]] = [
        ("id", LongType()),
        ("region", StringType()),
        ("ts", TimestamptzType()),
        *((f"l{number}", LongType()) for number in range(4, 9)),
        *((f"d{number}", DoubleType()) for number in range(9, 14)),
        *((f"s{number}", StringType()) for number in range(14, 19)),
        ("amt", DecimalType(12, 2)),
        ("dt", DateType()),
    ]
    fields = (
        NestedField(field_id, name, kind, required=field_id == 1)
        for field_id, (name, kind) in enumerate(kinds, start=1)
    )
    return Schema(tuple(fields))


def partition_spec() -> PartitionSpec:
    region = PartitionField((2,), 1000, "region", parse_transform("identity"))
    day = PartitionField((3,), 1001, "ts_day", parse_transform("day"))
    return PartitionSpec(0, (region, day))


@dataclass(frozen=True, slots=True)
class Descriptor:
    """File `number` of a table, as its writer describes it. Bounds are binary single values."""

    number: int
    region: str
    day: int
    folder: str
    record_count: int
    size_bytes: int
    column_sizes: dict[int, int]
    value_counts: dict[int, int]
    null_value_counts: dict[int, int]
    nan_value_counts: dict[int, int]
    lower_bounds: dict[int, bytes]
    upper_bounds: dict[int, bytes]

    def path(self, attempt: UUID) -> str:
        return f"{self.folder}/{self.number:08d}-0-{attempt}-00001.parquet"


def descriptor(
    location: str, number: int, files_a_day: int = FILES_A_DAY, regions: int = 10
) -> Descriptor:
    """Describe file `number` of the table at `location`: so many files a day, dealt to regions."""
    day = _FIRST_DAY + number // files_a_day
    region = f"r{number % regions}"
    rows = 1_000 + number % 97
    lower, upper = _bounds(number, region, day, rows)
    columns = range(1, 21)
    folder = f"region={region}/ts_day={(_EPOCH + timedelta(days=day)).isoformat()}"
    return Descriptor(
        number=number,
        region=region,
        day=day,
        folder=f"{location}/data/{folder}",
        record_count=rows,
        size_bytes=100_000 + number,
        column_sizes={column: 4_000 + column * 13 + number % 1_000 for column in columns},
        value_counts=dict.fromkeys(columns, rows),
        null_value_counts={each: number % 5 if each % 3 == 0 else 0 for each in columns},
        nan_value_counts=dict.fromkeys(range(9, 14), 0),
        lower_bounds=lower,
        upper_bounds=upper,
    )


def _bounds(
    number: int, region: str, day: int, rows: int
) -> tuple[dict[int, bytes], dict[int, bytes]]:
    name = region.encode()
    lower, upper = {2: name}, {2: name}
    for column in (1, *range(4, 9)):
        lower[column], upper[column] = _long(number * 1_000), _long(number * 1_000 + rows)
    for column in range(9, 14):
        lower[column], upper[column] = _double(number * 0.5), _double(number * 0.5 + 100)
    for column in range(14, 19):
        lower[column], upper[column] = (
            f"key-{number:08d}".encode(),
            f"key-{number:08d}-zzz".encode(),
        )
    lower[3], upper[3] = _long(day * _DAY_US), _long((day + 1) * _DAY_US - 1)
    lower[19], upper[19] = (-125).to_bytes(1, "big", signed=True), (9_999_999).to_bytes(4, "big")
    lower[20] = upper[20] = struct.pack("<i", day)
    return lower, upper


def _long(value: int) -> bytes:
    return struct.pack("<q", value)


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


def nonce_of(number: int) -> UUID:
    """Return the nonce that a request is published with; `number` is that of its first file."""
    return uuid5(_NAMESPACE, str(number))


def data_file(found: Descriptor, attempt: UUID) -> DataFile:
    """Return the file as Frazil's publisher takes it: its name contains the attempt."""
    return DataFile(
        file_path=found.path(attempt),
        partition=(found.region, found.day),
        record_count=found.record_count,
        file_size_in_bytes=found.size_bytes,
        column_sizes=found.column_sizes,
        value_counts=found.value_counts,
        null_value_counts=found.null_value_counts,
        nan_value_counts=found.nan_value_counts,
        lower_bounds=found.lower_bounds,
        upper_bounds=found.upper_bounds,
        split_offsets=(4,),
        sort_order_id=0,
    )


def descriptors(location: str, start: int, count: int, files_a_day: int) -> Iterator[Descriptor]:
    """Yield the files of one request, from `start` on."""
    for number in range(start, start + count):
        yield descriptor(location, number, files_a_day)
