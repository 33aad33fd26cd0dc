from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import SettingsError
from workers.files.adls_files import AdlsAccess
from workers.files.gcs_files import GcsAccess
from workers.files.s3_files import S3Access
from workers.settings.worker_settings import load_read_settings, load_settings


def test_options_are_stronger_than_the_environment_and_that_than_the_file(tmp_path: Path) -> None:
    (tmp_path / "frazil.toml").write_text(
        'inbox = "file:/from-file"\n[catalog]\nuri = "sqlite:////file"\nname = "file"\n'
        '[queue]\nurl = "redis://file"\n[service]\nhttp_port = 1\n'
    )
    environment = {
        "FRAZIL_HOME": str(tmp_path),
        "FRAZIL_CATALOG__NAME": "environment",
        "FRAZIL_QUEUE__URL": "redis://environment",
    }
    settings = load_settings({"queue.url": "redis://option", "table": "db.t"}, environment)
    assert settings.queue_url == "redis://option"
    assert settings.catalog.name == "environment"
    assert settings.catalog.uri == "sqlite:////file"
    assert settings.inbox == "file:/from-file"


def test_the_defaults_are_those_of_a_committer_with_the_same_home(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").touch()
    settings = load_settings({}, {"FRAZIL_HOME": str(tmp_path)})
    assert settings.catalog.name == "frazil"
    assert settings.catalog.uri == f"sqlite:///{tmp_path}/catalog.db"
    assert settings.inbox == f"file://{tmp_path}/requests"
    assert settings.queue_url == f"unix://{tmp_path}/queue/redis.sock"


def test_a_catalog_that_is_a_folder_is_the_committers_default_without_a_place(
    tmp_path: Path,
) -> None:
    options = {"home": str(tmp_path), "catalog.type": "hadoop"}
    place = f"file://{tmp_path}/warehouse"
    assert load_settings(options, {}).catalog.warehouse == place
    assert load_read_settings(options, {}).catalog.warehouse == place
    named = {**options, "catalog.warehouse": "s3://bucket/lake"}
    assert load_settings(named, {}).catalog.warehouse == "s3://bucket/lake"


def test_a_machine_without_a_catalog_is_told_which_option_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r'option\("catalog.uri", …\) or FRAZIL_CATALOG__URI'):
        load_settings({"home": str(tmp_path)}, {})


def test_requests_never_go_to_a_local_default_that_no_committer_uses(tmp_path: Path) -> None:
    options = {"home": str(tmp_path / "absent"), "catalog.uri": "postgresql://db/frazil"}
    with pytest.raises(SettingsError, match=r'option\("inbox", …\) or FRAZIL_INBOX'):
        load_settings(options, {})


@pytest.mark.parametrize("url", ["none", "rediss://host:6379/0", "unix:///tmp/redis.sock"])
def test_a_queue_is_a_redis_url_or_none(url: str, tmp_path: Path) -> None:
    (tmp_path / "catalog.db").touch()
    settings = load_settings({"home": str(tmp_path), "queue.url": url}, {})
    assert settings.queue_url == url


@pytest.mark.parametrize(
    ("text", "problem"),
    [("catalog = [", "is not TOML"), ("[catalog]\nuri = [5]", "`catalog.uri`.*expected a string")],
)
def test_a_broken_file_is_named(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "frazil.toml").write_text(text)
    with pytest.raises(SettingsError, match=problem):
        load_settings({"home": str(tmp_path)}, {})


def test_a_named_file_must_exist() -> None:
    with pytest.raises(SettingsError, match=r"FRAZIL_CONFIG names `/absent.toml`"):
        load_settings({}, {"FRAZIL_CONFIG": "/absent.toml"})


AWS = {
    "FRAZIL_CATALOG__URI": "dynamodb://",
    "FRAZIL_INBOX": "s3://bucket/requests",
    "FRAZIL_CATALOG__CLIENT__REGION": "eu-central-1",
    "FRAZIL_CATALOG__S3__ENDPOINT": "http://127.0.0.1:8333",
}


