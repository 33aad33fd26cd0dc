from __future__ import annotations

from pathlib import Path

import pytest

from committer.errors import SettingsError
from workers.settings import load_settings


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
    assert settings.catalog_name == "environment"
    assert settings.catalog_uri == "sqlite:////file"
    assert settings.inbox == "file:/from-file"


def test_the_defaults_are_those_of_a_committer_with_the_same_home(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").touch()
    settings = load_settings({}, {"FRAZIL_HOME": str(tmp_path)})
    assert settings.catalog_name == "frazil"
    assert settings.catalog_uri == f"sqlite:///{tmp_path}/catalog.db"
    assert settings.inbox == f"file://{tmp_path}/requests"
    assert settings.queue_url == f"unix://{tmp_path}/queue/redis.sock"


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
    [("catalog = [", "is not TOML"), ("[catalog]\nuri = 5", "`catalog.uri`.*expected a string")],
)
def test_a_broken_file_is_named(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "frazil.toml").write_text(text)
    with pytest.raises(SettingsError, match=problem):
        load_settings({"home": str(tmp_path)}, {})


def test_a_named_file_must_exist() -> None:
    with pytest.raises(SettingsError, match=r"FRAZIL_CONFIG names `/absent.toml`"):
        load_settings({}, {"FRAZIL_CONFIG": "/absent.toml"})


def test_an_unknown_kind_of_queue_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"queue\.url"):
        load_settings({"home": str(tmp_path), "queue.url": "amqp://host"}, {})
