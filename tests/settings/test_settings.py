"""Settings from files: the rest is shown where settings are used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.property_names import CATALOG_PROPERTIES
from committer.errors import SettingsError
from committer.settings.service_settings import Settings, load_settings
from committer.settings.setting_names import SETTINGS
from frazil.handle import find_catalog
from workers.settings.worker_settings import load_settings as load_worker_settings

SECRET = "rediss://:hush@queue:6380/0"


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FRAZIL_HOME", str(tmp_path))
    monkeypatch.setenv("FRAZIL_QUEUE__URL_FILE", str(tmp_path / "queue-url"))
    path = tmp_path / "queue-url"
    path.write_text(SECRET + "\n")
    return path


def test_a_secret_comes_from_the_file_that_its_variable_names(secret: Path) -> None:
    assert load_settings().queue.url == SECRET


def test_a_spark_driver_reads_the_same_file(secret: Path) -> None:
    (secret.parent / "catalog.db").touch()
    assert load_worker_settings({}).queue_url == SECRET


def test_other_variables_of_the_same_group_still_count(
    secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_QUEUE__CONSUMER", "pod-1")
    assert (load_settings().queue.consumer, load_settings().queue.url) == ("pod-1", SECRET)


@pytest.mark.parametrize(
    ("content", "problem"),
    [(None, "cannot be read: No such file"), (b" \n", "is empty"), (b"\xff", "it is not text")],
)
def test_a_secret_that_is_not_there_never_becomes_the_default(
    secret: Path, content: bytes | None, problem: str
) -> None:
    secret.unlink() if content is None else secret.write_bytes(content)
    with pytest.raises(SettingsError, match=rf"FRAZIL_QUEUE__URL_FILE: `{secret}` .*{problem}"):
        load_settings()


def test_a_variable_and_a_file_for_one_setting_are_refused(
    secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_QUEUE__URL", "none")
    with pytest.raises(SettingsError, match=r"URL and FRAZIL_QUEUE__URL_FILE are both set"):
        load_settings()


def test_a_layer_of_configuration_can_take_a_file_back(
    secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_QUEUE__URL_FILE", "")
    monkeypatch.setenv("FRAZIL_QUEUE__URL", "none")
    assert load_settings().queue.url == "none"


def test_a_file_for_a_setting_that_does_not_exist_is_refused(
    secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_QUEUE__URLS_FILE", str(secret))
    with pytest.raises(SettingsError, match="FRAZIL_QUEUE__URLS"):
        load_settings()


def test_a_wrong_secret_is_not_told_with_the_error(secret: Path) -> None:
    secret.write_text("amqp://:hush@queue")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert "hush" not in str(caught.value)


def test_signatures_are_not_required_without_keys_to_verify_them_with(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"security.require_signature: also set security.keys"):
        load_settings(home=tmp_path, security={"require_signature": True})


@pytest.mark.parametrize(
    ("security", "said"),
    [
        (
            {"unsigned_operations": "apend"},
            r"security\.unsigned_operations.*operations with commas",
        ),
        ({"unsigned_operations": "none"}, r"with `none`, also set security\.keys"),
        (
            {"locations": "warehouse"},
            r"security\.locations.*a URI or an absolute path.*`warehouse`",
        ),
    ],
)
def test_what_requests_may_do_is_read_before_anything_starts(
    tmp_path: Path, security: dict[str, str], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        load_settings(home=tmp_path, security=security)


# --- Places on AWS -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inbox", "warehouse"),
    [
        ("s3://bucket/requests", "file:///warehouse"),
        ("file:///requests", "s3://bucket/warehouse"),
        ("s3://bucket/requests", "s3://bucket/warehouse"),
        ("s3://bucket/warehouse-requests", "s3://bucket/warehouse"),
        ("s3://other/warehouse/requests", "s3://bucket/warehouse"),
    ],
)
def test_inbox_and_warehouse_may_be_in_different_places(
    inbox: str, warehouse: str, tmp_path: Path
) -> None:
    catalog = {"uri": "dynamodb://", "warehouse": warehouse}
    settings = load_settings(home=tmp_path, inbox=inbox, catalog=catalog)
    assert (settings.inbox, settings.catalog.warehouse) == (inbox, warehouse)


@pytest.mark.parametrize(
    ("inbox", "warehouse"),
    [
        ("s3://bucket/warehouse/requests", "s3://bucket/warehouse/"),
        ("s3a://bucket/warehouse", "s3://bucket/warehouse"),
        ("S3://bucket/requests", "s3n://bucket"),
        ("file:/srv/warehouse/requests", "file:///srv/warehouse"),
        ("/srv/warehouse/requests/", "file:/srv/warehouse"),
    ],
)
def test_an_inbox_inside_the_warehouse_is_refused_however_the_place_is_spelled(
    inbox: str, warehouse: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match="lies inside the warehouse"):
        load_settings(home=tmp_path, inbox=inbox, catalog={"warehouse": warehouse})


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("FRAZIL_CATALOG__S3__ENDPOINT", "localhost:8333"),
        ("FRAZIL_CATALOG__DYNAMODB__ENDPOINT", "http://localhost:8000/path"),
        ("FRAZIL_CATALOG__S3__PATH_STYLE_ACCESS", "dns"),
        ("FRAZIL_CATALOG__SECRET_ACCESS_KEY", "hush"),
    ],
)
def test_an_aws_setting_that_cannot_be_is_named(
    variable: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_HOME", str(tmp_path))
    monkeypatch.setenv(variable, text)
    with pytest.raises(SettingsError, match=variable) as raised:
        load_settings()
    assert "hush" not in str(raised.value)


# --- Names ---------------------------------------------------------------------------------------


def test_the_names_that_are_known_are_those_of_the_settings() -> None:
    found = set()
    for name, field in Settings.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= {f"{name}.{one}" for one in kind.model_fields}
        else:
            found.add(name)
    properties = {f"catalog.{name}" for name in CATALOG_PROPERTIES}
    assert found - {"catalog.properties"} | properties == SETTINGS


@pytest.fixture(params=["committer", "driver"])
def load(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], object]:
    """Return a loader of a home's settings, as of a committer and as of a Spark driver."""
    monkeypatch.setenv("FRAZIL_HOME", str(tmp_path))
    (tmp_path / "catalog.db").touch()
    return load_settings if request.param == "committer" else lambda: load_worker_settings({})


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("FRAZIL_INBX", "FRAZIL_INBOX"),
        ("FRAZIL_QUEUE_URL", "FRAZIL_QUEUE__URL"),
        ("FRAZIL_QUEUE_URL_FILE", "FRAZIL_QUEUE__URL_FILE"),
        ("FRAZIL_COMIT__MIN_INTERVAL_MS", "FRAZIL_COMMIT__MIN_INTERVAL_MS"),
        ("FRAZIL_SERVICE_HTTP_PORT", "FRAZIL_SERVICE__HTTP_PORT"),
        ("FRAZIL_HTTP_PORT", "FRAZIL_SERVICE__HTTP_PORT"),
        ("FRAZIL_CATALOG_URI", "FRAZIL_CATALOG__URI"),
        ("FRAZIL_CATALOG__WAREHOUS", "FRAZIL_CATALOG__WAREHOUSE"),
        ("Frazil_Hom", "FRAZIL_HOME"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_name_that_is_near(
    load: Callable[[], object], monkeypatch: pytest.MonkeyPatch, variable: str, meant: str
) -> None:
    monkeypatch.setenv(variable, "9000")
    with pytest.raises(SettingsError, match=f"`{variable}`.* did you mean `{meant}`"):
        load()


def test_a_variable_that_is_like_none_is_refused(
    load: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_XYZZY", "hush")
    with pytest.raises(SettingsError, match=r"`FRAZIL_XYZZY`.*settings\.md lists all") as raised:
        load()
    assert "hush" not in str(raised.value)


# A pod's variables for the services `frazil`, `frazil-metrics` and `frazil-service-http`.
INJECTED = {
    "FRAZIL_SERVICE_HOST": "10.96.0.12",
    "FRAZIL_SERVICE_PORT": "8181",
    "FRAZIL_SERVICE_PORT_HTTP": "8181",
    "FRAZIL_PORT": "tcp://10.96.0.12:8181",
    "FRAZIL_PORT_8181_TCP": "tcp://10.96.0.12:8181",
    "FRAZIL_PORT_8181_TCP_PROTO": "tcp",
    "FRAZIL_PORT_8181_TCP_PORT": "8181",
    "FRAZIL_PORT_8181_TCP_ADDR": "10.96.0.12",
    "FRAZIL_METRICS_SERVICE_HOST": "fd00::12",
    "FRAZIL_METRICS_PORT_53_UDP": "udp://[fd00::12]:53",
    "FRAZIL_METRICS_PORT_53_UDP_ADDR": "fd00::12",
    "FRAZIL_SERVICE_HTTP_PORT": "tcp://10.96.0.13:80",
    "FRAZIL_SERVICE_HTTP_SERVICE_PORT": "80",
}


def test_what_kubernetes_sets_for_services_is_no_setting(
    load: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in INJECTED.items():
        monkeypatch.setenv(name, value)
    load()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[queue]\nurll = 'none'\n", "setting `queue.urll`: .* `queue.url`"),
        ("[comit]\nmin_interval_ms = 5\n", "`comit.min_interval_ms`: .* `commit.min_interval_ms`"),
        ("inbx = 'file:///x'\n", "setting `inbx`: .* `inbox`"),
        ("[inbox]\nurl = 1\n", "inbox"),
    ],
)
def test_a_misspelt_key_of_a_settings_file_is_refused(
    load: Callable[[], object], tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "frazil.toml").write_text(text)
    with pytest.raises(SettingsError, match=said):
        load()


def test_a_committers_settings_file_serves_a_driver(
    load: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "frazil.toml").write_text("[commit]\nmin_interval_ms = 5\n")
    monkeypatch.setenv("FRAZIL_SERVICE__LOG_FORMAT", "json")
    load()


def test_a_home_that_the_file_names_is_that_of_committer_driver_and_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "srv"
    home.mkdir()
    (home / "catalog.db").touch()
    (tmp_path / "frazil.toml").write_text(f'home = "{home}"\n')
    monkeypatch.setenv("FRAZIL_CONFIG", str(tmp_path / "frazil.toml"))
    uri = f"sqlite:///{home}/catalog.db"
    assert load_settings().catalog.uri == uri
    assert load_worker_settings({}).catalog.uri == uri
    assert load_worker_settings({}).inbox == load_settings().inbox
    assert read_address().uri == uri


def test_variables_are_read_in_any_case_by_committer_driver_and_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_HOME", str(tmp_path))
    monkeypatch.setenv("frazil_catalog__uri", "sqlite:////there.db")
    assert load_settings().catalog.uri == "sqlite:////there.db"
    assert load_worker_settings({}).catalog.uri == "sqlite:////there.db"
    assert read_address().uri == "sqlite:////there.db"


def read_address() -> CatalogProperties:
    """Return the catalog that `frazil.load_table` uses."""
    return find_catalog(catalog_uri=None, catalog_name=None, home=None, properties=None)
