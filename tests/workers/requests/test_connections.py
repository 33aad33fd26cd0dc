"""The error on a driver for a catalog that does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from committer.errors import CatalogUnavailableError, SettingsError
from tests.support.servers.dynamodb_server import REGION, DynamoDbServer
from workers.requests.connections import open_connections
from workers.settings.worker_settings import load_settings


def sizes(folder: Path) -> list[int]:
    return [path.stat().st_size for path in folder.iterdir()]


@pytest.mark.parametrize("is_file_there", [False, True])
async def test_a_catalog_that_is_not_there_is_named_by_its_setting_and_not_made(
    tmp_path: Path, is_file_there: bool
) -> None:
    file = tmp_path / "catalog.db"
    if is_file_there:
        file.touch()
    uri = f"sqlite:///{file}"
    options = {"catalog.uri": uri, "inbox": f"file://{tmp_path}/requests", "queue.url": "none"}
    said = rf"setting `catalog.uri` \(FRAZIL_CATALOG__URI\): there is no catalog at {uri} yet"
    with pytest.raises(SettingsError, match=said):
        await open_connections(load_settings(options))
    assert sizes(tmp_path) == ([0] if is_file_there else [])


@pytest.mark.server
async def test_a_dynamodb_table_that_is_not_there_is_named_by_its_setting(
    dynamodb_server: DynamoDbServer, tmp_path: Path
) -> None:
    options = {
        "catalog.uri": f"dynamodb://{dynamodb_server.new_table_name()}",
        "inbox": f"file://{tmp_path}/requests",
        "queue.url": "none",
        "catalog.client.region": REGION,
        "catalog.dynamodb.endpoint": dynamodb_server.url,
    }
    said = r"setting `catalog.uri` \(FRAZIL_CATALOG__URI\): there is no catalog yet: there is no D"
    with pytest.raises(SettingsError, match=said):
        await open_connections(load_settings(options))


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"type": "rest"}, r"setting `catalog.uri` .*: `uri` is empty: expected `https://HOST"),
        ({"type": "nessie"}, r"setting `catalog.type` .*: there is no adapter"),
        ({"uri": "thrift://127.0.0.1:9"}, r"setting `catalog.uri` .*no Hive metastore.*; check"),
    ],
)
async def test_a_catalog_that_a_writer_cannot_use_is_named_by_its_setting(
    tmp_path: Path, properties: dict[str, str], said: str
) -> None:
    options = {"inbox": f"file://{tmp_path}/requests", "queue.url": "none"}
    named = {f"catalog.{name}": text for name, text in properties.items()}
    with pytest.raises((SettingsError, CatalogUnavailableError), match=said):
        await open_connections(load_settings(options | named))
    assert sizes(tmp_path) == []
