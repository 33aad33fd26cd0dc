"""The public surface is the page that a review sees, and nothing beside it can be imported."""

from __future__ import annotations

import pytest

import frazil
from frazil import public
from tools.surface import surface_page


def test_every_public_name_is_on_the_page() -> None:
    page = surface_page().replace(":", "(")
    assert [name for name in public.__all__ if f" {name}(" not in page] == []
    assert set(public.__all__) < set(dir(frazil))
    assert public.__all__ == sorted(public.__all__)


def test_a_name_that_comes_changes_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page as it stands is compared in `tests/test_house.py`."""
    before = surface_page()
    monkeypatch.setattr(public, "__all__", [*public.__all__, "LoadedTable"])
    monkeypatch.setattr(public, "LoadedTable", type("LoadedTable", (), {}), raising=False)
    monkeypatch.setattr(frazil.Table, "append", lambda self, rows: None, raising=False)
    added = set(surface_page().splitlines()) - set(before.splitlines())
    assert added == {"class LoadedTable:", "    def append(self, rows)"}


def test_a_name_that_is_not_public_is_an_ordinary_error() -> None:
    for name in ("LoadedTable", "_handle", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"'frazil' has no attribute '{name}'"):
            getattr(frazil, name)
    namespace: dict[str, object] = {}
    exec("from frazil import *", namespace)
    assert {*public.__all__} == {name for name in namespace if not name.startswith("__")}


def test_spark_is_there_without_an_import_of_its_own() -> None:
    assert frazil.spark.configure.__name__ == "configure"
