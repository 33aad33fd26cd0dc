"""The whole way through S3 Tables: `frazil serve` commits, and PyIceberg reads the metadata file.

PyIceberg has no catalog of S3 Tables of its own, and this server no REST endpoint of it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from tests.integration.published_rows import ROWS, publish
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import serving, wait_until
from tests.support.servers.moto_server import MotoServer, TableBucket

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(120)]
EPOCHS = 3


def variables_of(bucket: TableBucket) -> dict[str, str]:
    options = bucket.options
    return {
        "FRAZIL_CATALOG__TYPE": "s3tables",
        "FRAZIL_CATALOG__WAREHOUSE": bucket.arn,
        "FRAZIL_CATALOG__S3TABLES__ENDPOINT": options.endpoint_url,
        "FRAZIL_CATALOG__S3__ENDPOINT": options.endpoint_url,
        "FRAZIL_CATALOG__S3__PATH_STYLE_ACCESS": "true",
        "FRAZIL_CATALOG__CLIENT__ACCESS_KEY_ID": options.access_key_id,
        "FRAZIL_CATALOG__CLIENT__SECRET_ACCESS_KEY": options.secret_access_key,
    }


def read(bucket: TableBucket, metadata_location: str) -> StaticTable:
    options = bucket.options
    properties = {
        "s3.endpoint": options.endpoint_url,
        "s3.region": options.region,
        "s3.access-key-id": options.access_key_id,
        "s3.secret-access-key": options.secret_access_key,
    }
    return StaticTable.from_metadata(metadata_location, properties)


def test_requests_land_once_beside_other_commits_and_pyiceberg_reads_all_rows(
    moto_server: MotoServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bucket = asyncio.run(moto_server.new_table_bucket())
    frazil = Frazil(tmp_path, monkeypatch, capsys, variables_of(bucket))
    answer = frazil("table", "create", "db.flights", "--schema", "id long")
    assert answer.code == 0, answer.err
    created = frazil.load()
    assert created.metadata.location.endswith("--table-s3")
    assert answer.err == f"created db.flights at {created.metadata.location}\n"
    io = read(bucket, created.metadata_location).io
    with serving(tmp_path, {"FRAZIL_QUEUE__URL": "none"}) as running:
        running.wait_until_ready()
        for epoch in range(EPOCHS):
            publish(frazil, io, epoch)
            changed = frazil("table", "set", "db.flights", f"epoch={epoch}")
            assert changed.code == 0, changed.err

        def has_landed() -> bool:
            snapshot = frazil.load().metadata.current_snapshot
            summary = dict(snapshot.summary or {}) if snapshot else {}
            return summary.get("total-records") == str(EPOCHS * ROWS)

        wait_until(has_landed, "all requests have landed")
        assert running.end() == 0
    found = read(bucket, frazil.load().metadata_location).scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == list(range(EPOCHS * ROWS))
    assert frazil.load().metadata.properties["epoch"] == str(EPOCHS - 1)
    assert frazil("quarantine", "list").lines == []
