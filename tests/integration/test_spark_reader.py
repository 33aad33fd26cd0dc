"""`spark.read.format("frazil")` beside Iceberg Java's runtime, in one session, on the same files.

The tables of the fixtures are in a catalog that both open; where rows must be new, Java writes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.errors.exceptions.base import PySparkException

from committer.iceberg.inspection.metadata_tables import SNAPSHOT_KINDS, TABLE_KINDS
from frazil.spark import configure
from tests.support.builders.fixture_catalog import fixture_catalog
from tests.support.builders.fixture_tables import NAMES
from tests.support.builders.fixtures import expected
from tests.support.builders.jars import iceberg_jars
from tests.support.integration.spark_session import spark_session

pytestmark = [
    pytest.mark.spark,
    # `test_spark_reads.py` reads the same tables in `make test`.
    pytest.mark.heavy,
    pytest.mark.timeout(300),
    # PySpark leaves the socket that rows came through to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

# What Spark has no type for; both refuse such a table, and ours names the columns that it can read.
WITHOUT_TYPES = {
    "v2_all_types",
    "v2_bucket_all",
    "v2_identity_all",
    "v3_all_types",
    "v3_bucket_ns",
    "v3_defaults",
}
# Metadata only, of files that are not there.
WITHOUT_FILES = {"v3_encryption_fields", "v3_geo"}
READABLE = sorted(set(NAMES) - WITHOUT_TYPES - WITHOUT_FILES)


@dataclass(frozen=True, slots=True)
class Both:
    """One catalog of the fixtures' tables: Java's `lake`, and ours by default."""

    spark: Any
    folder: Path

    def java(self, name: str, **options: object) -> Any:
        """Read by Java; options have their names with `_` for `-`."""
        return _with(self.spark.read.format("iceberg"), options).load(f"lake.db.{name}")

    def ours(self, name: str, **options: object) -> Any:
        return _with(self.spark.read.format("frazil"), options).load(f"db.{name}")

    def sql(self, statement: str) -> Any:
        return self.spark.sql(statement)

    def new_table(self, columns: str, *more: str) -> str:
        """Create a table by Java; `more` is the rest of the statement."""
        name = f"t{uuid4().hex[:8]}"
        self.sql(f"CREATE TABLE lake.db.{name} ({columns}) USING iceberg {' '.join(more)}")
        return name


def _with(reader: Any, options: dict[str, object]) -> Any:
    for name, value in options.items():
        reader = reader.option(name.replace("_", "-"), value)
    return reader


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both")
    catalog = folder / "catalog.db"
    fixture_catalog(catalog, NAMES)
    lake = "spark.sql.catalog.lake"
    confs = {
        "spark.jars": ",".join(map(str, iceberg_jars())),
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        lake: "org.apache.iceberg.spark.SparkCatalog",
        f"{lake}.type": "jdbc",
        f"{lake}.uri": f"jdbc:sqlite:{catalog}",
        f"{lake}.warehouse": f"file://{folder}/warehouse",
        f"{lake}.jdbc.schema-version": "V1",
        f"{lake}.cache-enabled": "false",
        # One of the tables has names that differ in their case only.
        "spark.sql.caseSensitive": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "America/St_Johns",
    }

    def settle(builder: Any) -> None:
        configure(
            builder, catalog_uri=f"sqlite:///{catalog}", catalog_name="lake", queue_url="none"
        )

    with spark_session(folder, confs, settle) as spark:
        yield Both(spark, folder)


def rows_of(frame: Any) -> list[str]:
    """Return the rows as sorted texts: NaN is equal to itself, 1 differs from 1.0."""
    return sorted(map(repr, frame.collect()))


def assert_equal(ours: Any, java: Any) -> None:
    assert ours.schema == java.schema
    assert rows_of(ours) == rows_of(java)


def message_of(read: Callable[[], Any]) -> str:
    """Return what a refused read says: in its first line, above all tracebacks."""
    with pytest.raises(PySparkException) as raised:
        read().collect()
    return first_line(raised.value)


def first_line(error: PySparkException) -> str:
    line, *_ = str(error).splitlines()
    assert "committer.errors." in line, str(error)
    return line


# --- Tables of the fixtures ----------------------------------------------------------------------


@pytest.mark.parametrize("name", READABLE)
def test_a_table_reads_as_by_java(both: Both, name: str) -> None:
    assert_equal(both.ours(name), both.java(name))


@pytest.mark.parametrize("name", sorted(WITHOUT_TYPES))
def test_a_table_with_types_that_spark_lacks_is_read_without_them(both: Both, name: str) -> None:
    with pytest.raises(Exception, match=r"Spark does not support time|unsupported type"):
        both.java(name)
    message = message_of(lambda: both.ours(name))
    assert "Spark has no type for" in message
    columns = message.partition('option("columns", "')[2].partition('"')[0]
    found = both.ours(name, columns=columns).collect()
    facts = expected(name)["table_rows"]
    assert len(found) == facts["count"]
    for key in {"k", "id", "i", "s", "u", "b"} & set(columns.split(",")):
        own, wanted = ([row[key] for row in rows] for rows in (found, facts["rows"]))
        assert sorted(map(repr, own)) == sorted(map(repr, wanted))


@pytest.mark.parametrize(
    "name", ["v2_branches_tags", "v2_schema_evolution", "v2_rollback_cherrypick", "v3_row_lineage"]
)
def test_every_snapshot_reads_as_by_java(both: Both, name: str) -> None:
    facts, all_rows = expected(name), f"SELECT * FROM lake.db.{name}"
    for snapshot_id in [one["snapshot_id"] for one in facts["snapshots"]]:
        java = both.sql(f"{all_rows} VERSION AS OF {snapshot_id}")
        assert_equal(both.ours(name, snapshot_id=snapshot_id), java)
    for time_ms in [entry["timestamp_ms"] for entry in facts["snapshot_log"]][-2:]:
        java = both.sql(f"{all_rows} TIMESTAMP AS OF timestamp_millis({time_ms})")
        assert_equal(both.ours(name, as_of_timestamp=time_ms), java)
    for ref, found in facts["refs"].items():
        java = both.sql(f"{all_rows} VERSION AS OF '{ref}'")
        assert_equal(both.ours(name, **{found["type"]: ref}), java)


def test_what_was_appended_between_snapshots_reads_as_by_java(both: Both) -> None:
    name = "v2_merged_manifests"
    ids = [one["snapshot_id"] for one in expected(name)["snapshots"]]
    for after, up_to in ((0, None), (0, 1), (2, 5), (6, 7)):
        travel = {"start_snapshot_id": ids[after]}
        if up_to is not None:
            travel["end_snapshot_id"] = ids[up_to]
        ours = both.ours(name, **travel)
        assert_equal(ours, both.java(name, **travel))
        assert ours.count()


COLUMNS = ("_file", "_pos", "_spec_id", "_partition", "_deleted")
LINEAGE = ("_row_id", "_last_updated_sequence_number")


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("v2_partition_evolution", COLUMNS),
        ("v2_position_deletes", COLUMNS),
        ("v2_nested", COLUMNS),
        ("v2_unpartitioned", ("_file", "_pos")),
        ("v3_deletion_vectors", (*COLUMNS, *LINEAGE)),
        ("v3_row_lineage", LINEAGE),
        ("v3_upgrade_row_lineage", LINEAGE),
    ],
)
def test_metadata_columns_read_as_by_java(both: Both, name: str, columns: tuple[str, ...]) -> None:
    ours = both.ours(name, metadata_columns=",".join(columns))
    java = both.java(name).select("*", *columns)
    assert ours.columns == java.columns
    assert rows_of(ours) == rows_of(java)


# --- Columns, filters, splits --------------------------------------------------------------------


def test_only_the_wanted_columns_are_read(both: Both) -> None:
    name = "v2_nested"
    first, second = both.java(name).columns[:2]
    ours = both.ours(name, columns=f"{second},{first}")
    assert_equal(ours, both.java(name).select(first, second))
    # As Spark's own file formats: by a schema, in its order.
    java = both.java(name).select(second, first)
    reader = both.spark.read.schema(java.schema).format("frazil")
    assert_equal(reader.load(f"db.{name}"), java)


def test_a_filter_of_the_read_is_planned_and_asked_of_each_row(both: Both) -> None:
    name = both.new_table("id bigint, day string", "PARTITIONED BY (day)")
    both.sql(
        f"INSERT INTO lake.db.{name} SELECT id, CASE WHEN id < 5 THEN 'a' ELSE 'b' END"
        " FROM range(10)"
    )
    ours = both.ours(name, filter="day = 'a' or id = 9", split_size=1)
    assert sorted(row.id for row in ours.collect()) == [0, 1, 2, 3, 4, 9]
    few = both.ours(name, filter="DAY = 'a'", split_size=1)
    everything = both.ours(name, split_size=1)
    assert few.rdd.getNumPartitions() < everything.rdd.getNumPartitions()
    assert few.count() == 5


def test_splits_follow_their_size(both: Both) -> None:
    name = "v2_merged_manifests"
    assert both.ours(name).rdd.getNumPartitions() < 13
    assert both.ours(name, split_size=1).rdd.getNumPartitions() == 13
    assert both.ours(name, file_open_cost=64 << 20).rdd.getNumPartitions() == 7
    assert_equal(both.ours(name, split_size=1), both.java(name))


def test_a_large_file_is_read_by_several_tasks(both: Both) -> None:
    name = both.new_table(
        "id bigint, x string",
        "TBLPROPERTIES ('write.parquet.row-group-size-bytes'='60000',"
        " 'write.parquet.row-group-check-min-record-count'='100',"
        " 'read.split.target-size'='100000', 'read.split.open-file-cost'='1')",
    )
    both.sql(
        f"INSERT INTO lake.db.{name} SELECT /*+ COALESCE(1) */ id, sha2(string(id), 512)"
        " FROM range(20000)"
    )
    ours = both.ours(name, metadata_columns="_pos,_file")
    assert ours.rdd.getNumPartitions() > 5
    assert rows_of(ours) == rows_of(both.java(name).select("id", "x", "_pos", "_file"))


CONDITIONS = (
    "i {op} {i}",
    "f {op} {f}",
    "d {op} {d}",
    "s {op} '{s}'",
    "t {op} timestamp '2024-01-0{n} 00:00:00'",
    "n {op} timestamp_ntz '2024-01-0{n} 00:00:00'",
    "dt {op} date '2024-01-0{n}'",
    "de {op} cast({i} as decimal(9,2))",
    "i IN ({i}, 3)",
    "i NOT IN ({i}, 3)",
    "s LIKE '{s}%'",
    "s NOT LIKE '{s}%'",
    "d IS NULL",
    "i IS NOT NULL",
    "i <=> {i}",
    "NOT (f {op} {f})",
    "NOT (i <=> {i})",
    "st.x {op} {i}",
    "i + 1 {op} {i}",
)


def test_pushed_filters_keep_the_rows_that_spark_keeps(both: Both) -> None:
    name = both.new_table(
        "i int, f float, d double, s string, t timestamp, n timestamp_ntz, dt date,"
        " de decimal(9,2), st struct<x: int>",
        "PARTITIONED BY (truncate(1, s))",
    )
    both.sql(
        f"INSERT INTO lake.db.{name} SELECT"
        " if(id % 7 = 0, null, int(id % 9) - 4),"
        " element_at(array(0.0f, -0.0f, float('NaN'), float('inf'), 1.5f, null), int(id % 6) + 1),"
        " element_at(array(0.0d, -0.0d, double('NaN'), -double('inf'), -2.5d, null),"
        "  int(id % 6) + 1),"
        " element_at(array('', 'a', 'ab', 'b', null), int(id % 5) + 1),"
        " timestamp '2024-01-01 00:00:00' + make_interval(0, 0, 0, int(id % 5)),"
        " timestamp_ntz '2024-01-01 00:00:00' + make_interval(0, 0, 0, int(id % 5)),"
        " if(id % 11 = 0, null, date '2024-01-01' + int(id % 5)),"
        " cast(id % 5 as decimal(9,2)) / 2,"
        " if(id % 4 = 0, null, named_struct('x', int(id % 3)))"
        " FROM range(120)"
    )
    drawn = random.Random(5)
    # Spark alone answers: Java's own residuals fail on a null partition.
    java = both.java(name).localCheckpoint()
    pushed = 0
    for condition in CONDITIONS:
        texts = [
            each.format(
                op=drawn.choice(("=", "<", "<=", ">", ">=", "<>")),
                i=drawn.randrange(-4, 5),
                f=drawn.choice(("float('NaN')", "1.5f", "float('inf')", "0.0f")),
                d=drawn.choice(("double('NaN')", "-2.5d", "0.0d")),
                s=drawn.choice(("", "a", "ab", "b")),
                n=drawn.randrange(1, 6),
            )
            for each in (condition, drawn.choice(CONDITIONS))
        ]
        text = drawn.choice((" AND ", " OR ")).join(texts[: drawn.randrange(1, 3)])
        ours = both.ours(name, push_filters="true").where(text)
        assert rows_of(ours) == rows_of(java.where(text)), text
        pushed += "Filter " not in ours._jdf.queryExecution().executedPlan().toString()
    assert pushed > 3, "no filter was left to the reader"


def test_a_dataframe_with_filters_may_be_used_again_and_again(both: Both) -> None:
    """Spark keeps one plan for all queries of a DataFrame: no filter of one reaches another."""
    ours, java = both.ours("v2_unpartitioned"), both.java("v2_unpartitioned")
    for condition in ("id = 1", "id > 2", "true", "id = 1 or id = 3"):
        assert rows_of(ours.where(condition)) == rows_of(java.where(condition))
    twice = ours.where("id = 1").unionAll(ours.where("id = 2"))
    assert rows_of(twice) == rows_of(java.where("id = 1").unionAll(java.where("id = 2")))


def test_a_dataframe_reads_the_state_that_it_was_made_of(both: Both) -> None:
    name = both.new_table("id bigint")
    empty = both.ours(name)
    both.sql(f"INSERT INTO lake.db.{name} VALUES (1)")
    one = both.ours(name)
    both.sql(f"INSERT INTO lake.db.{name} VALUES (2)")
    both.sql(f"ALTER TABLE lake.db.{name} ADD COLUMN more string")
    assert (empty.count(), one.count(), both.ours(name).count()) == (0, 1, 2)
    assert (one.columns, both.ours(name).columns) == (["id"], ["id", "more"])
    late = both.ours(name)
    both.sql(f"INSERT INTO lake.db.{name} VALUES (3, 'x')")
    both.sql(
        f"CALL lake.system.expire_snapshots(table => 'db.{name}', older_than => now(),"
        " retain_last => 1)"
    )
    assert "has expired since the DataFrame was made: load it again" in message_of(lambda: late)


# --- Metadata tables -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted({*SNAPSHOT_KINDS, *TABLE_KINDS}))
def test_every_metadata_table_is_read(both: Both, kind: str) -> None:
    name = "v2_position_deletes"
    ours = both.ours(f"{name}${kind}")
    java = both.sql(f"SELECT * FROM lake.db.{name}.{kind}")
    shared = {
        "snapshot_id",
        "file_path",
        "record_count",
        "operation",
        "name",
        "path",
        "partition_spec_id",
    }
    columns = sorted(shared & set(ours.columns) & set(java.columns))
    found = ours.select(*columns).collect()
    assert sorted(map(repr, found)) == rows_of(java.select(*columns)) and found


def test_a_metadata_table_has_a_dotted_name_too(both: Both) -> None:
    ours, same = both.ours("v2_wap$refs"), both.ours("v2_wap.refs")
    assert rows_of(ours) == rows_of(same)


def test_a_metadata_table_of_an_older_snapshot(both: Both) -> None:
    name = "v2_position_deletes"
    first = expected(name)["snapshots"][0]["snapshot_id"]
    ours = both.ours(f"{name}$files", snapshot_id=first)
    java = both.sql(f"SELECT file_path FROM lake.db.{name}.files VERSION AS OF {first}")
    assert rows_of(ours.select("file_path")) == rows_of(java)


# --- Streams -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Query:
    """A streaming read of a table with a checkpoint of its own, run again and again."""

    both: Both
    name: str
    checkpoint: Path

    def run(self, **options: object) -> list[list[int]]:
        """Return the ids of each micro-batch, up to the newest snapshot."""
        found: list[list[int]] = []
        reader = _with(self.both.spark.readStream.format("frazil"), options)
        writer = reader.load(f"db.{self.name}").writeStream.foreachBatch(
            lambda frame, _: found.append(sorted(row.id for row in frame.collect()))
        )
        query = writer.option("checkpointLocation", str(self.checkpoint)).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return found

    def refused(self, **options: object) -> str:
        with pytest.raises(PySparkException) as raised:
            self.run(**options)
        return first_line(raised.value)

    def append(self, *ids: int) -> None:
        """Append each id in a snapshot of its own."""
        for each in ids:
            self.both.sql(f"INSERT INTO lake.db.{self.name} (id) VALUES ({each})")


@pytest.fixture
def query(both: Both, tmp_path: Path) -> Query:
    return Query(both, both.new_table("id bigint", MERGE_ON_READ), tmp_path / "checkpoint")


MERGE_ON_READ = "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read')"


def test_a_stream_goes_on_where_its_checkpoint_is(query: Query) -> None:
    assert query.run() == [[]]
    query.append(1, 2, 3)
    assert query.run() == [[1, 2, 3]]
    assert query.run() == []
    query.append(4, 5)
    query.both.sql(f"ALTER TABLE lake.db.{query.name} ADD COLUMN more string")
    query.append(6)
    assert query.run(streaming_max_files_per_micro_batch=2) == [[4, 5], [6]]
    query.append(7, 8, 9)
    assert query.run(streaming_max_rows_per_micro_batch=1) == [[7], [8], [9]]
    query.append(10)
    assert query.run(filter="id < 10", columns="id") == [[]]


def test_a_stream_begins_where_it_is_told(query: Query, tmp_path: Path) -> None:
    query.append(1, 2, 3)
    snapshots = query.both.ours(f"{query.name}$snapshots").orderBy("sequence_number").collect()
    second = snapshots[1]
    second_ms = int(second.timestamp_ms.timestamp() * 1000)
    starts = {"starting_snapshot_id": second.snapshot_id, "stream_from_timestamp": second_ms}
    for number, (name, value) in enumerate(starts.items()):
        fresh = Query(query.both, query.name, tmp_path / str(number))
        assert fresh.run(**{name: value}) == [[2, 3]]


def test_a_stream_passes_over_compactions_and_refuses_deletes(query: Query) -> None:
    query.append(1, 2)
    assert query.run() == [[1, 2]]
    query.both.sql(
        f"CALL lake.system.rewrite_data_files(table => 'db.{query.name}',"
        " options => map('rewrite-all', 'true'))"
    )
    query.append(3)
    assert query.run() == [[3]]
    query.both.sql(f"DELETE FROM lake.db.{query.name} WHERE id = 1")
    query.append(4)
    operation = query.both.ours(f"{query.name}$snapshots").orderBy("sequence_number").collect()
    kind = operation[-2].operation
    message = query.refused()
    assert f"is of operation `{kind}`, which a stream of appended rows cannot show" in message
    assert query.run(**{f"streaming_skip_{kind}_snapshots": "true"}) == [[4]]


def test_a_stream_that_stood_still_for_too_long_says_so(query: Query) -> None:
    query.append(1)
    assert query.run() == [[1]]
    query.append(2, 3)
    query.both.sql(
        f"CALL lake.system.expire_snapshots(table => 'db.{query.name}', older_than => now(),"
        " retain_last => 1)"
    )
    assert "which has expired, or never was: rows may be lost" in query.refused()


def test_a_stream_of_what_is_no_stream_is_refused(query: Query) -> None:
    assert "`push-filters` is for spark.read, not for" in query.refused(push_filters="true")
    metadata = Query(query.both, f"{query.name}$files", query.checkpoint)
    assert "spark.read reads it, no stream does" in metadata.refused()


# --- Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("nowhere", {}, "did you mean|`db` has"),
        ("v2_wap$rows", {}, "there is no metadata table `rows`, expected one of all_data_files,"),
        ("v2_wap", {"columns": "id,nope"}, "there is no column `nope`: expected some of"),
        ("v2_wap", {"filter": "nope = 1"}, "nope"),
        ("v2_wap", {"snapshot_id": 7}, r"db.v2_wap: the table has no snapshot 7; `db.v2_wap\$sn"),
        ("v2_wap", {"tag": "x"}, r"no branch or tag `x`; `db.v2_wap\$refs` has"),
        ("v2_wap", {"tag": "audit"}, "option `tag`: `audit` of db.v2_wap is a branch"),
        ("v2_wap", {"as_of": "1999-01-01"}, "no snapshot as old as 1999-01-01T00:00:00Z"),
        ("v2_wap", {"tag": "a", "branch": "b"}, "`branch` and `tag` exclude each other"),
        ("v2_wap", {"start_snapshot_id": 7}, "snapshot 7 is not in the lineage"),
        ("v2_wap", {"sink": "x"}, "unknown option `sink` of format `frazil`"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(
    both: Both, name: str, options: dict[str, object], message: str
) -> None:
    assert re.search(message, message_of(lambda: both.ours(name, **options)))


def test_a_schema_that_does_not_fit_is_refused(both: Both) -> None:
    reader = both.spark.read.schema("id string, nope int").format("frazil")
    message = message_of(lambda: reader.load("db.v2_wap"))
    assert "`id`: expected bigint, found string; `nope`: the table has no such column" in message
