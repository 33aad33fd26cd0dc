"""Opening a catalog: an empty one is made for a new harness, never in place of one that is away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    SettingsError,
    StorageUnavailableError,
)
from committer.ports.table_credentials import VendedCredential
from committer.request.table_identifier import TableIdentifier
from committer.request.unsigned_operations import ALL_OPERATIONS
from committer.service.process.composition import (
    RequestParts,
    open_known_catalog,
    open_request_parts,
    unsigned_operations,
)
from committer.settings.service_settings import (
    CatalogSettings,
    QueueSettings,
    SecuritySettings,
    Settings,
)
from committer.settings.setting_names import named_setting
from tests.support.builders.request_builders import build_request
from tests.support.builders.signing import OLD, print_keys
from tests.support.builders.table_builders import build_table
from tests.support.servers.dynamodb_server import REGION, DynamoDbServer
from tests.support.servers.fake_rest_access import s3_keys
from tests.support.servers.moto_server import MotoServer
from tests.support.servers.postgres_server import PostgresServer
from tests.support.servers.s3_server import VENDED, S3Server


def parts_in(folder: Path) -> RequestParts:
    return open_request_parts(Settings(home=folder, queue=QueueSettings(url="none")))


@pytest.mark.parametrize("spelled", ["{}", "file://{}", "file:{}"])
async def test_the_file_of_keys_may_be_a_path_or_a_location(spelled: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_bytes(print_keys(OLD))
    security = SecuritySettings(keys=spelled.format(path))
    queue = QueueSettings(url="none")
    parts = open_request_parts(Settings(home=tmp_path, queue=queue, security=security))
    assert parts.key_file
    assert await parts.key_file.read() == {OLD.key_id: OLD}
    await parts.close()


def test_a_place_of_keys_that_no_storage_serves_is_named_by_its_setting(tmp_path: Path) -> None:
    security = SecuritySettings(keys="ftp://bucket/keys.toml")
    with pytest.raises(
        SettingsError, match=r"`security\.keys` \(FRAZIL_SECURITY__KEYS\): .*`ftp:`"
    ):
        open_request_parts(Settings(home=tmp_path, security=security))


async def test_catalog_of_a_new_harness_is_made(tmp_path: Path) -> None:
    parts = parts_in(tmp_path / "home")
    catalog = await open_known_catalog(parts)
    assert await catalog.list_namespaces() == []
    await catalog.close()
    await parts.close()


async def refuse_while_requests_wait(
    parts: RequestParts, kind: type[FrazilError], said: str
) -> None:
    """Check that a missing catalog is refused while a request waits for it, and created after."""
    sealed = build_request(build_table(warehouse="memory://warehouse"))
    await parts.inbox.put(sealed)
    for _ in range(2):
        with pytest.raises(kind, match=said):
            await open_known_catalog(parts)
    await parts.inbox.delete([sealed.request.inbox_key])
    catalog = await open_known_catalog(parts)
    assert await catalog.list_namespaces() == []
    await catalog.close()
    await parts.close()


async def test_no_empty_catalog_is_made_while_requests_wait_for_tables(tmp_path: Path) -> None:
    await refuse_while_requests_wait(
        parts_in(tmp_path), CatalogUnavailableError, r"catalog\.db` does not exist, but"
    )


@pytest.mark.server
async def test_glue_that_shows_no_database_is_refused_while_requests_wait(
    moto_server: MotoServer, tmp_path: Path
) -> None:
    options = moto_server.new_account()
    properties = {
        "glue.region": options.region,
        "glue.endpoint": options.endpoint_url,
        "glue.access-key-id": options.access_key_id,
        "glue.secret-access-key": options.secret_access_key,
    }
    catalog = CatalogSettings(type="glue", properties=properties)
    settings = Settings(home=tmp_path, catalog=catalog, queue=QueueSettings(url="none"))
    await refuse_while_requests_wait(
        open_request_parts(settings), SettingsError, r"\(glue\) has no namespace at all"
    )


@pytest.mark.server
async def test_table_bucket_that_shows_no_namespace_is_refused_while_requests_wait(
    moto_server: MotoServer, tmp_path: Path
) -> None:
    bucket = await moto_server.new_table_bucket()
    properties = {
        "s3tables.endpoint": bucket.options.endpoint_url,
        "client.access-key-id": bucket.options.access_key_id,
        "client.secret-access-key": bucket.options.secret_access_key,
    }
    catalog = CatalogSettings(type="s3tables", warehouse=bucket.arn, properties=properties)
    settings = Settings(home=tmp_path, catalog=catalog, queue=QueueSettings(url="none"))
    await refuse_while_requests_wait(
        open_request_parts(settings), SettingsError, r"\(s3tables\) has no namespace at all"
    )


@pytest.mark.parametrize(
    ("inbox", "warehouse", "named"),
    [
        ("ftp://bucket/requests", "", r"`inbox` \(FRAZIL_INBOX\): .*no storage for `ftp:`"),
        ("", "ftp://bucket", r"`catalog\.warehouse` \(FRAZIL_CATALOG__WAREHOUSE\): .*`ftp:`"),
    ],
)
def test_a_place_that_no_storage_serves_is_named_by_its_setting(
    inbox: str, warehouse: str, named: str, tmp_path: Path
) -> None:
    catalog = CatalogSettings(warehouse=warehouse)
    settings = Settings(
        home=tmp_path, inbox=inbox, catalog=catalog, queue=QueueSettings(url="none")
    )
    with pytest.raises(SettingsError, match=named):
        open_request_parts(settings)


@pytest.mark.parametrize("kind", [SettingsError, AccessError, StorageUnavailableError])
def test_what_an_adapter_refuses_is_told_with_its_setting(kind: type[FrazilError]) -> None:
    with (
        pytest.raises(kind, match=r"setting `inbox` \(FRAZIL_INBOX\): no such bucket"),
        named_setting("inbox"),
    ):
        raise kind("no such bucket")


async def test_settings_of_aws_reach_the_adapters(tmp_path: Path) -> None:
    properties = {"client.region": "eu-central-1", "client.profile-name": "absent-profile"}
    settings = Settings(
        home=tmp_path,
        inbox="s3://bucket/requests",
        catalog=CatalogSettings(properties=properties),
        queue=QueueSettings(url="none"),
    )
    parts = open_request_parts(settings)
    with pytest.raises(SettingsError, match="absent-profile"):
        await parts.storage.head("s3://bucket/requests/x")
    await parts.close()


@pytest.mark.server
async def test_no_dynamodb_table_is_made_while_requests_wait(
    dynamodb_server: DynamoDbServer, tmp_path: Path
) -> None:
    catalog = CatalogSettings(
        uri=f"dynamodb://{dynamodb_server.new_table_name()}",
        properties={"client.region": REGION, "dynamodb.endpoint": dynamodb_server.url},
    )
    queue = QueueSettings(url="none")
    parts = open_request_parts(Settings(home=tmp_path, catalog=catalog, queue=queue))
    await refuse_while_requests_wait(
        parts, SettingsError, r"FRAZIL_CATALOG__URI.*requests wait in .* but .*no DynamoDB table"
    )


@pytest.mark.server
async def test_no_tables_are_made_on_a_database_server_while_requests_wait(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    catalog = CatalogSettings(uri=postgres_server.uri(postgres_server.new_database()))
    queue = QueueSettings(url="none")
    parts = open_request_parts(Settings(home=tmp_path, catalog=catalog, queue=queue))
    await refuse_while_requests_wait(
        parts, SettingsError, r"FRAZIL_CATALOG__URI.*requests wait in .* but .*no catalog at"
    )


@pytest.mark.thorough
def test_parts_without_a_queue_import_neither_its_client_nor_the_log() -> None:
    """Most commands need neither; both take longer to import than such a command to run."""
    program = (
        "import sys; from committer.service.process import composition;"
        " print(*{'redis', 'structlog'} & {*sys.modules})"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == []


@pytest.mark.server
async def test_a_vended_credential_is_never_used_for_requests(
    tmp_path: Path, s3_server: S3Server
) -> None:
    """Here it opens another bucket than that of the requests, so whatever uses it fails."""
    if not s3_server.is_seaweedfs:
        pytest.skip("the keys of FRAZIL_TEST_S3_URL open every bucket: nothing is vended")
    root = s3_server.new_root()
    properties = {"s3.endpoint": s3_server.url, "client.region": s3_server.region}
    catalog = CatalogSettings(properties=properties)
    settings = Settings(home=tmp_path, inbox=root, queue=QueueSettings(url="none"), catalog=catalog)
    parts = open_request_parts(settings)
    assert parts.storages.vended is not None
    keys = VendedCredential("", s3_keys(*VENDED))
    parts.storages.vended.keep(TableIdentifier(("db",), "t"), (root,), (keys,), _refused)
    with pytest.raises(AccessError):
        await parts.storage.get(f"{root}/new/x")
    assert [key async for key in parts.inbox.list()] == []
    assert [key async for key in parts.quarantine.list()] == []
    await parts.close()


async def _refused() -> tuple[VendedCredential, ...]:
    raise AccessError("the catalog gives none")


@pytest.mark.parametrize(
    ("inbox", "home_mode", "inbox_mode", "is_all"),
    [
        ("file://{home}/requests", 0o700, 0o755, True),
        ("file://{home}/requests", 0o755, 0o700, True),
        ("file://{home}/requests", 0o755, 0o755, False),
        ("file://{home}/requests", 0o755, None, True),
        ("file://{home}/requests", 0o775, 0o700, False),
        ("file://{beside}/requests", 0o700, None, False),
        ("{home}/../beside/requests", 0o700, None, False),
        ("s3://bucket/requests", 0o700, None, False),
    ],
)
def test_unsigned_requests_may_do_all_where_no_other_user_can_publish_else_append(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    inbox: str,
    home_mode: int,
    inbox_mode: int | None,
    is_all: bool,
) -> None:
    home, beside = tmp_path / "home", tmp_path / "beside"
    home.mkdir()
    home.chmod(home_mode)
    if inbox_mode is not None:
        (home / "requests").mkdir()
        (home / "requests").chmod(inbox_mode)
    # A location is no path below the folder in which the process runs.
    monkeypatch.chdir(home)
    settings = Settings(home=home, inbox=inbox.format(home=home, beside=beside))
    expected = ALL_OPERATIONS if is_all else {"append"}
    assert unsigned_operations(settings) == expected
    security = SecuritySettings(unsigned_operations="append, delete")
    named = Settings(home=home, inbox=settings.inbox, security=security)
    assert unsigned_operations(named) == {"append", "delete"}


@pytest.mark.parametrize(
    ("url", "is_all"),
    [
        ("none", True),
        ("unix://{home}/queue/redis.sock", True),
        ("unix://{private}/redis.sock", True),
        ("unix:///redis.sock", False),
        ("redis://queue:6379/0", False),
    ],
)
def test_a_queue_that_others_reach_carries_requests_of_others(
    tmp_path: Path, url: str, is_all: bool
) -> None:
    home, private = tmp_path / "home", tmp_path / "private"
    private.mkdir(0o700)
    queue = QueueSettings(url=url.format(home=home, private=private))
    expected = ALL_OPERATIONS if is_all else {"append"}
    assert unsigned_operations(Settings(home=home, queue=queue)) == expected


def test_an_inbox_behind_a_link_is_not_in_the_home(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(0o700)
    (tmp_path / "shared").mkdir()
    (tmp_path / "home/requests").symlink_to(tmp_path / "shared")
    assert unsigned_operations(Settings(home=tmp_path / "home")) == {"append"}
