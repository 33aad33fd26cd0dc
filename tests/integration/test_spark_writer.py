"""The Spark side on a real Spark: what it leaves in the inbox, and what it refuses.

No committer runs here. One Spark application serves the whole file.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog as ForeignCatalog
from pyiceberg.types import StringType as ForeignStringType
from pyspark.errors import StreamingQueryException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import SparkSession

from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.errors import SettingsError
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.metadata.table_metadata import TableMetadata, new_table_metadata
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.values.locations import metadata_file_location, metadata_folder
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import LongType, NestedField, StringType
from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker
from committer.ports.pointer_swap import LoadedTable
from committer.request.alterations import UnionByName
from committer.request.needs import Needs
from committer.request.request_format import EncodedRequest, read_request
from committer.request.table_identifier import TableIdentifier
from committer.service.process.redis_server import start_redis_server
from committer.storage.disk.local import LocalStorage
from committer.storage.inbox.inbox import Inbox, Quarantine, QuarantineRecord
from frazil.spark import configure, find_java_home, sink, upsert_stream
from tests.support.cli.serving import serving
from tests.support.integration.real_harness import local_queue
from tests.support.integration.spark_confs import CONFS
from tests.support.integration.spark_session import end_jvm
from workers.spark.releases import has_stream_writer
from workers.spark.worker_process import begin_call

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # PySpark 4.3 says so at the first `mapInArrow`, which does not touch pandas.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]

# What PySpark 4.0 lacks (`make test-servers` runs these tests there, too).
_IS_OLD = not has_stream_writer()
streams = pytest.mark.skipif(_IS_OLD, reason="PySpark 4.0 has no stream writer in Python")
reconfigures = pytest.mark.skipif(_IS_OLD, reason="PySpark 4.0 takes no settings once it runs")
message_first = pytest.mark.skipif(_IS_OLD, reason="PySpark 4.0 has its own sentence first")

SCHEMA = "id long, carrier string"
_OURS = ("FRAZIL_", "JAVA_HOME", "PYSPARK_PYTHON")


@dataclass(slots=True)
class Harness:
    """A catalog and an inbox in a folder, and the Spark session that writes to them."""

    folder: Path
    spark: Any
    names: list[str] = field(default_factory=list)

    @property
    def inbox_location(self) -> str:
        return f"file://{self.folder}/requests"

    def inbox(self) -> Inbox:
        return Inbox(LocalStorage(), self.inbox_location)

    def new_table(self, properties: Mapping[str, str] | None = None) -> str:
        """Create a table of (id, carrier), partitioned by bucket(2, carrier)."""
        name = f"db.t{uuid4().hex[:8]}"
        asyncio.run(self._create(TableIdentifier.parse(name), properties or {}))
        return name

    async def _create(self, identifier: TableIdentifier, properties: Mapping[str, str]) -> None:
        fields = (
            NestedField(1, "id", LongType(), required=False),
            NestedField(2, "carrier", StringType(), required=False),
        )
        spec = PartitionSpec(
            0, (PartitionField((2,), 1000, "carrier_bucket", parse_transform("bucket[2]")),)
        )
        location = f"file://{self.folder}/warehouse/db/{identifier.name}"
        metadata = new_table_metadata(
            table_uuid=uuid4(),
            location=location,
            schema=Schema(fields),
            partition_spec=spec,
            sort_order=UNSORTED,
            properties=dict(properties),
            format_version=2,
            now_ms=1_700_000_000_000,
        )
        first = metadata_file_location(metadata_folder(location, {}), 0, uuid4())
        catalog = await self.open_catalog()
        await catalog.create_namespace(identifier.namespace)
        await catalog.create_table(LoadedTable(identifier, metadata, first))
        await catalog.close()

    async def open_catalog(self) -> SqlCatalog:
        uri = f"sqlite:///{self.folder}/catalog.db"
        return await SqlCatalog.open(uri=uri, name="frazil", storage=LocalStorage())

    def requests(self, table: str) -> list[EncodedRequest]:
        """Return a table's requests in the inbox, by epoch; the committer accepts each."""
        requests = asyncio.run(self._requests(table, self.inbox()))
        metadata = asyncio.run(self._load(TableIdentifier.parse(table)))
        checker = Checker(CheckBasis.of("frazil", metadata), metadata.current_schema)
        for sealed in requests:
            assert isinstance(checker.check(sealed), CheckedRequest)
        return requests

    async def _load(self, identifier: TableIdentifier) -> TableMetadata:
        catalog = await self.open_catalog()
        table = await catalog.load(identifier)
        await catalog.close()
        return table.metadata

    async def _requests(self, table: str, inbox: Inbox) -> list[EncodedRequest]:
        keys = [found.key async for found in inbox.list()]
        sealed = [read_request(await inbox.get(key), key=key) for key in keys]
        found = [each for each in sealed if str(each.request.identifier) == table]
        return sorted(found, key=lambda each: each.request.epoch)

    def data_files_on_disk(self, table: str) -> list[Path]:
        folder = self.folder / "warehouse" / "db" / table.partition(".")[2] / "data"
        return sorted(folder.rglob("*.parquet"))

    def land(self, table: str) -> set[str]:
        """Run a committer until the inbox is empty; return the paths of the table's files then."""
        with serving(self.folder, self.variables()) as service:
            service.wait_until_ready()
            until(lambda: not asyncio.run(self._waiting(table)), "an empty inbox")
            assert service.end() == 0
        rows = self.command("table", "files", table, "--json")
        return {row["file_path"].removeprefix("file://") for row in rows}

    async def _waiting(self, table: str) -> list[str]:
        """Return the keys of a table's requests by name alone: a committer is at work."""
        metadata = await self._load(TableIdentifier.parse(table))
        keys = [found.key async for found in self.inbox().list()]
        return [key for key in keys if key.startswith(f"{metadata.table_uuid}/")]

    def orphans(self, table: str) -> set[str]:
        """Return the files that `frazil table orphans` names, however young."""
        rows = self.command("table", "orphans", table, "--older-than", "0s", "--json")
        return {row["location"].removeprefix("file://") for row in rows if "location" in row}

    def variables(self) -> dict[str, str]:
        return {
            "FRAZIL_HOME": str(self.folder),
            "FRAZIL_INBOX": self.inbox_location,
            "FRAZIL_CATALOG__URI": f"sqlite:///{self.folder}/catalog.db",
            "FRAZIL_QUEUE__URL": "none",
        }

    def command(self, *words: str) -> list[Any]:
        """Return the JSON lines that a command of `frazil` prints."""
        answer = subprocess.run(
            [sys.executable, "-m", "committer", *words],
            env={**os.environ, **self.variables()},
            capture_output=True,
            text=True,
        )
        assert answer.returncode == 0, answer.stderr
        return [json.loads(line) for line in answer.stdout.splitlines()]

    def frame(self, ids: Sequence[int]) -> Any:
        rows = [(number, f"C{number % 5}") for number in ids]
        return self.spark.createDataFrame(rows, SCHEMA)

    def stream(self, folder: Path) -> Any:
        """Read one file of the folder per micro-batch."""
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.json(str(folder))


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    folder = tmp_path_factory.mktemp("harness")
    harness = Harness(folder, None)
    harness.new_table()  # the catalog exists before a writer looks for it
    before = {name: value for name, value in os.environ.items() if name.startswith(_OURS)}
    end_jvm()
    os.environ["JAVA_HOME"] = str(find_java_home(folder / "java"))
    builder = SparkSession.builder.master("local[2,2]").appName("frazil-tests")
    for key, value in CONFS.items():
        builder.config(key, value)
    builder.config("spark.sql.warehouse.dir", str(folder / "spark-warehouse"))
    configure(
        builder,
        home=str(folder),
        catalog_uri=f"sqlite:///{folder}/catalog.db",
        inbox=harness.inbox_location,
        queue_url="none",
    )
    harness.spark = builder.getOrCreate()
    harness.spark.sparkContext.setLogLevel("OFF")
    yield harness
    harness.spark.stop()
    end_jvm()
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        del os.environ[name]
    os.environ.update(before)


