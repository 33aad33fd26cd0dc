"""Which adapter serves a location or a catalog; what AWS needs is imported when it is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from committer.backends.catalog_kinds import dynamodb_table, open_catalog
from committer.backends.storage_schemes import open_storage
from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import SettingsError
from committer.real_world import RealWorld

LOCAL_HOUSE = """
import asyncio, sys
from pathlib import Path
from committer.service.process.composition import open_parts
from committer.settings.service_settings import QueueSettings, Settings
from committer.catalog.catalog_properties import CatalogProperties
from workers.requests.connections import open_connections
from workers.settings.worker_settings import WorkerSettings

async def main(home):
    parts = await open_parts(Settings(home=Path(home), queue=QueueSettings(url="none")))
    await parts.close()
    connections = await open_connections(
        WorkerSettings(
            CatalogProperties("frazil", {"uri": f"sqlite:///{home}/catalog.db"}),
            f"file://{home}/requests",
            "none",
        )
    )
    await connections.close()

asyncio.run(main(sys.argv[1]))
print(*sys.modules)
"""


LOCAL = CatalogProperties("frazil")


def dynamodb(uri: str) -> CatalogProperties:
    return CatalogProperties("frazil", {"uri": uri})


@pytest.fixture
def without_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the extra `aws`."""
    for module in [*sys.modules, "aiobotocore"]:
        if module.partition(".")[0] == "aiobotocore":
            monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "committer.aws.client", raising=False)


@pytest.mark.thorough
def test_one_machine_does_without_the_extra(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", LOCAL_HOUSE, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    modules = answer.stdout.split()
    assert "committer.backends.catalog_kinds" in modules
    assert not {"aiobotocore", "botocore", "committer.aws.client"} & set(modules)


@pytest.mark.usefixtures("without_extra")
@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_s3_without_the_extra_says_what_to_install(scheme: str) -> None:
    storage = open_storage(LOCAL, RealWorld())
    with pytest.raises(SettingsError, match=r"needs the package `\w+`: install the extra `aws`"):
        storage.adapter(f"{scheme}://bucket/requests")
    storage.adapter("file:///requests")


@pytest.mark.usefixtures("without_extra")
async def test_dynamodb_without_the_extra_says_what_to_install() -> None:
    storage, world = open_storage(LOCAL, RealWorld()), RealWorld()
    with pytest.raises(SettingsError, match=r"\(dynamodb://t\.1\).*the extra `aws`"):
        await open_catalog(dynamodb("dynamodb://t.1"), storage, world, create=False)


async def test_the_schemes_of_s3_share_one_adapter_that_is_no_other_ones() -> None:
    properties = {"s3.region": "eu-central-1", "s3.endpoint": "http://127.0.0.1:1"}
    catalog = CatalogProperties("frazil", properties)
    storage = open_storage(catalog, RealWorld(), prune_below="s3://bucket/requests")
    adapters = {storage.adapter(f"{scheme}://bucket/x") for scheme in ("s3", "s3a", "s3n")}
    assert len(adapters) == 1
    assert storage.adapter("/x") not in adapters
    await storage.close()


async def test_a_glue_catalog_is_opened_by_its_type_and_properties() -> None:
    from committer.catalog.glue.glue_catalog import GlueCatalog

    storage, world = open_storage(LOCAL, RealWorld()), RealWorld()
    properties = {"type": "glue", "glue.region": "eu-west-1", "glue.id": "111122223333"}
    catalog = await open_catalog(
        CatalogProperties("frazil", properties), storage, world, create=False
    )
    assert isinstance(catalog, GlueCatalog)
    await catalog.close()


ARN = "arn:aws:s3tables:eu-west-1:111122223333:bucket/lake"


async def test_a_table_bucket_names_the_region_of_its_catalog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from committer.catalog.s3_tables.s3_tables_catalog import S3TablesCatalog

    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    properties = CatalogProperties("frazil", {"type": "s3tables", "warehouse": ARN})
    storage, world = open_storage(properties, RealWorld()), RealWorld()
    catalog = await open_catalog(properties, storage, world, create=False)
    assert isinstance(catalog, S3TablesCatalog)
    assert catalog._client.meta.region_name == "eu-west-1"
    await catalog.close()
    await storage.close()


@pytest.mark.parametrize("name", ["s3tables.region", "client.region"])
async def test_a_table_bucket_in_another_region_than_is_configured_is_refused(name: str) -> None:
    values = {"type": "s3tables", "warehouse": ARN, name: "eu-central-1"}
    storage, world = open_storage(LOCAL, RealWorld()), RealWorld()
    with pytest.raises(SettingsError, match=rf"`{name}` eu-central-1: .* are in eu-west-1"):
        await open_catalog(CatalogProperties("frazil", values), storage, world, create=False)


@pytest.mark.usefixtures("without_extra")
async def test_glue_without_the_extra_says_what_to_install() -> None:
    storage, world = open_storage(LOCAL, RealWorld()), RealWorld()
    with pytest.raises(SettingsError, match=r"\(glue\).*the extra `aws`"):
        await open_catalog(
            CatalogProperties("frazil", {"type": "glue"}), storage, world, create=False
        )


def test_a_location_of_an_unknown_scheme_is_told_which_are_known() -> None:
    storage = open_storage(LOCAL, RealWorld())
    with pytest.raises(
        SettingsError, match=r"no storage for `oss:` \(have: abfs, abfss, file, gs, s3"
    ):
        storage.adapter("oss://bucket/requests")


@pytest.mark.parametrize(
    ("uri", "table"),
    [("dynamodb://", "iceberg"), ("dynamodb://Frazil_1.a-b", "Frazil_1.a-b")],
)
def test_a_dynamodb_catalog_names_its_table_letter_for_letter(uri: str, table: str) -> None:
    assert dynamodb_table(dynamodb(uri)) == table


@pytest.mark.parametrize(
    "uri", ["dynamodb:iceberg", "dynamodb://ab", "dynamodb://a/b", "dynamodb://é"]
)
def test_what_is_no_name_of_a_dynamodb_table_is_refused(uri: str) -> None:
    with pytest.raises(SettingsError, match="expected dynamodb://TABLE"):
        dynamodb_table(dynamodb(uri))
