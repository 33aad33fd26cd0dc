"""A table is read where nothing is made; one that is not there is told with what there is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.errors import AccessError, NoSuchTableError, NotFoundError, SettingsError
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage
from committer.table_reader import _hint, open_reader
from tests.support.builders.table_builders import build_table
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.memory_storage import MemoryStorage


def address(folder: Path) -> CatalogProperties:
    return CatalogProperties("frazil", {"uri": f"sqlite:///{folder}/catalog.db"})


def make(folder: Path, *names: str) -> None:
    async def create() -> None:
        catalog = await SqlCatalog.open(
            uri=address(folder).uri, name="frazil", storage=LocalStorage()
        )
        for name in names:
            identifier = TableIdentifier.parse(name)
            await catalog.create_namespace(identifier.namespace)
            await catalog.create_table(build_table(name, warehouse=f"file://{folder}/warehouse"))
        await catalog.close()

    asyncio.run(create())


def said(folder: Path, name: str) -> str:
    with open_reader(address(folder)) as reader, pytest.raises(NoSuchTableError) as caught:
        reader.load(TableIdentifier.parse(name))
    return str(caught.value).replace(str(folder), "…")


def test_a_table_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    make(tmp_path, "db.flights", "db.airports", "other.t")
    start = "no table {} in catalog `frazil` (sqlite:///…/catalog.db): "
    for name, hint in {
        "db.flihgts": "did you mean `db.flights`?",
        "db.zzz": "`db` has `db.airports`, `db.flights`",
        "nope.zzz": "`nope` has no table; the catalog has the namespaces `db`, `other`",
    }.items():
        assert said(tmp_path, name) == start.format(name) + hint


def test_of_many_tables_the_first_are_listed(tmp_path: Path) -> None:
    make(tmp_path, *(f"db.t{number:02}" for number in range(12)))
    assert said(tmp_path, "db.zzz").endswith("`db.t08`, `db.t09` and 2 more")


def test_in_an_empty_catalog_the_command_that_makes_a_table_is_named(tmp_path: Path) -> None:
    make(tmp_path)
    assert said(tmp_path, "db.t").endswith("it has no table yet; `frazil table create` makes one")


class _Unlistable(MemoryCatalog):
    async def list_tables(self, namespace: tuple[str, ...]) -> list[TableIdentifier]:
        raise AccessError("may not list")


async def test_names_that_may_not_be_listed_do_not_hide_that_the_table_is_missing() -> None:
    hint = await _hint(_Unlistable(storage=MemoryStorage()), TableIdentifier.parse("db.t"))
    assert hint == "what it has cannot be listed: may not list"


def test_a_catalog_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with open_reader(address(tmp_path)) as reader, pytest.raises(NotFoundError, match="no catalog"):
        reader.load(TableIdentifier.parse("db.t"))
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_uri_is_named_by_its_setting() -> None:
    wrong = CatalogProperties("frazil", {"uri": "dynamodb://x"})
    with (
        open_reader(wrong) as reader,
        pytest.raises(SettingsError, match=r"setting `catalog.uri` \(FRAZIL_CATALOG__URI\)"),
    ):
        reader.load(TableIdentifier.parse("db.t"))


def test_an_address_shows_no_password() -> None:
    address = CatalogProperties("lake", {"uri": "postgresql://me:hush@db/frazil?sslkey=hush"})
    assert str(address) == "catalog `lake` (postgresql://db/frazil)"
    assert "hush" not in repr(address)
