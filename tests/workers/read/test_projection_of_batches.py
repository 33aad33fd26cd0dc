"""Batches are projected as rows are one by one: random schemas, evolved at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.scan.column_projection import file_context, project_columns
from committer.iceberg.schema.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from committer.iceberg.schema.name_mapping import create_name_mapping
from committer.iceberg.schema.partition_spec import UNPARTITIONED
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)
from tests.support.iceberg.row_projection import project_row
from tests.support.workers.reading import (
    SEQUENCE_NUMBER,
    parquet_file,
    read_all,
    read_of,
    rows_of,
    task_of,
)
from tests.support.workers.tables import optional, required, schema
from tests.support.workers.write_target import spec_of
from workers.arrow.arrow_types import FIELD_ID
from workers.read.read_types import read_array, read_field, read_schema

SEEDS = 40
ROWS = 7
PROMOTIONS: dict[IcebergType, tuple[IcebergType, ...]] = {
    IntegerType(): (LongType(),),
    FloatType(): (DoubleType(),),
    DecimalType(9, 2): (DecimalType(20, 2),),
    DateType(): (TimestampType(), TimestampNanoType()),
}
SAMPLES: dict[IcebergType, Sequence[object]] = {
    BooleanType(): (True, False),
    IntegerType(): (-7, 0, 2**31 - 1),
    LongType(): (-(2**63), 5),
    FloatType(): (-0.0, 1.5),
    DoubleType(): (0.1, -1e300),
    DecimalType(9, 2): (Decimal("-12.34"),),
    DateType(): (-1, 20_000),
    TimeType(): (0, 86_399_999_999),
    TimestampType(): (-1, 1 << 50),
    TimestamptzType(): (1 << 50,),
    TimestampNanoType(): (-1, 1 << 60),
    StringType(): ("", "é"),
    UUIDType(): (UUID(int=1 << 127),),
    FixedType(2): (b"ab",),
    BinaryType(): (b"", b"\xff"),
}


class Chance:
    """Random schemas, their values and what becomes of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ids = count(1)

    def kind(self, depth: int) -> IcebergType:
        choice = self.random.random()
        if depth and choice < 0.2:
            return StructType(self.fields(depth - 1))
        if depth and choice < 0.3:
            return ListType(next(self.ids), self.kind(depth - 1), False)
        if depth and choice < 0.4:
            key = self.random.choice([StringType(), IntegerType(), UUIDType()])
            return MapType(next(self.ids), key, next(self.ids), self.kind(depth - 1), False)
        return self.random.choice(list(SAMPLES))

    def fields(self, depth: int) -> tuple[NestedField, ...]:
        numbers = [next(self.ids) for _ in range(self.random.randint(1, 4))]
        return tuple(NestedField(at, f"f{at}", self.kind(depth), False) for at in numbers)

    def value(self, kind: IcebergType) -> object:
        if self.random.random() < 0.2:
            return None
        match kind:
            case StructType(fields):
                return tuple(self.value(field.field_type) for field in fields)
            case ListType():
                return [self.value(kind.element_type) for _ in range(self.random.randrange(3))]
            case MapType():
                keys = self.random.sample(SAMPLES[kind.key_type], self.random.randrange(2))
                return {key: self.value(kind.value_type) for key in keys}
        return self.random.choice(SAMPLES[kind])

    def evolved(self, fields: Sequence[NestedField]) -> tuple[NestedField, ...]:
        """Return fields as later schemas may have them: dropped, renamed, promoted, moved, new."""
        after = [
            replace(field, name=f"{field.name}_{self.random.randrange(2)}", field_type=kind)
            for field in fields
            if self.random.random() < 0.8
            for kind in [self.evolved_type(field.field_type)]
        ]
        if self.random.random() < 0.5:
            kind = self.random.choice([*SAMPLES, UnknownType(), GeometryType()])
            default = self.random.choice([None, *SAMPLES.get(kind, ())])
            number = next(self.ids)
            after.append(NestedField(number, f"n{number}", kind, False, initial_default=default))
        self.random.shuffle(after)
        return tuple(after)

    def evolved_type(self, kind: IcebergType) -> IcebergType:
        match kind:
            case StructType(fields):
                return StructType(self.evolved(fields))
            case ListType():
                return replace(kind, element_type=self.evolved_type(kind.element_type))
            case MapType():
                return replace(kind, value_type=self.evolved_type(kind.value_type))
        return self.random.choice([kind, *PROMOTIONS.get(kind, ())])


def stored_table(fields: Sequence[NestedField], rows: Sequence[tuple[object, ...]]) -> pa.Table:
    """Return rows as a Parquet writer of Iceberg has them, with ids on every level."""
    arrays = [
        read_array([row[at] for row in rows], field.field_type) for at, field in enumerate(fields)
    ]
    table = pa.Table.from_arrays(arrays, schema=read_schema(fields))
    return table.cast(pa.schema([with_ids(field) for field in fields]))