@dataclass(slots=True)
class RunningQuery:
    """A streaming query that has published one micro-batch and waits for input."""

    harness: Harness
    table: str
    source: Path
    query: Any
    foreign: Any
    published: int = 1

    def next_micro_batch(self) -> None:
        """Give the query three more rows, and wait until it has published them."""
        self.published += 1
        write_input(self.source, *(range(3 * n, 3 * n + 3) for n in range(self.published)))
        self.query.processAllAvailable()


def write_input(folder: Path, *batches: Sequence[int]) -> Path:
    """Write one JSON file per micro-batch; modification times give their order."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, ids in enumerate(batches):
        path = folder / f"{number:03d}.json"
        lines = [json.dumps({"id": each, "carrier": f"C{each % 5}"}) for each in ids]
        # A running query that lists the file before its rows are there never looks at it again.
        unseen = folder / f".{path.name}"
        unseen.write_text("\n".join(lines) + "\n")
        os.utime(unseen, (1_700_000_000 + number, 1_700_000_000 + number))
        unseen.replace(path)
    return folder


def run_stream(dataframe: Any, checkpoint: Path, table: str, **options: str) -> None:
    writer = dataframe.writeStream.format("frazil").option("checkpointLocation", str(checkpoint))
    for name, value in options.items():
        writer = writer.option(name, value)
    writer.trigger(availableNow=True).start(table).awaitTermination()


def run_foreach(
    dataframe: Any,
    checkpoint: Path,
    function: Callable[[Any, int], None],
    name: str | None = None,
    *,
    mode: str = "append",
) -> None:
    writer = dataframe.writeStream.foreachBatch(function).outputMode(mode)
    writer = writer.queryName(name) if name else writer
    writer = writer.option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def data_files(sealed: EncodedRequest) -> list[DataFile]:
    return [
        entry.data_file
        for reference in sealed.request.manifests
        for entry in decode_manifest(bytes(sealed.manifest(reference))).entries
    ]


def ids_of(sealed: EncodedRequest, content: DataFileContent = DataFileContent.DATA) -> list[int]:
    """Return the rows that the request's files hold, read from the files themselves."""
    ids: list[int] = []
    for file in data_files(sealed):
        if file.content != content:
            continue
        assert str(sealed.request.attempt) in file.file_path.rpartition("/")[2]
        table = pq.ParquetFile(file.file_path.removeprefix("file://")).read()
        assert table.num_rows == file.record_count
        ids += table.column("id").to_pylist()
    kind = "deletes" if content else "data"
    manifests = [one for one in sealed.request.manifests if one.content == kind]
    assert len(ids) == sum(one.added_rows_count for one in manifests)
    return sorted(ids)


# --- Streaming -----------------------------------------------------------------------------------


@streams
def test_each_micro_batch_is_one_request_of_the_querys_id(harness: Harness, tmp_path: Path) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", range(10), range(10, 30), range(30, 35))
    rows = harness.stream(source).repartition(3)  # several tasks, which must agree
    run_stream(rows, tmp_path / "checkpoint", table)
    requests = harness.requests(table)
    assert [each.request.epoch for each in requests] == [0, 1, 2]
    assert [ids_of(each) for each in requests] == [
        [*range(10)],
        [*range(10, 30)],
        [*range(30, 35)],
    ]
    query_id = json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
    for sealed in requests:
        request = sealed.request
        assert (request.producer.id, request.producer.sequential) == (query_id, True)
        assert request.fingerprint.kind == "spark-offsets"
        assert (request.catalog, request.operation) == ("frazil", "append")
    assert len({each.request.attempt for each in requests}) == 3
    assert len({each.request.fingerprint.value for each in requests}) == 3


