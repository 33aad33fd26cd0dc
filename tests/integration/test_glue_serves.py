"""The whole way through Glue: `frazil serve` commits while PyIceberg appends to the same table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.glue import GlueCatalog as ForeignCatalog

from committer.service.process.composition import Parts
from tests.cli.commands import Frazil
from tests.cli.serving import serving, wait_until
from tests.support.builders.request_builders import build_file, build_line, build_manifest, seal
from tests.support.servers.moto_server import MotoServer

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(120)]
EPOCHS = 3
ROWS = 10
COLUMNS = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])


def publish(frazil: Frazil, table: Any, epoch: int) -> None:
    """Write a data file with PyIceberg's client, and make a request for it durable."""
    loaded = frazil.load()
    line = build_line(loaded, epoch=epoch)
    file = build_file(loaded.metadata, line.attempt, record_count=ROWS)
    ids = [epoch * ROWS + number for number in range(ROWS)]
    with table.io.new_output(file.file_path).create() as stream:
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}, schema=COLUMNS), stream)
    sealed = seal(line, [build_manifest(loaded.metadata, [file])])

    async def work(parts: Parts) -> None:
        await parts.inbox.put(sealed)

    frazil.with_parts(work)


def test_requests_land_once_beside_appends_of_pyiceberg_through_the_same_catalog(
    moto_server: MotoServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = moto_server.new_account()
    variables = {
        "FRAZIL_CATALOG__TYPE": "glue",
        "FRAZIL_CATALOG__WAREHOUSE": f"file://{tmp_path}/warehouse",
        "FRAZIL_CATALOG__GLUE__ENDPOINT": options.endpoint_url,
        "FRAZIL_CATALOG__GLUE__REGION": options.region,
        "FRAZIL_CATALOG__GLUE__ACCESS_KEY_ID": options.access_key_id,
        "FRAZIL_CATALOG__GLUE__SECRET_ACCESS_KEY": options.secret_access_key,
    }
    frazil = Frazil(tmp_path, monkeypatch, capsys, variables)
    answer = frazil("table", "create", "db.flights", "--schema", "id long")
    assert answer.code == 0, answer.err
    theirs = ForeignCatalog(
        "frazil",
        **{
            "warehouse": f"file://{tmp_path}/warehouse",
            "glue.endpoint": options.endpoint_url,
            "glue.region": options.region,
            "glue.access-key-id": options.access_key_id,
            "glue.secret-access-key": options.secret_access_key,
        },
    )
    ours, all_rows = EPOCHS * ROWS, 2 * EPOCHS * ROWS
    with serving(tmp_path, {"FRAZIL_QUEUE__URL": "none"}) as running:
        running.wait_until_ready()
        for epoch in range(EPOCHS):
            publish(frazil, theirs.load_table("db.flights"), epoch)
            ids = list(range(ours + epoch * ROWS, ours + (epoch + 1) * ROWS))
            rows = pa.table({"id": pa.array(ids, pa.int64())}, schema=COLUMNS)
            theirs.load_table("db.flights").append(rows)

        def has_landed() -> bool:
            snapshot = theirs.load_table("db.flights").current_snapshot()
            return bool(snapshot and snapshot.summary["total-records"] == str(all_rows))

        wait_until(has_landed, "all requests have landed")
        assert running.end() == 0
    found = theirs.load_table("db.flights").scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == list(range(all_rows))
    assert frazil("quarantine", "list").lines == []
