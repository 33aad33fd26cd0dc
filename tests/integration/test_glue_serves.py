"""The whole way through Glue: `frazil serve` commits while PyIceberg appends to the same table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.glue import GlueCatalog as ForeignCatalog

from tests.integration.published_rows import ROWS, publish, rows_from
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import serving, wait_until
from tests.support.servers.moto_server import MotoServer

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(120)]
EPOCHS = 3


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
            publish(frazil, theirs.load_table("db.flights").io, epoch)
            theirs.load_table("db.flights").append(rows_from(ours + epoch * ROWS))

        def has_landed() -> bool:
            snapshot = theirs.load_table("db.flights").current_snapshot()
            return bool(snapshot and snapshot.summary["total-records"] == str(all_rows))

        wait_until(has_landed, "all requests have landed")
        assert running.end() == 0
    found = theirs.load_table("db.flights").scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == list(range(all_rows))
    assert frazil("quarantine", "list").lines == []