@pytest.mark.heavy
def test_a_worker_of_spark_does_not_collect_again_what_was_imported(
    harness: Harness, tmp_path: Path
) -> None:
    found = tmp_path / "found"

    def call(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        begin_call()
        begin_call()
        found.write_text(str(gc.get_freeze_count()))
        return batches

    rows = harness.spark.range(1, numPartitions=1).mapInArrow(call, "id long")
    rows.write.format("noop").mode("append").save()
    assert int(found.read_text()) > 10_000


@pytest.mark.heavy
@streams
def test_a_micro_batch_that_is_run_again_is_another_attempt_with_an_equal_fingerprint(
    harness: Harness, tmp_path: Path
) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", range(10))
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(StreamingQueryException, match="is durable, but table"):
        run_stream(harness.stream(source), checkpoint, table, wait="committed", wait_timeout_s="1")
    run_stream(harness.stream(source), checkpoint, table)
    first, second = (each.request for each in harness.requests(table))
    assert (first.epoch, second.epoch) == (0, 0)
    assert first.producer == second.producer
    assert first.attempt != second.attempt
    assert first.fingerprint == second.fingerprint
    assert [ids_of(each) for each in harness.requests(table)] == [[*range(10)]] * 2


@streams
def test_a_task_that_is_run_again_leaves_one_set_of_files_in_the_request(
    harness: Harness, tmp_path: Path
) -> None:
    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield from batches
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("the first attempt fails after its rows")

    table = harness.new_table()
    source = write_input(tmp_path / "in", range(10))
    rows = harness.stream(source).mapInArrow(fail_once, SCHEMA)
    run_stream(rows, tmp_path / "checkpoint", table)
    (sealed,) = harness.requests(table)
    assert ids_of(sealed) == [*range(10)]


@pytest.mark.heavy
@streams
def test_a_micro_batch_without_rows_publishes_nothing(harness: Harness, tmp_path: Path) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", range(10), range(-10, 0), range(20, 25))
    run_stream(harness.stream(source).where("id >= 0"), tmp_path / "checkpoint", table)
    assert [each.request.epoch for each in harness.requests(table)] == [0, 2]
    assert (tmp_path / "checkpoint" / "commits" / "1").exists()


@streams
def test_a_sink_name_is_part_of_the_producer(harness: Harness, tmp_path: Path) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", range(3))
    run_stream(harness.stream(source), tmp_path / "checkpoint", table, sink="side")
    (sealed,) = harness.requests(table)
    assert sealed.request.producer.id.endswith("/side")


@pytest.mark.heavy
@streams
def test_a_producer_in_quarantine_stops_its_query(harness: Harness, tmp_path: Path) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", range(3))
    run_stream(harness.stream(source), tmp_path / "checkpoint", table)
    (sealed,) = harness.requests(table)
    record = QuarantineRecord(
        key=sealed.request.inbox_key, reason="spec_mismatch", message="why", quarantined_at_ms=1
    )
    quarantine = Quarantine(LocalStorage(), harness.inbox_location)
    asyncio.run(quarantine.put(record, sealed.content))
    write_input(tmp_path / "in", range(3), range(3, 6))
    with pytest.raises(StreamingQueryException, match=r"is in quarantine \(spec_mismatch: why"):
        run_stream(harness.stream(source), tmp_path / "checkpoint", table)
    run_stream(harness.stream(source), tmp_path / "checkpoint", table, on_quarantine="continue")
    assert [each.request.epoch for each in harness.requests(table)] == [0, 1]


@pytest.mark.heavy
@streams
def test_each_micro_batch_of_complete_mode_is_an_overwrite_of_the_whole_table(
    harness: Harness, tmp_path: Path
) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", range(0), range(10), range(10, 12))
    counts = harness.stream(source).groupBy("carrier").count().selectExpr("count AS id", "carrier")
    writer = counts.writeStream.format("frazil").outputMode("complete")
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    writer.start(table).awaitTermination()
    requests = harness.requests(table)
    assert [each.request.epoch for each in requests] == [0, 1, 2]
    assert [ids_of(each) for each in requests] == [[], [2] * 5, [2, 2, 2, 3, 3]]
    for request in (each.request for each in requests):
        assert (request.operation, request.needs) == ("overwrite", Needs(row_filter=True))
        assert (request.producer.sequential, request.producer.ordered) == (True, True)


_OF_UPSERTS = (DataFileContent.DATA, DataFileContent.EQUALITY_DELETES)


def test_a_streaming_upsert_is_one_row_delta_for_each_micro_batch(
    harness: Harness, tmp_path: Path
) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", [1, 2, 1], range(2, 9))
    rows = harness.stream(source).selectExpr("*", "id > 7 AS gone")
    writer = upsert_stream(rows, ["id", "carrier"], delete_column="gone", partitions=2)
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    writer.start(table).awaitTermination()
    requests = harness.requests(table)
    assert [each.request.operation for each in requests] == ["row-delta"] * 2
    assert all(each.request.producer.ordered for each in requests)
    by_content = [{content: ids_of(each, content) for content in _OF_UPSERTS} for each in requests]
    assert by_content == [
        {DataFileContent.DATA: [1, 2], DataFileContent.EQUALITY_DELETES: [1, 2]},
        {
            DataFileContent.DATA: [*range(2, 8)],
            DataFileContent.EQUALITY_DELETES: [*range(2, 9)],
        },
    ]
    deletes = [file for file in data_files(requests[0]) if file.content]
    assert {file.equality_ids for file in deletes} == {(1, 2)}


@pytest.mark.heavy
def test_a_table_that_wants_old_rows_looked_up_is_refused_by_the_data_source(
    harness: Harness,
) -> None:
    table = harness.new_table({"frazil.upsert.deletes": "positions"})
    rows = harness.spark.createDataFrame([(1, "a"), (2, "b")], "id long, carrier string")
    upsert = rows.coalesce(1).write.format("frazil").mode("append").option("upsert-keys", "carrier")
    with pytest.raises(PySparkException, match=r"wants upserts to delete by position .*equality"):
        upsert.save(table)
    upsert.option("upsert-deletes", "equality").save(table)
    [request] = harness.requests(table)
    assert request.request.operation == "row-delta"


@pytest.mark.heavy
def test_aggregates_that_have_changed_are_upserted_in_foreach_batch(
    harness: Harness, tmp_path: Path
) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", range(10), [20, 25])
    counts = harness.stream(source).groupBy("carrier").count().selectExpr("count AS id", "carrier")
    upsert = sink(table, **{"upsert-keys": "carrier"})
    run_foreach(
        counts,
        tmp_path / "c",
        lambda rows, batch: upsert(rows.repartition(2, "carrier"), batch),
        mode="update",
    )
    requests = harness.requests(table)
    assert [ids_of(each) for each in requests] == [[2] * 5, [4]]
    assert [(each.request.operation, each.request.epoch) for each in requests] == [
        ("row-delta", 0),
        ("row-delta", 1),
    ]
    assert all(each.request.producer.ordered for each in requests)


@streams
def test_an_upsert_whose_keys_are_in_two_tasks_is_refused(harness: Harness, tmp_path: Path) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", [1] * 4)
    rows = harness.stream(source).repartition(2)
    with pytest.raises(StreamingQueryException, match="two tasks have rows of one key"):
        run_stream(rows, tmp_path / "c", table, **{"upsert-keys": "id, carrier"})
    assert harness.requests(table) == []


@pytest.fixture
def running(harness: Harness, tmp_path: Path) -> Iterator[RunningQuery]:
    """Yield a query that runs while another engine changes its table."""
    table, source = harness.new_table(), tmp_path / "in"
    write_input(source, range(3))
    writer = harness.stream(source).writeStream.format("frazil")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start(table)
    query.processAllAvailable()
    foreign = ForeignCatalog("frazil", uri=f"sqlite:///{harness.folder}/catalog.db")
    yield RunningQuery(harness, table, source, query, foreign.load_table(table))
    query.stop()


@streams
def test_a_running_query_goes_on_beside_a_new_column_and_a_new_partition_field(
    running: RunningQuery,
) -> None:
    with running.foreign.update_schema() as update:
        update.add_column("tail_number", ForeignStringType())
    running.next_micro_batch()
    with running.foreign.update_spec() as update:
        update.add_identity("id")
    running.next_micro_batch()
    requests = running.harness.requests(running.table)
    assert [ids_of(each) for each in requests] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert [
        {reference.partition_spec_id for reference in each.request.manifests} for each in requests
    ] == [{0}, {0}, {1}]
    last = pq.read_schema(data_files(requests[2])[0].file_path.removeprefix("file://"))
    assert last.names == ["id", "carrier", "tail_number"]


@streams
@pytest.mark.parametrize("change", ["rename", "drop"])
def test_a_running_query_fails_once_its_column_is_renamed_or_dropped(
    running: RunningQuery, change: str
) -> None:
    with running.foreign.update_spec() as update:
        update.remove_field("carrier_bucket")
    with running.foreign.update_schema() as update:
        if change == "rename":
            update.rename_column("carrier", "airline")
        else:
            update.delete_column("carrier")
    with pytest.raises(
        StreamingQueryException, match="carrier: found string, expected no such column"
    ):
        running.next_micro_batch()
    # Files written before the change still fit the table.
    assert [ids_of(each) for each in running.harness.requests(running.table)] == [[0, 1, 2]]


@pytest.mark.skipif(not _IS_OLD, reason="PySpark 4.1 has a stream writer in Python")
def test_a_stream_that_pyspark_cannot_write_is_told_how_it_can(
    harness: Harness, tmp_path: Path
) -> None:
    stream = harness.stream(write_input(tmp_path / "in", [1]))
    with pytest.raises(StreamingQueryException, match=r"use rows\.writeStream\.foreachBatch"):
        run_stream(stream, tmp_path / "checkpoint", harness.new_table())


@pytest.mark.skipif(not _IS_OLD, reason="PySpark 4.1 takes settings while it runs")
def test_a_running_session_that_takes_no_settings_says_what_does(harness: Harness) -> None:
    with pytest.raises(SettingsError, match=r"call it on SparkSession\.builder"):
        configure(harness.spark.newSession(), inbox="file:///elsewhere")


# --- foreachBatch --------------------------------------------------------------------------------


@pytest.mark.heavy
def test_two_writes_of_one_micro_batch_to_one_table_ask_for_a_sink_name(
    harness: Harness, tmp_path: Path
) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", range(10))

    def twice(dataframe: Any, _: int) -> None:
        dataframe.where("id < 5").write.format("frazil").mode("append").save(table)
        dataframe.where("id >= 5").write.format("frazil").mode("append").save(table)

    with pytest.raises(StreamingQueryException, match="give each write its own `sink` option"):
        run_foreach(harness.stream(source), tmp_path / "checkpoint", twice)
    (sealed,) = harness.requests(table)
    assert ids_of(sealed) == [*range(5)]


def test_two_writes_of_one_micro_batch_with_sink_names_are_two_requests(
    harness: Harness, tmp_path: Path
) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", range(10))
    low, high = sink(table, sink="low"), sink(table, sink="high")

    def both(dataframe: Any, batch_id: int) -> None:
        low(dataframe.where("id < 5"), batch_id)
        high(dataframe.where("id >= 5"), batch_id)

    run_foreach(harness.stream(source), tmp_path / "checkpoint", both)
    query_id = json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
    found = {each.request.producer.id: each for each in harness.requests(table)}
    assert sorted(found) == [f"{query_id}/high", f"{query_id}/low"]
    assert ids_of(found[f"{query_id}/low"]) == [*range(5)]
    assert ids_of(found[f"{query_id}/high"]) == [*range(5, 10)]
    for sealed in found.values():
        assert sealed.request.producer.sequential
        assert sealed.request.fingerprint.kind == "spark-offsets"


def test_a_named_producer_of_foreach_batch_numbers_its_epochs_by_batch(
    harness: Harness, tmp_path: Path
) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", range(3), range(3, 6))
    run_foreach(harness.stream(source), tmp_path / "c", sink(table, producer="loader"))
    requests = [each.request for each in harness.requests(table)]
    assert [(each.producer.id, each.epoch) for each in requests] == [("loader", 0), ("loader", 1)]
    assert not requests[0].producer.sequential


def test_the_querys_name_goes_along_with_what_its_foreach_batch_writes(
    harness: Harness, tmp_path: Path
) -> None:
    tables = [harness.new_table() for _ in range(4)]

    def write(dataframe: Any, batch_id: int) -> None:
        sink(tables[0])(dataframe, batch_id)
        sink(tables[1], producer="loader")(dataframe, batch_id)
        sink(tables[2], queryName="of mine")(dataframe, batch_id)
        dataframe.write.format("frazil").mode("append").save(tables[3])

    source = write_input(tmp_path / "in", range(3))
    run_foreach(harness.stream(source), tmp_path / "c", write, name="the flights")
    found = [each.request.producer.name for table in tables for each in harness.requests(table)]
    assert found == ["the flights", "the flights", "of mine", "frazil-tests"]


def test_a_query_without_a_name_has_that_of_its_application_in_foreach_batch(
    harness: Harness, tmp_path: Path
) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", range(3))
    run_foreach(harness.stream(source), tmp_path / "c", sink(table))
    assert [each.request.producer.name for each in harness.requests(table)] == ["frazil-tests"]


# --- Batch ---------------------------------------------------------------------------------------


def test_a_batch_write_is_one_request_of_a_producer_of_its_own(harness: Harness) -> None:
    table = harness.new_table()
    harness.frame(range(20)).repartition(3).write.format("frazil").mode("append").save(table)
    (sealed,) = harness.requests(table)
    assert ids_of(sealed) == [*range(20)]
    assert sealed.request.producer.one_shot
    assert {file.partition for file in data_files(sealed)} == {(0,), (1,)}
    assert [str(p) for p in harness.data_files_on_disk(table)] == sorted(
        file.file_path.removeprefix("file://") for file in data_files(sealed)
    )


def test_a_batch_write_has_the_name_of_its_application_or_one_of_its_own(harness: Harness) -> None:
    table = harness.new_table()
    for epoch, options in enumerate(({}, {"queryName": "nightly load"})):
        writer = harness.frame(range(3)).write.format("frazil").mode("append").options(**options)
        writer.option("producer", "loader").option("epoch", epoch).save(table)
    found = [each.request.producer.name for each in harness.requests(table)]
    assert found == ["frazil-tests", "nightly load"]


def test_a_batch_write_that_is_repeated_keeps_its_producer_and_epoch(harness: Harness) -> None:
    table = harness.new_table()
    for _ in range(2):
        writer = harness.frame(range(5)).write.format("frazil").mode("append")
        writer.option("producer", "nightly").option("epoch", 20261121).save(table)
    first, second = (each.request for each in harness.requests(table))
    assert (first.producer.id, first.epoch) == ("nightly", 20261121)
    assert (second.producer, second.epoch) == (first.producer, first.epoch)
    assert first.fingerprint == second.fingerprint
    assert first.attempt != second.attempt


def test_an_empty_batch_publishes_nothing(harness: Harness) -> None:
    table = harness.new_table()
    harness.frame([1]).where("id > 5").write.format("frazil").mode("append").save(table)
    assert harness.requests(table) == []


@pytest.mark.parametrize("ids", [[], [1, 2]])
def test_a_batch_of_mode_overwrite_replaces_the_table_by_its_rows(
    harness: Harness, ids: list[int]
) -> None:
    table = harness.new_table()
    writer = harness.frame(ids).write.format("frazil").mode("overwrite").option("wait", "durable")
    writer.save(table)
    writer.option("overwrite-filter", "carrier = 'C1'").save(table)
    writer = writer.option("overwrite-mode", "dynamic").option("overwrite-filter", "")
    writer.save(table)
    found = [(each.request.operation, ids_of(each)) for each in harness.requests(table)]
    assert sorted(found) == sorted(
        [("overwrite", ids), ("overwrite", ids), *([("replace-partitions", ids)] if ids else [])]
    )


def test_a_temporary_view_takes_inserts(harness: Harness) -> None:
    table = harness.new_table()
    harness.spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW v ({SCHEMA}) USING frazil OPTIONS (table '{table}')"
    )
    harness.spark.sql("INSERT INTO v VALUES (1, 'AA'), (2, 'UA')")
    (sealed,) = harness.requests(table)
    assert ids_of(sealed) == [1, 2]


