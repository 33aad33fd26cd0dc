"""The commands on DynamoDB and S3: tables, requests and the quarantine are there as on a disk."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from committer.ports.storage import NewObject
from committer.request.request_key import published_key
from committer.service.process.composition import Parts
from tests.cli.reading import ASKING_THE_CATALOG, READING
from tests.support.builders.request_builders import build_file, build_request
from tests.support.cli.commands import Frazil
from tests.support.servers.dynamodb_server import REGION, DynamoDbServer
from tests.support.servers.s3_server import S3Server
from tests.support.workers.parquet_files import parquet_bytes

pytestmark = pytest.mark.server


@pytest.fixture
def frazil(
    dynamodb_server: DynamoDbServer,
    s3_server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Frazil:
    root = s3_server.new_root()
    settings = {
        "FRAZIL_INBOX": f"{root}/requests",
        "FRAZIL_CATALOG__URI": f"dynamodb://{dynamodb_server.new_table_name()}",
        "FRAZIL_CATALOG__WAREHOUSE": f"{root}/warehouse",
        "FRAZIL_CATALOG__CLIENT__REGION": REGION,
        "FRAZIL_CATALOG__S3__ENDPOINT": s3_server.url,
        "FRAZIL_CATALOG__S3__PATH_STYLE_ACCESS": "true",
        "FRAZIL_CATALOG__DYNAMODB__ENDPOINT": dynamodb_server.url,
    }
    return Frazil(tmp_path, monkeypatch, capsys, settings)


def create(frazil: Frazil) -> None:
    columns = "id long not null, name string, day date"
    answer = frazil("table", "create", "db.flights", "--schema", columns)
    assert answer.code == 0, answer.err


def test_looking_where_no_catalog_is_ends_as_on_a_disk_and_makes_none(frazil: Frazil) -> None:
    for command, code in READING:
        if command[0] in ASKING_THE_CATALOG:
            answer = frazil(*command)
            assert answer.code == code, answer
            assert "there is no catalog yet: there is no DynamoDB table `" in answer.err
            assert "`frazil table create` makes one" in answer.err
    create(frazil)
    assert frazil("table", "list").code == 0


def test_a_table_is_made_listed_shown_and_inspected(frazil: Frazil) -> None:
    create(frazil)
    assert frazil("table", "list", "--json").object["table"] == "db.flights"
    shown = frazil("table", "show", "db.flights", "--json").object
    assert shown["metadata_location"].startswith("s3://")
    inspected = frazil("inspect", shown["metadata_location"], "--json")
    assert inspected.code == 0
    assert inspected.object["kind"] == "table-metadata"
    assert frazil("table", "files", "db.flights").code == 0


def test_what_is_not_there_is_said(frazil: Frazil) -> None:
    create(frazil)
    location = frazil.load().metadata_location + ".absent"
    answer = frazil("inspect", location)
    assert answer.code == 1 and location in answer.err
    assert frazil("table", "show", "db.absent").code == 1


def test_a_request_waits_and_one_in_quarantine_is_replayed(frazil: Frazil) -> None:
    create(frazil)
    sealed = build_request(frazil.load())
    key = frazil.quarantine(sealed, "table_unknown")
    assert frazil("status", "--json").object["quarantined"] == 1
    assert [line["key"] for line in frazil("quarantine", "list", "--json").lines] == [key]
    assert frazil("quarantine", "show", key).code == 0
    assert frazil("quarantine", "replay", key).out.strip() == key
    status = frazil("status", "--json").object
    assert (status["inbox"]["requests"], status["quarantined"]) == (1, 0)
    assert list(map(published_key, frazil.outstanding())) == [key]


def test_orphans_are_listed_and_removed_on_s3_and_what_waits_stays(frazil: Frazil) -> None:
    create(frazil)
    table = frazil.load()
    waiting = build_request(table)
    named = build_file(table.metadata, waiting.request.attempt).file_path
    left = f"{table.metadata.location}/data/day=a%2Fb/left.parquet"
    frazil.put(waiting)

    async def drop(parts: Parts) -> None:
        await parts.storage.create([NewObject(one, b"four") for one in (left, named)])

    async def there(parts: Parts) -> list[str]:
        return [one.location async for one in parts.storage.list(table.metadata.location)]

    frazil.with_parts(drop)
    time.sleep(1.1)  # S3 tells of whole seconds
    wanted = ("table", "orphans", "db.flights", "--older-than", "0s", "--no-active-writers")
    listed = frazil(*wanted, "--json").object
    assert (listed["location"], listed["size-bytes"]) == (left, 4)
    removed = frazil(*wanted, "--remove", "--yes")
    assert (removed.code, "removed 1 object" in removed.err) == (0, True)
    assert sorted(frazil.with_parts(there)) == sorted([table.metadata_location, named])


def test_files_in_a_bucket_are_described_by_their_footers(frazil: Frazil) -> None:
    create(frazil)
    rows = pa.table({"id": [1, 2], "name": ["a", None]})
    location = f"{frazil.load().metadata.location}/old/part-0.parquet"
    content = parquet_bytes(rows)

    async def work(parts: Parts) -> None:
        await parts.storage.create([NewObject(location, content)])

    frazil.with_parts(work)
    folder = location.rpartition("/")[0]
    shown = frazil("table", "add-files", "db.flights", folder, "--dry-run", "--json")
    assert shown.object["file_path"] == location
    assert (shown.object["record_count"], shown.object["file_size_in_bytes"]) == (2, len(content))
    absent = frazil("table", "add-files", "db.flights", f"{folder}/absent.parquet", "--dry-run")
    assert absent.code == 1 and "found none" in absent.err
