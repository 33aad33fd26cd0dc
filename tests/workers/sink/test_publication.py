from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from committer.errors import FrazilError, SettingsError
from committer.iceberg.entry.data_file import DataFile
from committer.request.commit_request import Producer
from committer.request.receipt_model import ReceiptState
from tests.support.builders.table_builders import build_table
from workers.branches.fresh_nonce import fresh_nonce
from workers.files.store_access import USUAL_ACCESS
from workers.settings.options import WriteOptions
from workers.sink.files_written import FilesWritten
from workers.sink.identity import MicroBatch, WriteIdentity
from workers.sink.publication import producer_of, publish_batch, publish_micro_batch
from workers.sink.target import TargetTable
from workers.upserts.key_digests import digests_of
from workers.upserts.upsert import Upsert

TOKEN = UUID(int=1)
BATCH = MicroBatch("query", "run", 7)


def test_a_streaming_query_is_a_sequential_producer() -> None:
    options = WriteOptions("db.t", {})
    assert producer_of(options, BATCH) == Producer(id="query", sequential=True)


def test_a_sink_name_is_part_of_the_producer() -> None:
    options = WriteOptions("db.t", {}, sink="side")
    assert producer_of(options, BATCH) == Producer(id="query/side", sequential=True)


def test_a_name_of_the_users_choice_promises_no_sequence() -> None:
    options = WriteOptions("db.t", {}, producer="loader", epoch=3)
    assert producer_of(options, BATCH) == Producer(id="loader")
    assert producer_of(options, TOKEN) == Producer(id="loader")


def test_a_batch_write_without_a_name_is_a_producer_that_is_used_once() -> None:
    options = WriteOptions("db.t", {})
    assert producer_of(options, TOKEN) == Producer(id=str(TOKEN), one_shot=True)


@pytest.mark.parametrize(
    ("options", "source", "ordered"),
    [
        (WriteOptions("db.t", {}), BATCH, True),
        (WriteOptions("db.t", {}, producer="loader", epoch=3), TOKEN, True),
        # It has one epoch.
        (WriteOptions("db.t", {}), TOKEN, False),
    ],
)
def test_epochs_that_remove_rows_land_in_order(
    options: WriteOptions, source: MicroBatch | UUID, ordered: bool
) -> None:
    assert producer_of(options, source, is_in_order=True).ordered is ordered
    assert not producer_of(options, source).ordered


@pytest.mark.parametrize("first", [7, 8])
def test_a_key_of_two_tasks_is_refused_before_anything_is_asked(tmp_path: Path, first: int) -> None:
    # Nothing answers at these addresses: a publication fails there at the latest.
    settings = {"catalog.uri": "sqlite:////nowhere/c.db", "inbox": "file:/nowhere"}
    options = WriteOptions("db.t", settings, upsert=Upsert(("id", "a b")))
    target = TargetTable.of("db.t", build_table(warehouse="memory://w").metadata, USUAL_ACCESS)
    identity = WriteIdentity.of(options, BATCH)
    messages = []
    for number, key in enumerate((first, 7)):
        (tmp_path / f"{number}").touch()
        location = f"file:{tmp_path / str(number)}"
        file = DataFile(file_path=location, record_count=1, file_size_in_bytes=1)
        digests = digests_of(pa.record_batch([[key]], ["id"]), b"s")
        message = FilesWritten(BATCH, identity, target.table_uuid, 0, (file,), key_digests=digests)
        messages.append(message)
    is_refused = r"two tasks have rows of one key.*repartition\(4, 'id', 'a b'\)"
    expected = is_refused if first == 7 else "catalog"
    with pytest.raises(FrazilError, match=expected):
        publish_micro_batch(options, target, messages, BATCH.batch_id)
    # Of those that are refused no request was made, nor will one be.
    assert len(list(tmp_path.iterdir())) == (0 if first == 7 else 2)


def test_a_table_that_was_just_planned_with_needs_no_catalog_to_be_published_for(
    tmp_path: Path,
) -> None:
    metadata = build_table(warehouse="memory://w").metadata
    now_ms = time.time_ns() // 1_000_000
    target = TargetTable.of("db.t", metadata, USUAL_ACCESS, seen_ms=now_ms)
    # Nothing answers at this address.
    settings = {
        "catalog.uri": "sqlite:////nowhere/c.db",
        "inbox": f"file:{tmp_path}",
        "queue.url": "none",
    }
    options = WriteOptions("db.t", settings)
    identity = WriteIdentity.of(options, fresh_nonce())
    attempt = identity.attempt(target.table_uuid)
    file = DataFile(
        file_path=f"{metadata.location}/data/0-{attempt}.parquet",
        record_count=1,
        file_size_in_bytes=1,
    )
    written = FilesWritten(None, identity, target.table_uuid, 0, (file,))
    receipt = publish_batch(options, target, [written])
    assert receipt is not None
    assert receipt.state is ReceiptState.DURABLE
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
    with pytest.raises(FrazilError, match="catalog"):
        publish_batch(options, replace(target, seen_ms=now_ms - 60_000), [written])


@pytest.mark.parametrize("sink", ["x" * 200, "bell\a"])
def test_a_name_that_cannot_be_a_key_is_refused(sink: str) -> None:
    with pytest.raises(SettingsError, match="option `producer` or `sink`"):
        producer_of(WriteOptions("db.t", {}, sink=sink), BATCH)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("flights of 2013", "flights of 2013"),
        ("a\nb\x1b", "ab"),
        ("\n", None),
        ("x" * 300, "x" * 100),
    ],
)
def test_the_name_of_the_query_goes_along_as_far_as_it_can_be_shown(
    query: str, name: str | None
) -> None:
    options = WriteOptions("db.t", {}, query_name=query)
    assert producer_of(options, BATCH) == Producer(id="query", name=name, sequential=True)


@pytest.mark.parametrize(
    ("query", "application", "name"),
    [("mine", "app", "mine"), (None, "app", "app"), ("\n", "app", "app"), (None, None, None)],
)
def test_a_write_without_a_querys_name_has_that_of_its_application(
    query: str | None, application: str | None, name: str | None
) -> None:
    options = WriteOptions("db.t", {}, query_name=query)
    assert producer_of(options, TOKEN, application).name == name