def test_a_write_can_be_announced_at_a_queue_of_its_own(harness: Harness, tmp_path: Path) -> None:
    table = harness.new_table()
    server = start_redis_server(tmp_path / "queue")
    try:
        writer = harness.frame(range(5)).write.format("frazil").mode("append")
        writer.option("queue.url", server.url).save(table)
        announced = asyncio.run(_announced(server.url, harness.inbox_location))
    finally:
        server.stop()
    (sealed,) = harness.requests(table)
    assert announced == [(sealed.request.inbox_key, sealed.content)]


async def _announced(url: str, inbox: str) -> list[tuple[str, bytes | None]]:
    queue = local_queue(url, inbox, "test")
    deliveries = await queue.read(count_max=10, wait_s=5)
    await queue.close()
    return [(each.doorbell.inbox_key, each.doorbell.content) for each in deliveries]


@pytest.mark.heavy
@reconfigures
def test_a_running_session_can_be_given_its_settings(harness: Harness, tmp_path: Path) -> None:
    table = harness.new_table()
    session = configure(harness.spark.newSession(), inbox=f"file://{tmp_path}/elsewhere")
    frame = session.createDataFrame([(1, "AA")], SCHEMA)
    frame.write.format("frazil").mode("append").save(table)
    assert harness.requests(table) == []
    inbox = Inbox(LocalStorage(), f"file://{tmp_path}/elsewhere")
    (sealed,) = asyncio.run(harness._requests(table, inbox))
    assert ids_of(sealed) == [1]


