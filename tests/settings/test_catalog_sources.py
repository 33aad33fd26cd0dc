"""Which catalog the settings name, and what PyIceberg's own configuration adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from committer.errors import SettingsError
from committer.settings.catalog_sources import CatalogSources, resolve_catalog
from committer.settings.pyiceberg_config import read_pyiceberg_catalogs
from committer.settings.service_settings import load_settings
from frazil.handle import find_catalog
from workers.settings.worker_settings import load_settings as load_worker_settings

PYICEBERG_YAML = """\
default-catalog: dev
catalog:
  Prod:
    uri: dynamodb://orders
    S3.Endpoint: http://127.0.0.1:1
    s3:
      region: no
    rest-page-size: 1_000
    py-io-impl: pyiceberg.io.pyarrow.PyArrowFileIO
  dev:
    type: sql
    uri: sqlite:////dev.db
"""


@pytest.fixture
def pyiceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write PyIceberg's file, and return its folder."""
    (tmp_path / ".pyiceberg.yaml").write_text(PYICEBERG_YAML)
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("FRAZIL_HOME", str(tmp_path / "home"))
    return tmp_path


def environment(folder: Path, **variables: str) -> dict[str, str | None]:
    return {"PYICEBERG_HOME": str(folder), **variables}


def test_our_reading_of_pyicebergs_configuration_is_its_own(
    pyiceberg: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.utils.config import Config

    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__S3__ACCESS_KEY_ID", "key")
    monkeypatch.setenv("PYICEBERG_CATALOG__OTHER__URI", "http://other")
    theirs = Config()
    ours = read_pyiceberg_catalogs(environment(pyiceberg, **_pyicebergs_variables()))
    assert sorted(ours) == sorted(theirs.get_known_catalogs())
    for name in ("dev", "other"):
        assert ours[name] == theirs.get_catalog_config(name)
    prod = theirs.get_catalog_config("prod")
    assert prod is not None
    # PyIceberg keeps a mapping below a name as one.
    nested = prod.pop("s3")
    assert nested == {"region": "no"}
    assert ours["prod"] == {**prod, "s3.region": "no"}


def _pyicebergs_variables() -> dict[str, str]:
    import os

    return {name: text for name, text in os.environ.items() if name.startswith("PYICEBERG_CATALOG")}


def test_committer_driver_and_reader_find_a_catalog_of_pyiceberg(
    pyiceberg: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_CATALOG__NAME", "prod")
    monkeypatch.setenv("FRAZIL_CATALOG__S3__ENDPOINT", "http://127.0.0.1:2")
    (pyiceberg / "home").mkdir()
    committer = load_settings().catalog
    assert (committer.name, committer.uri) == ("prod", "dynamodb://orders")
    assert committer.properties["s3.endpoint"] == "http://127.0.0.1:2"
    assert committer.properties["s3.region"] == "no"
    driver = load_worker_settings({}).catalog
    reader = find_catalog(catalog_uri=None, catalog_name=None, home=None, properties=None)
    assert driver == reader
    assert committer.all_properties.values.items() >= driver.values.items()


def test_the_default_catalog_of_pyiceberg_is_never_ours(pyiceberg: Path) -> None:
    assert load_settings().catalog.uri == f"sqlite:///{pyiceberg}/home/catalog.db"
    found = resolve_catalog(CatalogSources(environment=environment(pyiceberg)))
    assert (found.name, dict(found.values)) == ("frazil", {})


def test_each_source_wins_over_those_after_it(pyiceberg: Path) -> None:
    names = ("named", "variable", "file", "theirs-variable", "theirs-file")
    given = dict.fromkeys(names, "1")
    for strongest in names:
        sources = CatalogSources(
            named={"name": "prod"} | ({"uri": "named"} if "named" in given else {}),
            environment=environment(
                pyiceberg,
                **({"FRAZIL_CATALOG__URI": "variable"} if "variable" in given else {}),
                **({"PYICEBERG_CATALOG__PROD__URI": "theirs-variable"})
                if "theirs-variable" in given
                else {},
            ),
            document={"catalog": {"uri": "file"}} if "file" in given else {},
        )
        found = resolve_catalog(sources).uri
        assert found == (strongest if strongest != "theirs-file" else "dynamodb://orders")
        del given[strongest]


def test_settings_of_the_catalog_without_a_name_are_not_those_of_one_that_is_asked_for(
    pyiceberg: Path,
) -> None:
    document = {"catalog": {"uri": "sqlite:////ours.db", "s3": {"region": "eu"}}}
    found = resolve_catalog(
        CatalogSources(environment=environment(pyiceberg), document=document, asked_for="prod")
    )
    assert (found.uri, found.get("s3.region")) == ("dynamodb://orders", "no")
    ours = resolve_catalog(CatalogSources(document=document, asked_for="frazil"))
    assert (ours.uri, ours.get("s3.region")) == ("sqlite:////ours.db", "eu")


def test_properties_without_a_place_refine_a_catalog_of_pyiceberg(pyiceberg: Path) -> None:
    document = {"catalog": {"s3": {"region": "eu"}}}
    found = resolve_catalog(
        CatalogSources(environment=environment(pyiceberg), document=document, asked_for="prod")
    )
    assert (found.uri, found.get("s3.region")) == ("dynamodb://orders", "eu")


@pytest.mark.parametrize(
    ("asked_for", "document", "said"),
    [
        ("prd", {}, r"--catalog prd: no catalog of this name .* which have `dev`, `prod`"),
        ("prod", {"catalog": {"name": "lake"}}, r"the settings describe the catalog `lake`"),
    ],
)
def test_a_name_that_is_asked_for_must_be_configured(
    pyiceberg: Path, asked_for: str, document: dict[str, object], said: str
) -> None:
    sources = CatalogSources(
        environment=environment(pyiceberg), document=document, asked_for=asked_for
    )
    with pytest.raises(SettingsError, match=said):
        resolve_catalog(sources)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("catalog: [a", "is not YAML"),
        ("- a", "expected a mapping"),
        ("catalog: prod", "`catalog`: expected a mapping"),
        ("catalog:\n  prod: x", r"`catalog\.prod`: expected a mapping"),
        ("catalog:\n  prod:\n    s3.endpoint: host", r"PyIceberg's configuration: expected http"),
    ],
)
def test_a_broken_file_of_pyiceberg_is_named(pyiceberg: Path, text: str, said: str) -> None:
    (pyiceberg / ".pyiceberg.yaml").write_text(text)
    sources = CatalogSources(environment=environment(pyiceberg), asked_for="prod")
    with pytest.raises(SettingsError, match=said):
        resolve_catalog(sources)


def test_an_empty_file_of_pyiceberg_has_no_catalogs(pyiceberg: Path) -> None:
    (pyiceberg / ".pyiceberg.yaml").write_text("")
    assert read_pyiceberg_catalogs(environment(pyiceberg)) == {}
