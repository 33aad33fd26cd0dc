"""The keys of a merge's source: what they say of the table's rows, in every type; and merges that
read and compare only files which may have them.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import functions as F

from committer.errors import PublishError
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    GreaterThanOrEqual,
    In,
    LessThanOrEqual,
    Reference,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from frazil.spark import MergeBuilder, merge_into
from tests.integration.changes.harness import ChangesHarness
from tests.support.integration.real_harness import CATALOG
from workers.branches.attempt_identity import AttemptIdentity
from workers.changes.change_options import parse_change_options
from workers.changes.change_run import ChangeRun
from workers.changes.changed_table import ChangedTable
from workers.changes.keys.equal_keys import equal_keys
from workers.changes.keys.key_filter import KeyColumn, SourceKeys, read_keys
from workers.changes.merge_clauses import Clauses
from workers.changes.merged_rows import Merge, prepare_merge
from workers.changes.publish_change import PreparedChange, run_change

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves the connection of a `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]


ID = Reference("id")

# --- What the keys say ---------------------------------------------------------------------------


def keys_of(harness: ChangesHarness, kind: IcebergType, texts: str) -> SourceKeys:
    """Return what is read of the keys of a source: rows of one column `k`."""
    source = harness.spark.sql(f"SELECT * FROM VALUES {texts} AS t(k)")
    return read_keys(source, [KeyColumn(NestedField(1, "id", kind, False), F.col("k"))])


@pytest.mark.parametrize(
    ("kind", "few", "values"),
    [
        (LongType(), "(7L), (NULL), (3L), (7L)", (3, 7)),
        (IntegerType(), "(5000000000L), (1L)", (1, 5_000_000_000)),
        (StringType(), "('b'), ('a')", ("a", "b")),
        (DecimalType(9, 2), "(cast(1.5 as decimal(9,2)))", (Decimal("1.50"),)),
        (DateType(), "(DATE'1969-12-31')", (-1,)),
        (TimestamptzType(), "(TIMESTAMP'1970-01-01 00:00:01 UTC')", (1_000_000,)),
        (TimestampType(), "(TIMESTAMP_NTZ'1969-12-31 23:59:59')", (-1_000_000,)),
        (UUIDType(), f"('{UUID(int=1)}')", (UUID(int=1),)),
        # Values of which Iceberg or Spark thinks otherwise.
        (UUIDType(), f"('{UUID(int=171)}'), (upper('{UUID(int=171)}'))", ()),
        (DoubleType(), "(double('NaN')), (-0.0D)", ()),
        (DecimalType(9, 2), "(cast(1.5 as decimal(9,3)))", ()),
        (StringType(), "('a' COLLATE UTF8_LCASE)", ()),
        (StringType(), "(1), (2)", ()),
        (LongType(), "('1')", ()),
        (StringType(), "(repeat('x', 1001))", ()),
        (LongType(), "(cast(NULL as bigint))", ()),
    ],
    ids=str,
)
def test_few_values_are_a_set_where_both_compare_them_alike(
    harness: ChangesHarness, kind: IcebergType, few: str, values: tuple[object, ...]
) -> None:
    expected = In(ID, values) if values else ALWAYS_TRUE
    assert keys_of(harness, kind, few).expression == expected


def test_many_uuids_say_nothing(harness: ChangesHarness) -> None:
    """Spark compares their texts."""
    source = harness.spark.range(1000).selectExpr("uuid() as k")
    keys = [KeyColumn(NestedField(1, "id", UUIDType(), False), F.col("k"))]
    assert read_keys(source, keys).expression == ALWAYS_TRUE


def test_many_values_are_a_range(harness: ChangesHarness) -> None:
    spark = harness.spark
    source = spark.range(-500, 500).selectExpr("id as k", "cast(id % 3 as string) as s")
    fields = NestedField(1, "id", LongType(), False), NestedField(2, "name", StringType(), False)
    keys = [KeyColumn(field, F.col(name)) for field, name in zip(fields, "ks", strict=True)]
    found = read_keys(source, keys)
    assert found.rows == 1000
    bounds = And(GreaterThanOrEqual(ID, -500), LessThanOrEqual(ID, 499))
    assert found.expression == And(bounds, In(Reference("name"), ("-1", "-2", "0", "1", "2")))
    other = spark.sql("SELECT * FROM VALUES (0, '1'), (500, '1'), (0, '3'), (NULL, '1') AS t(k, s)")
    assert [row[0] for row in other.select(found.is_within).collect()] == [True, False, False, True]


def test_a_source_without_rows_has_no_keys(harness: ChangesHarness) -> None:
    empty = harness.spark.range(0).selectExpr("id as k")
    keys = [KeyColumn(NestedField(1, "id", LongType(), False), F.col("k"))]
    assert read_keys(empty, keys).expression == ALWAYS_FALSE


COLUMNS = Schema(
    (NestedField(1, "id", IntegerType(), False), NestedField(2, "region", StringType(), False))
)


@pytest.mark.parametrize(
    ("on", "names"),
    [
        ("target.id = source.id", ["id"]),
        ("source.id + 1 = target.id AND source.region = target.region", ["id", "region"]),
        ("target.id = source.long", ["id"]),
        ("id = long AND target.region = upper(source.region)", ["id", "region"]),
        # None that each pair has in common, or that tells which values.
        ("target.id = source.id OR target.region = source.region", []),
        ("target.id <=> source.id", []),
        ("target.id + 1 = source.id", []),
        ("target.id = 1 AND target.id > source.id", []),
        ("target.id = source.id + target.id", []),
        ("cast(target.id as string) = source.region", []),
        ("NOT target.id = source.id", []),
        ("true", []),
    ],
)
def test_equalities_of_a_condition_are_found(
    harness: ChangesHarness, on: str, names: list[str]
) -> None:
    spark = harness.spark
    target = spark.sql("SELECT cast(1 as int) id, 'a' region").alias("target")
    source = spark.sql("SELECT cast(1 as int) id, 'a' region, 1L long").alias("source")
    on = on.replace("id = long", "target.id = long")
    joined = target.join(source, F.expr(on), "inner")
    found = equal_keys(joined, source, COLUMNS)
    assert [key.field.name for key in found] == names
    assert all(source.select(key.value).count() == 1 for key in found)


# --- Merges --------------------------------------------------------------------------------------


def three_files(harness: ChangesHarness, name: str, mode: str = "copy-on-write") -> None:
    harness.create(name, write_merge_mode=mode)
    for first in (0, 100, 200):
        harness.insert(name, f"({first}, 'a', 1), ({first + 1}, 'b', 1)")


def by_id(harness: ChangesHarness, name: str, ids: list[int | None]) -> MergeBuilder:
    source = harness.frame([(one,) for one in ids], "id bigint")
    merge = merge_into(name, source, "target.id = source.id")
    return merge.when_matched_update(set={"amount": "2"}).when_not_matched_insert(
        values={"id": "source.id"}
    )


class Away:
    """The data file of a row, moved away while the block runs."""

    def __init__(self, harness: ChangesHarness, name: str, id_: int) -> None:
        query = f"SELECT DISTINCT _file FROM {CATALOG}.{name} WHERE id = {id_}"
        [(location,)] = harness.sql(query)
        self._path = Path(location.removeprefix("file:"))

    def __enter__(self) -> None:
        self._content = self._path.read_bytes()
        self._path.unlink()

    def __exit__(self, *_: object) -> None:
        self._path.write_bytes(self._content)


@pytest.mark.parametrize(
    "mode", ["copy-on-write", pytest.param("merge-on-read", marks=pytest.mark.heavy)]
)
def test_a_merge_by_key_reads_only_files_that_may_have_the_keys(
    harness: ChangesHarness, mode: str
) -> None:
    name = f"keys.files_{mode[:4]}"
    three_files(harness, name, mode)
    with Away(harness, name, 200):
        changed = by_id(harness, name, [0, 101, 50, None]).execute()
    assert (changed.updated_rows, changed.inserted_rows) == (2, 2)
    amounts = dict(harness.rows(name, "id, amount"))
    assert amounts == {0: 2, 1: 1, 50: None, 100: 1, 101: 2, 200: 1, 201: 1, None: None}


@pytest.mark.heavy
def test_a_merge_that_tells_of_unmatched_rows_reads_all_files(harness: ChangesHarness) -> None:
    name = "keys.unmatched"
    three_files(harness, name, "merge-on-read")
    by_id(harness, name, [0]).when_not_matched_by_source_delete("target.id >= 200").execute()
    assert harness.rows(name, "id, amount") == [(0, 2), (1, 1), (100, 1), (101, 1)]


def test_null_safe_and_floating_keys_match_as_spark_says(harness: ChangesHarness) -> None:
    harness.create("keys.odd", "id DOUBLE, name STRING")
    harness.insert("keys.odd", "(double('NaN'), NULL), (-0.0D, 'x'), (7.0D, 'y')")
    source = harness.frame([(float("nan"), None), (0.0, "x")], "id double, name string")
    merge = merge_into("keys.odd", source, "target.id = source.id AND target.name <=> source.name")
    changed = merge.when_matched_update(set={"name": "'m'"}).execute()
    assert changed.updated_rows == 2
    assert [row[0] for row in harness.rows("keys.odd", "name")] == ["m", "m", "y"]


def merge_beside(
    harness: ChangesHarness, name: str, ids: list[int | None], foreign: Callable[[], object]
) -> None:
    """Merge, while another writer changes the table after it was read."""
    builder = by_id(harness, name, ids)
    merge = Merge(builder._source, builder._on, Clauses(builder._clauses))

    def beside(found: ChangedTable, identity: AttemptIdentity) -> PreparedChange | None:
        prepared = prepare_merge(ChangeRun(harness.spark, found, identity, "merge"), merge)
        foreign()
        return prepared

    run_change(parse_change_options(name, {}), "merges", beside)


@pytest.mark.parametrize(
    "mode", [pytest.param("copy-on-write", marks=pytest.mark.heavy), "merge-on-read"]
)
def test_rows_that_others_add_are_a_conflict_only_among_the_keys(
    harness: ChangesHarness, mode: str
) -> None:
    name = f"keys.scope_{mode[:4]}"
    three_files(harness, name, mode)
    merge_beside(harness, name, [0, 101, None], lambda: harness.insert(name, "(300, 'c', 1)"))
    with pytest.raises(PublishError, match=r"conflicts with .* added: .*\"id\"\) in \(0, 101\)"):
        merge_beside(harness, name, [0, 101], lambda: harness.insert(name, "(101, 'c', 1)"))
    assert dict(harness.rows(name, "id, amount"))[0] == 2


@pytest.mark.heavy
def test_other_keys_of_a_file_are_none_of_the_sources(harness: ChangesHarness) -> None:
    """Conditions on the source's keys do not become conditions on the table's, which they equal."""
    name = "keys.others"
    three_files(harness, name)
    source = harness.frame([(0,), (7,)], "id int")
    merge = merge_into(name, source, "target.id = source.id")
    assert merge.when_matched_delete().execute().deleted_rows == 1
    assert harness.rows(name, "id") == [(1,), (100,), (101,), (200,), (201,)]


@pytest.mark.heavy
def test_keys_that_come_in_another_row_each_time_stop_no_merge(harness: ChangesHarness) -> None:
    name = "keys.chance"
    three_files(harness, name)
    source: Any = harness.spark.range(0, 300).selectExpr("cast(floor(rand() * 300) as int) id")
    merge = merge_into(name, source.distinct(), "target.id = source.id")
    changed = merge.when_matched_delete().when_not_matched_insert(values={"id": "source.id"})
    found = changed.execute()
    assert len(harness.rows(name)) == 6 - (found.deleted_rows or 0) + found.inserted_rows
    ids = [row[0] for row in harness.rows(name, "id")]
    assert len(set(ids)) == len(ids)