# --- Tasks that fail, are canceled or killed -----------------------------------------------------

ROWS = 100_000
WIDE = "repeat(cast(id as string), 10) AS carrier"
# Rows are split into partitions 16 MiB at a time, and no file is begun before.
WIDER = "repeat(cast(id as string), 60) AS carrier"
# Small row groups: files are begun long before a task's end.
SMALL = {"write.parquet.row-group-size-bytes": "200000"}


def until(condition: Callable[[], bool], what: str) -> None:
    """Poll: tasks run for a moment after Spark has abandoned them."""
    end_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end_s, f"waited 60 s for {what}"
        time.sleep(0.05)


def test_a_task_whose_rows_stop_in_the_midst_leaves_no_file(harness: Harness) -> None:
    """The JVM fails: eight Arrow batches have come, and then Spark closes the connection."""
    table = harness.new_table(SMALL)
    rows = harness.spark.range(0, ROWS, 1, 1).selectExpr(
        "CASE WHEN id = 85000 THEN raise_error('spoiled') ELSE id END AS id", WIDE
    )
    assert "spoiled" in refused(harness, rows, table)
    until(lambda: harness.data_files_on_disk(table) == [], "the files to be deleted")
    assert harness.requests(table) == []


def test_a_task_whose_rows_fail_in_python_leaves_no_file(harness: Harness) -> None:
    def spoil(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 5:
                raise RuntimeError("spoiled")
            yield batch

    table = harness.new_table(SMALL)
    rows = harness.spark.range(0, ROWS, 1, 1).selectExpr("id", WIDE).mapInArrow(spoil, SCHEMA)
    assert "spoiled" in refused(harness, rows, table)
    until(lambda: harness.data_files_on_disk(table) == [], "the files to be deleted")


@pytest.mark.heavy
def test_what_a_task_has_reported_goes_when_another_one_fails_for_good(
    harness: Harness, tmp_path: Path
) -> None:
    """Two tasks run at a time: the third starts, and fails, once the first has reported. The second
    waits until it is killed.
    """

    def part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        number = TaskContext.get().partitionId()
        if number == 2:
            raise RuntimeError("spoiled")
        end_s = time.monotonic() + 120
        while number == 1 and time.monotonic() < end_s:
            time.sleep(0.05)
        yield from batches

    table = harness.new_table()
    rows = harness.spark.range(0, 300, 1, 3).selectExpr("id", WIDE).mapInArrow(part, SCHEMA)
    assert "spoiled" in refused(harness, rows, table)
    until(lambda: harness.data_files_on_disk(table) == [], "the reported files to be deleted")
    data = harness.folder / "warehouse" / "db" / table.partition(".")[2] / "data"
    assert list(data.iterdir()), "no task has written anything"


@pytest.mark.heavy
def test_what_a_killed_worker_leaves_is_found_by_the_search_for_orphans(
    harness: Harness, tmp_path: Path
) -> None:
    """The worker of a task is killed once it has files, and the task run again."""
    killed = tmp_path / "killed"
    table = harness.new_table(SMALL)
    data = harness.folder / "warehouse" / "db" / table.partition(".")[2] / "data"

    def kill(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 12 and not killed.exists():
                kill_writers_of(data, killed)
            yield batch

    rows = harness.spark.range(0, 2 * ROWS, 1, 1).selectExpr("id", WIDER).mapInArrow(kill, SCHEMA)
    rows.write.format("frazil").mode("append").save(table)
    (sealed,) = harness.requests(table)
    assert ids_of(sealed) == [*range(2 * ROWS)]
    named = {file.file_path.removeprefix("file://") for file in data_files(sealed)}
    left = {str(path) for path in harness.data_files_on_disk(table)} - named
    assert killed.exists() and left, "the killed task has left nothing"
    print(f"a killed worker left {len(left)} files beside the {len(named)} of the request")
    assert harness.land(table) == named
    assert harness.orphans(table) == left


def kill_writers_of(data: Path, done: Path) -> None:
    """Kill, with SIGKILL, the worker that writes files below `data`; run in another worker."""
    end_s = time.monotonic() + 60
    while not done.exists():
        assert time.monotonic() < end_s, "no worker has a file open"
        for number in writers_of(data):
            done.touch()
            os.kill(number, signal.SIGKILL)
        time.sleep(0.02)


def writers_of(data: Path) -> list[int]:
    """Return the processes that have a data file open below `data`, a folder of this test alone.

    A writer opens folders too, to make a new one durable, before it has any file.
    """
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            opened = [str(each.readlink()) for each in (process / "fd").iterdir()]
        except OSError:
            continue
        if any(name.startswith(str(data)) and name.endswith(".parquet") for name in opened):
            found.append(int(process.name))
    return found


# --- Tables that a write makes, and columns that it brings ---------------------------------------


def new_name() -> str:
    return f"made_{uuid4().hex[:8]}.t"


@streams
def test_a_write_creates_its_table_and_a_stream_creates_another(
    harness: Harness, tmp_path: Path
) -> None:
    batch, streaming = new_name(), new_name()
    writer = harness.frame([1, 2]).write.format("frazil").mode("append").option("create", "true")
    writer.option("partition-by", "bucket(4, id), carrier").save(batch)
    stream = harness.stream(write_input(tmp_path / "in", [0], [1]))
    run_stream(stream, tmp_path / "checkpoint", streaming, create="true")
    spec = asyncio.run(harness._load(TableIdentifier.parse(batch))).default_spec
    assert [str(field.transform) for field in spec.fields] == ["bucket[4]", "identity"]
    assert [len(harness.requests(table)) for table in (batch, streaming)] == [1, 2]


@pytest.mark.parametrize(
    "option", ["mergeSchema", pytest.param("union-by-name", marks=pytest.mark.heavy)]
)
def test_a_write_brings_the_columns_that_its_table_lacks(harness: Harness, option: str) -> None:
    table = harness.new_table()
    frame = harness.spark.sql("SELECT 1L AS id, named_struct('a', 'x') AS place")
    frame.write.format("frazil").mode("append").option(option, "true").save(table)
    [sealed] = harness.requests(table)
    [union] = sealed.request.changes
    assert isinstance(union, UnionByName)
    assert union.with_ids
    [written] = harness.data_files_on_disk(table)
    assert pq.ParquetFile(written).read().column("place").to_pylist() == [{"a": "x"}]
    harness.land(table)
    landed = asyncio.run(harness._load(TableIdentifier.parse(table))).current_schema
    assert landed.find("place.a") is not None
    assert harness.requests(table) == []


@pytest.mark.heavy
def test_a_write_goes_to_the_branch_that_it_names(harness: Harness) -> None:
    table = harness.new_table()
    harness.frame([1]).write.format("frazil").mode("append").save(table)
    harness.land(table)
    assert f"table `{table}` has no branch `audit`: create it first" in refused(
        harness, harness.frame([2]), table, branch="audit"
    )
    foreign = ForeignCatalog("frazil", uri=f"sqlite:///{harness.folder}/catalog.db").load_table(
        table
    )
    head = foreign.current_snapshot()
    assert head is not None
    foreign.manage_snapshots().create_branch(head.snapshot_id, "audit").commit()
    harness.frame([2]).write.format("frazil").mode("append").option("branch", "audit").save(table)
    [sealed] = harness.requests(table)
    assert (sealed.request.branch, sealed.request.has_its_attempt) == ("audit", True)


# --- Refused before anything is written ----------------------------------------------------------


def refused(harness: Harness, frame: Any, table: str, **options: str) -> str:
    writer = frame.write.format("frazil").mode(options.pop("mode", "append"))
    for name, value in options.items():
        writer = writer.option(name, value)
    with pytest.raises(PySparkException) as caught:
        writer.save(table)
    return str(caught.value)


def test_columns_that_do_not_fit_are_all_named_before_anything_is_written(harness: Harness) -> None:
    table = harness.new_table()
    frame = harness.spark.sql("SELECT 'x' AS id, 'AA' AS carrier, 1 AS extra")
    message = refused(harness, frame, table)
    first = message.splitlines()[0]
    assert f"PublishError: table `{table}`: 2 columns do not fit the table" in first
    assert "id: found string, expected long" in message
    assert "extra" in message
    assert harness.data_files_on_disk(table) == []
    assert harness.requests(table) == []


BEYOND = "SELECT CAST(99999999999999999999 AS DECIMAL(20, 0)) AS id, 'AA' AS carrier"
HELD = "committer.errors.PublishError: column id holds a value that is no long: "


@message_first
def test_a_value_that_does_not_fit_is_said_above_all_tracebacks(harness: Harness) -> None:
    table = harness.new_table()
    message = refused(harness, harness.spark.sql(BEYOND), table)
    assert HELD in message[: message.index("Traceback")]
    assert harness.data_files_on_disk(table) == []


@pytest.mark.parametrize("how", [pytest.param("stream", marks=streams), "foreach"])
def test_a_value_of_a_stream_that_does_not_fit_is_said_above_all_tracebacks(
    harness: Harness, tmp_path: Path, how: str
) -> None:
    table, rows = harness.new_table(), harness.stream(write_input(tmp_path / "in", [1]))
    beyond = rows.selectExpr("CAST(99999999999999999999 AS DECIMAL(20, 0)) AS id", "carrier")
    with pytest.raises(StreamingQueryException) as caught:
        if how == "stream":
            run_stream(beyond, tmp_path / "checkpoint", table)
        else:
            run_foreach(beyond, tmp_path / "checkpoint", sink(table))
    assert HELD in str(caught.value).splitlines()[0]


@pytest.mark.heavy
def test_lists_and_maps_of_no_type_are_written_and_make_no_column(harness: Harness) -> None:
    table, spark = f"db.t{uuid4().hex[:8]}", harness.spark
    empty = spark.sql("SELECT 2L AS id, array() AS tags, map('k', NULL) AS counts")
    for columns, said in (
        ("array() AS tags", "`tags`: Spark knows no type for its elements"),
        ("map() AS counts", "`counts`: Spark knows no type for its keys or values"),
        ("NULL AS tags", "`tags`: Spark knows no type for it"),
    ):
        message = refused(harness, spark.sql(f"SELECT {columns}"), table, create="true")
        assert f"cannot be created: column {said}" in message.splitlines()[0]
    first = spark.sql("SELECT 1L AS id, array('x') AS tags, map('k', 1) AS counts")
    first.write.format("frazil").mode("append").option("create", "true").save(table)
    empty.write.format("frazil").mode("append").save(table)
    rows = [pq.ParquetFile(file).read().to_pylist() for file in harness.data_files_on_disk(table)]
    assert sorted((row for [row] in rows), key=lambda row: row["id"]) == [
        {"id": 1, "tags": ["x"], "counts": [("k", 1)]},
        {"id": 2, "tags": [], "counts": [("k", None)]},
    ]
    message = refused(harness, spark.sql("SELECT map() AS counts"), table)
    assert "column `counts`: Spark knows no type for its keys" in message.splitlines()[0]


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda writer: writer.mode("error"), 'cannot be written in the "ErrorIfExists" mode'),
        (lambda writer: writer.mode("ignore"), 'cannot be written in the "Ignore" mode'),
        (lambda writer: writer.mode("append").partitionBy("carrier"), "partitioning"),
        (lambda writer: writer.mode("append").bucketBy(2, "id"), "bucketBy"),
    ],
    ids=["error", "ignore", "partitionBy", "bucketBy"],
)
def test_calls_that_spark_refuses_by_itself_say_what_the_page_says(
    harness: Harness, write: Callable[[Any], Any], said: str
) -> None:
    table = harness.new_table()
    with pytest.raises(PySparkException, match=said):
        write(harness.frame([1]).write.format("frazil")).save(table)
    assert harness.requests(table) == []