def with_ids(field: NestedField) -> pa.Field:
    kind = read_field(field).type
    match field.field_type:
        case StructType(fields):
            kind = pa.struct([with_ids(one) for one in fields])
        case ListType() as of:
            element = NestedField(of.element_id, "element", of.element_type, False)
            kind = pa.list_(with_ids(element))
        case MapType() as of:
            key = NestedField(of.key_id, "key", of.key_type, True)
            value = NestedField(of.value_id, "value", of.value_type, False)
            kind = pa.map_(with_ids(key), with_ids(value))
    metadata = {FIELD_ID: str(field.field_id)}
    return pa.field(field.name, kind, not field.required, metadata)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_batch_is_projected_as_its_rows_are(tmp_path: Path, seed: int) -> None:
    chance = Chance(seed)
    stored = chance.fields(2)
    rows = [tuple(chance.value(one.field_type) for one in stored) for _ in range(ROWS)]
    wanted = chance.evolved(stored)
    file = parquet_file(tmp_path, stored_table(stored, rows), parquet={"row_group_size": 3})
    projected = project_columns(wanted, StructType(stored), file_context(file, UNPARTITIONED))
    expected = [project_row(projected, row, at) for at, row in enumerate(rows)]
    now = Schema(wanted, schema_id=1)
    try:
        found = read_all(read_of(now, Schema(stored)), task_of(file))
    except InvalidMetadataError as error:
        assert "out of bounds" in str(error)  # a date that nanoseconds do not reach
        return
    for at, field in enumerate(wanted):
        column = read_array([row[at] for row in expected], field.field_type)
        assert found.column(at).combine_chunks().equals(column), field


# --- Where columns come from ---------------------------------------------------------------------

IDS = schema(required(1, "id", LongType()), optional(2, "name", StringType()))


def plain(**columns: Any) -> pa.Table:
    """Return columns without ids, as other engines write them."""
    return pa.table(columns)


def test_columns_without_ids_are_found_by_a_name_mapping(tmp_path: Path) -> None:
    file = parquet_file(tmp_path, plain(name=["a"], id=pa.array([7], pa.int64())))
    mapping = create_name_mapping(IDS)
    assert rows_of(read_of(IDS, mapping=mapping), task_of(file)) == [(7, "a")]
    with pytest.raises(InvalidMetadataError, match=r"`id`.*required"):
        rows_of(read_of(IDS), task_of(file))


def test_an_identity_partition_is_a_constant_of_files_that_lack_its_column(tmp_path: Path) -> None:
    spec = spec_of((2, "name", "identity"))
    only_id = schema(IDS.fields[0])
    table = stored_table(only_id.fields, [(1,), (2,)])
    file = replace(parquet_file(tmp_path, table), spec_id=1, partition=("UA",))
    assert rows_of(read_of(IDS, specs=[spec]), task_of(file)) == [(1, "UA"), (2, "UA")]


def test_a_default_is_for_files_that_lack_a_column_and_not_for_its_nulls(tmp_path: Path) -> None:
    young = replace(optional(2, "name", StringType()), initial_default="x")
    known = schema(IDS.fields[0], young)
    old = parquet_file(tmp_path, stored_table(IDS.fields[:1], [(1,)]), name="a.parquet")
    new = parquet_file(tmp_path, stored_table(IDS.fields, [(2, None)]), name="b.parquet")
    assert rows_of(read_of(known), task_of(old), task_of(new)) == [(1, "x"), (2, None)]


def test_row_ids_and_numbers_are_the_files_own_and_else_inherited(tmp_path: Path) -> None:
    lineage = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
    table = stored_table((*IDS.fields[:1], *lineage), [(1, 50, 3), (2, None, None), (3, 51, None)])
    file = parquet_file(tmp_path, table)
    read = read_of(IDS, columns=lineage)
    later = task_of(replace(file, first_row_id=100))
    assert rows_of(read, later) == [(50, 3), (101, SEQUENCE_NUMBER), (51, SEQUENCE_NUMBER)]
    assert rows_of(read, task_of(file)) == [(None, None)] * 3


def test_timestamps_of_old_are_what_the_table_says(tmp_path: Path) -> None:
    times = pa.array([0, 1_000], pa.int64()).view(pa.timestamp("us"))
    for at, kind in enumerate((TimestampType(), TimestamptzType())):
        known = schema(optional(1, "t", kind))
        file = parquet_file(
            tmp_path,
            plain(t=times),
            name=f"{at}.parquet",
            parquet={"use_deprecated_int96_timestamps": True},
        )
        found = read_all(read_of(known, mapping=create_name_mapping(known)), task_of(file))
        assert found.column(0).combine_chunks().equals(read_array([0, 1_000], kind))


def test_a_column_of_another_type_is_an_error_that_names_it(tmp_path: Path) -> None:
    file = parquet_file(tmp_path, stored_table(IDS.fields, [(1, "a")]))
    other = schema(optional(2, "name", LongType()))
    with pytest.raises(InvalidMetadataError, match=r"`name`: expected long"):
        rows_of(read_of(other), task_of(file))


def test_a_type_that_iceberg_does_not_have_is_an_error(tmp_path: Path) -> None:
    table = plain(id=pa.array([1], pa.uint64()), name=["a"])
    file = parquet_file(tmp_path, table)
    read = read_of(IDS, mapping=create_name_mapping(IDS))
    with pytest.raises(InvalidMetadataError, match=r"data\.parquet.*`id`.*INT64 Int"):
        rows_of(read, task_of(file))