def test_properties_come_from_options_environment_and_file(tmp_path: Path) -> None:
    (tmp_path / "frazil.toml").write_text(
        '[catalog]\n"client.region" = "file"\nclient.profile-name = "analytics"\n'
    )
    environment = {
        **AWS,
        "FRAZIL_HOME": str(tmp_path),
        "FRAZIL_CATALOG__DYNAMODB__ENDPOINT": "http://127.0.0.1:8000",
    }
    settings = load_settings({"catalog.s3.force-virtual-addressing": "true"}, environment)
    assert settings.catalog == CatalogProperties(
        "frazil",
        {
            "uri": "dynamodb://",
            "client.region": "eu-central-1",
            "client.profile-name": "analytics",
            "s3.endpoint": "http://127.0.0.1:8333",
            "s3.force-virtual-addressing": "true",
            "dynamodb.endpoint": "http://127.0.0.1:8000",
        },
    )
    assert settings.access.s3 == S3Access("eu-central-1", "http://127.0.0.1:8333", is_virtual=True)


def test_tasks_are_told_what_the_driver_has_from_the_variables_of_aws_itself() -> None:
    environment = {
        "FRAZIL_CATALOG__URI": "dynamodb://",
        "FRAZIL_INBOX": "s3://bucket/requests",
        "AWS_DEFAULT_REGION": "us-east-2",
        "AWS_REGION": "us-west-2",
        "AWS_ENDPOINT_URL": "http://host:1",
        "AWS_ENDPOINT_URL_S3": "http://host:2",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "hush",
    }
    settings = load_settings({}, environment)
    assert settings.catalog == CatalogProperties("frazil", {"uri": "dynamodb://"})
    assert settings.access.s3 == S3Access("us-west-2", "http://host:2")
    assert b"hush" not in pickle.dumps(settings)


def test_tasks_are_told_the_region_of_the_table_bucket_and_not_that_of_the_driver() -> None:
    environment = {
        "FRAZIL_CATALOG__TYPE": "s3tables",
        "FRAZIL_CATALOG__WAREHOUSE": "arn:aws:s3tables:eu-west-1:111122223333:bucket/lake",
        "FRAZIL_INBOX": "s3://bucket/requests",
        "AWS_REGION": "us-west-2",
    }
    assert load_settings({}, environment).access.s3 == S3Access("eu-west-1")


def test_tasks_are_told_where_google_and_azure_are_and_no_secret() -> None:
    environment = {
        "FRAZIL_CATALOG__URI": "sqlite:///c.db",
        "FRAZIL_INBOX": "gs://bucket/requests",
        "FRAZIL_CATALOG__GCS__OAUTH2__TOKEN": "hush",
        "FRAZIL_CATALOG__ADLS__ACCOUNT_NAME": "lake",
        "FRAZIL_CATALOG__ADLS__ACCOUNT_KEY": "hush",
        "FRAZIL_CATALOG__ADLS__BLOB_STORAGE_AUTHORITY": "127.0.0.1:10000",
        "FRAZIL_CATALOG__ADLS__BLOB_STORAGE_SCHEME": "http",
        "STORAGE_EMULATOR_HOST": "127.0.0.1:4443",
    }
    found = load_settings({}, environment).access
    assert found.gcs == GcsAccess("http://127.0.0.1:4443", is_anonymous=True)
    assert found.adls == AdlsAccess("lake", "127.0.0.1:10000", "http")
    assert b"hush" not in pickle.dumps(found)
    named = {"catalog.gcs.service.host": "http://host:1", "catalog.gcs.no-auth": "true"}
    assert load_settings(named, environment).access.gcs == GcsAccess("http://host:1", True)


@pytest.mark.parametrize(
    ("setting", "text", "expected"),
    [
        ("catalog.s3.path-style-access", "dns", "expected true or false"),
        ("catalog.s3.endpoint", "127.0.0.1:8333", r"expected http://HOST:PORT"),
        ("catalog.dynamodb.endpoint", "http://host/path", r"expected http://HOST:PORT"),
        ("catalog.s3.endpiont", "http://host", "did you mean `catalog.s3.endpoint`"),
    ],
)
def test_a_property_that_cannot_be_is_refused(setting: str, text: str, expected: str) -> None:
    with pytest.raises(SettingsError, match=rf"setting `{setting}`.*{expected}"):
        load_settings({setting: text}, AWS)


def test_an_unknown_kind_of_queue_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"queue\.url"):
        load_settings({"home": str(tmp_path), "queue.url": "amqp://host"}, {})