@pytest.mark.parametrize("statement", ["DELETE FROM {view}", "UPDATE {view} SET id = 2"])
def test_a_view_of_a_table_is_changed_by_no_statement(harness: Harness, statement: str) -> None:
    table = harness.new_table()
    view = f"view_{uuid4().hex[:8]}"
    options = f"USING frazil OPTIONS (table '{table}')"
    harness.spark.sql(f"CREATE TEMPORARY VIEW {view} {options}")
    with pytest.raises(PySparkException):
        harness.spark.sql(statement.format(view=view))


def test_options_of_other_formats_are_answered_in_the_first_line(harness: Harness) -> None:
    table = harness.new_table()
    message = refused(harness, harness.frame([1]), table, mode="overwrite", replaceWhere="id = 1")
    assert 'option("overwrite-filter"' in message.splitlines()[0]
    reader = harness.spark.read.format("frazil").option("timestampAsOf", "2026-05-01")
    with pytest.raises(PySparkException) as caught:
        reader.load(table)
    assert 'option("as-of", "2026-05-01T12:00:00Z")' in str(caught.value).splitlines()[0]


@streams
def test_a_stream_whose_columns_do_not_fit_fails_before_anything_is_written(
    harness: Harness, tmp_path: Path
) -> None:
    table = harness.new_table()
    source = write_input(tmp_path / "in", range(3))
    rows = harness.stream(source).selectExpr("cast(id AS string) AS id", "carrier")
    with pytest.raises(StreamingQueryException, match=f"table `{table}`: 1 column does not fit"):
        run_stream(rows, tmp_path / "checkpoint", table)
    assert harness.data_files_on_disk(table) == []


