from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.errors import NoSuchTableError, SettingsError
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage
from workers.requests import blocking_publisher
from workers.requests.blocking_publisher import borrow_publisher
from workers.settings.worker_settings import WorkerSettings


async def make_catalog(uri: str) -> None:
    catalog = await SqlCatalog.open(uri=uri, name="frazil", storage=LocalStorage(), create=True)
    await catalog.close()


def settings_in(folder: Path) -> WorkerSettings:
    uri = f"sqlite:///{folder}/catalog.db"
    asyncio.run(make_catalog(uri))
    return WorkerSettings(
        catalog=CatalogProperties("frazil", {"uri": uri}),
        inbox=f"file://{folder}/requests",
        queue_url="none",
    )


@pytest.fixture(autouse=True)
def close_publishers() -> object:
    yield
    for idle in blocking_publisher._idle.values():
        while idle:
            idle.pop().close()


def test_connections_are_kept_for_the_next_caller(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with borrow_publisher(settings) as first:
        pass
    with borrow_publisher(settings) as second:
        assert second is first


def test_two_callers_at_once_share_no_connections(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with borrow_publisher(settings) as first, borrow_publisher(settings) as second:
        assert second is not first


def test_other_settings_are_other_connections(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with borrow_publisher(settings_in(tmp_path)) as first:
        pass
    with borrow_publisher(settings_in(tmp_path / "other")) as second:
        assert second is not first


def test_connections_survive_an_error_of_ours_but_no_other(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with pytest.raises(NoSuchTableError), borrow_publisher(settings) as first:
        first.load_table(TableIdentifier(("db",), "absent"))
    with pytest.raises(ZeroDivisionError), borrow_publisher(settings) as second:
        assert second is first
        raise ZeroDivisionError
    with borrow_publisher(settings) as third:
        assert third is not first


def test_a_child_process_takes_no_connections_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_in(tmp_path)
    with borrow_publisher(settings) as parent:
        pass
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with borrow_publisher(settings) as child:
        assert child is not parent


def test_a_catalog_file_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    (tmp_path / "catalog.db").unlink()
    with pytest.raises(SettingsError, match=r"`catalog\.uri`"), borrow_publisher(settings) as found:
        found.load_table(TableIdentifier(("db",), "t"))
    assert not (tmp_path / "catalog.db").exists()
