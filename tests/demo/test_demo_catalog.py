"""The demo on a catalog that the user chose: what serves, and how every process learns of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from committer.catalog.catalog_properties import CatalogProperties
from committer.demo.demo_catalog import check_catalog, place_of_tables
from committer.demo.demo_options import DemoOptions
from committer.demo.demo_stack import open_stack
from committer.demo.demo_table import create_table, flights_table
from committer.errors import SettingsError, TableAlreadyExistsError
from committer.settings.service_settings import Settings
from tests.demo import __main__ as on_a_server
from tests.support.cli.commands import Frazil

ROOT = Path(__file__).parents[2]
HOME = Path("/demo")


def catalog(**values: str) -> CatalogProperties:
    return CatalogProperties("prod", values)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"type": "glue"}, "--catalog prod: the demo runs on catalogs of type `sql`, `rest`,"),
        ({"type": "hadoop", "warehouse": "file:///lake"}, "this one is of type `hadoop`"),
        ({"uri": "foo://host"}, "no catalog has the scheme `foo`"),
        (
            {"uri": "thrift://host:9083", "warehouse": "s3://bucket/lake"},
            "the catalog's `warehouse` is s3://bucket/lake; expected a local folder",
        ),
    ],
)
def test_a_catalog_that_the_demo_cannot_show_is_refused(values: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check_catalog(catalog(**values))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"uri": "http://host/api"}, "file:///demo/warehouse"),
        ({"uri": "http://host/api", "warehouse": "prod"}, "file:///demo/warehouse"),
        ({"uri": "thrift://host:9083", "warehouse": "file:///lake"}, "file:///lake"),
    ],
)
def test_tables_go_below_the_demos_folder_or_where_the_catalog_says(
    values: dict[str, str], place: str
) -> None:
    check_catalog(catalog(**values))
    assert place_of_tables(catalog(**values), HOME) == place


async def test_every_process_learns_of_the_catalog_from_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_CATALOG__WAREHOUSE", "s3://production/lake")
    chosen = {"uri": "jdbc:postgresql://db/lake", "jdbc.user": "ada", "py-io-impl": "Another.Io"}
    options = DemoOptions(
        home=tmp_path / "home",
        rows=10,
        streams=2,
        applications=1,
        batches=1,
        redis_url="redis://nowhere.invalid:1",
        catalog=catalog(**chosen),
    )
    async with open_stack(options) as stack:
        found = stack.settings.catalog
        assert (found.name, found.uri) == ("prod", "jdbc:postgresql://db/lake")
        assert found.all_properties.get("jdbc.user") == "ada"
        assert found.warehouse == f"file://{tmp_path}/home/warehouse"
    assert "FRAZIL_CATALOG__NAME" not in os.environ


def test_a_table_of_another_run_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_QUEUE__URL", "none")
    settings = Settings(home=tmp_path)
    asyncio.run(create_table(settings, flights_table()))
    files = set(tmp_path.rglob("*.metadata.json"))
    with pytest.raises(TableAlreadyExistsError, match=r"drop it \(`frazil --catalog frazil table"):
        asyncio.run(create_table(settings, flights_table()))
    assert set(tmp_path.rglob("*.metadata.json")) == files


@pytest.mark.parametrize("words", [("demo", "--catalog", "prd"), ("--catalog", "prd", "demo")])
def test_a_catalog_that_is_nowhere_configured_starts_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = Frazil(tmp_path / "home", monkeypatch, capsys)(*words)
    assert refused.code == 2
    assert "--catalog prd: no catalog of this name is configured" in refused.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["oracle"], [""], []])
def test_a_server_that_the_demo_does_not_start_is_told_which_it_does(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert on_a_server.main(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    name = "".join(words)
    assert said.err == f"frazil: CATALOG={name}: expected one of hive, postgres, rest\n"


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize(
    ("variables", "runs"),
    [
        ((), "frazil demo --rows 9"),
        (("UPSERT=1",), "frazil demo --rows 9 --upsert"),
        (("CATALOG=rest",), "python -m tests.demo 'rest' --rows 9"),
    ],
)
def test_make_demo_starts_a_server_only_where_one_is_named(
    variables: tuple[str, ...], runs: str
) -> None:
    shown = subprocess.run(
        ["make", "-n", "demo", "ROWS=9", *variables],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.splitlines()[-1].split() == f".venv/bin/{runs}".split()