def test_an_unknown_table_is_named(harness: Harness) -> None:
    message = refused(harness, harness.frame([1]), "db.absent")
    assert "has no table `db.absent`; create it first" in message


def test_an_unknown_option_is_named_with_the_valid_ones(harness: Harness) -> None:
    message = refused(harness, harness.frame([1]), harness.new_table(), produccer="x")
    assert "unknown option `produccer`" in message
    assert "on_quarantine" in message


def test_a_catalog_that_does_not_exist_is_named_by_its_setting(
    harness: Harness, tmp_path: Path
) -> None:
    options = {"catalog.uri": f"sqlite:///{tmp_path}/absent.db"}
    message = refused(harness, harness.frame([1]), "db.t", **options)
    assert "setting `catalog.uri` (FRAZIL_CATALOG__URI)" in message
    assert not (tmp_path / "absent.db").exists()


@pytest.mark.parametrize(
    "call",
    [
        "saveAsTable",
        "insertInto",
        "writeTo",
        pytest.param("toTable", marks=streams),
        pytest.param("table", marks=message_first),
        pytest.param("SQL", marks=message_first),
    ],
)
def test_a_call_that_names_a_table_of_sparks_own_catalog_shows_the_right_one(
    harness: Harness, tmp_path: Path, call: str
) -> None:
    spark, rows, name = harness.spark, harness.frame([1]), f"spark_{call.lower()}"
    if call in ("insertInto", "table"):
        spark.sql(f"CREATE TABLE {name} (id BIGINT, carrier STRING) USING frazil")
    writer = rows.write.format("frazil").mode("append")
    stream = harness.stream(write_input(tmp_path / "in", [1])).writeStream.format("frazil")
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    view = f"CREATE TABLE {name} USING frazil OPTIONS (table 'db.flights')"
    calls: Mapping[str, Callable[[], Any]] = {
        "saveAsTable": lambda: writer.saveAsTable(name),
        "insertInto": lambda: writer.insertInto(name),
        "writeTo": lambda: rows.writeTo(name).using("frazil").create(),
        "toTable": lambda: stream.toTable(name).processAllAvailable(),
        "table": lambda: spark.table(name).count(),
        "SQL": lambda: spark.sql(view),
    }
    with pytest.raises(PySparkException) as caught:
        calls[call]()
    first = str(caught.value).split("\n")[0]
    assert ('.load("db.flights")' if call == "table" else '.save("db.flights")') in first
    assert "own catalog" in first
