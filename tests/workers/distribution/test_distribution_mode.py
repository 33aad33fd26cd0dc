"""Which distribution a write has: as Iceberg's Spark decides it, and what a write is told of it."""

from __future__ import annotations

from uuid import UUID

import pytest
from pyspark.sql.types import LongType as SparkLong
from pyspark.sql.types import StructField, StructType

from committer.errors import SettingsError
from committer.iceberg.metadata.table_metadata import TableMetadata, new_table_metadata
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionSpec
from committer.iceberg.schema.sort_order import UNSORTED, SortField, SortOrder
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import LongType
from tests.support.workers.tables import required, schema
from tests.support.workers.write_target import spec_of
from workers.distribution.distribution_mode import check_option, mark_of, mode_of, wanted_mode

BY_ID = spec_of((1, "b", "bucket[2]"))
SORTED = SortOrder(1, (SortField((1,), parse_transform("identity"), "asc", "nulls-first"),))


def table(
    spec: PartitionSpec = UNPARTITIONED, order: SortOrder = UNSORTED, mode: str | None = None
) -> TableMetadata:
    return new_table_metadata(
        table_uuid=UUID(int=1),
        location="file:///t",
        schema=schema(required(1, "id", LongType())),
        partition_spec=spec,
        sort_order=order,
        properties={} if mode is None else {"write.distribution-mode": mode},
        format_version=2,
        now_ms=0,
    )


@pytest.mark.parametrize(
    ("spec", "order", "said", "wanted"),
    [
        (UNPARTITIONED, UNSORTED, None, "none"),
        (BY_ID, UNSORTED, None, "hash"),
        (UNPARTITIONED, SORTED, None, "range"),
        (BY_ID, SORTED, None, "range"),
        (BY_ID, SORTED, "hash", "hash"),
        (BY_ID, SORTED, "NONE", "none"),
        (UNPARTITIONED, SORTED, "hash", "none"),
        (UNPARTITIONED, UNSORTED, "range", "none"),
        (BY_ID, UNSORTED, "range", "range"),
    ],
)
def test_the_mode_of_a_table_is_icebergs(
    spec: PartitionSpec, order: SortOrder, said: str | None, wanted: str
) -> None:
    assert wanted_mode(table(spec, order, said)) == wanted


def test_what_a_caller_gives_is_stronger_than_the_property() -> None:
    assert wanted_mode(table(BY_ID, SORTED, "range"), "hash") == "hash"
    assert wanted_mode(table(BY_ID, mode="hash"), "none") == "none"
    with pytest.raises(SettingsError, match=r"`write.distribution-mode`: expected none, hash"):
        wanted_mode(table(BY_ID, mode="some"))
    assert mode_of(" Range ", "x") == "range"


def columns(mark: object = None) -> StructType:
    metadata = {"comment": "c"} if mark is None else {"frazil.distribution-mode": mark}
    return StructType(
        [StructField("id", SparkLong()), StructField("x", SparkLong(), True, metadata)]
    )


def test_a_write_knows_of_a_distribution_by_its_mark_or_its_option() -> None:
    assert mark_of(columns()) is None and mark_of(columns("hash")) == "hash"
    assert mark_of(columns("some")) is None
    assert check_option(None, columns()) is None
    assert check_option(None, columns("range")) == "range"
    assert check_option("none", columns()) == "none"
    assert check_option("hash", columns("hash")) == "hash"


@pytest.mark.parametrize("mark", [None, "range"])
def test_a_write_cannot_distribute_rows_itself_and_names_the_call(mark: object) -> None:
    with pytest.raises(SettingsError, match=r'distribute\(df, "db.table", mode="hash"\)'):
        check_option("hash", columns(mark))
    with pytest.raises(SettingsError, match="`distribution-mode`: expected none, hash, range"):
        check_option("some", columns(mark))
