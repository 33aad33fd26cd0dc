"""`frazil catalog`: what a configured catalog can do, and why one cannot be used."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.ports.catalog_capabilities import CatalogCapabilities
from tests.support.cli.commands import Frazil


def everything(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_a_catalog_that_can_be_used_passes_and_nothing_is_left_behind(
    frazil: Frazil, tmp_path: Path
) -> None:
    frazil("namespace", "create", "db")
    before = everything(tmp_path)
    checked = frazil("catalog", "check", "--json")
    assert checked.code == 0
    assert everything(tmp_path) == before
    found = checked.object
    assert [(one["check"], one["ok"]) for one in found["checks"]] == [
        ("open", True),
        ("read", True),
        ("swap", True),
        ("catalog.warehouse", True),
        ("inbox", True),
    ]
    assert found["capabilities"]["condition"] == "pointer"
    assert found["capabilities"]["namespace-levels-max"] is None
    shown = frazil("catalog", "check")
    assert shown.code == 0
    assert "proven, on the pointer" in shown.out
    assert "atomic rename" in shown.out


def test_a_catalog_that_is_missing_is_not_made(frazil: Frazil, tmp_path: Path) -> None:
    refused = frazil("catalog", "check", "--json")
    assert refused.code == 1
    assert everything(tmp_path) == set()
    assert "`catalog.uri`" in refused.err
    assert "`frazil table create` makes one" in refused.err
    assert refused.object["ok"] is False
    assert refused.object["capabilities"] is None


@pytest.mark.parametrize(
    ("setting", "value", "named"),
    [
        ("FRAZIL_CATALOG__URI", "foo://host/x", "no catalog has the scheme `foo`"),
        ("FRAZIL_CATALOG__WAREHOUSE", "foo://host/x", "`catalog.warehouse`"),
        ("FRAZIL_CATALOG__TYPE", "hdfs", "there is no adapter"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_setting(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, named: str
) -> None:
    monkeypatch.setenv(setting, value)
    refused = frazil("catalog", "check")
    assert refused.code != 0
    assert named in refused.err
    assert "Traceback" not in refused.err


def test_a_warehouse_in_which_nothing_can_be_written_fails_alone(
    frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frazil("namespace", "create", "db")
    (tmp_path / "file").write_bytes(b"no folder")
    monkeypatch.setenv("FRAZIL_CATALOG__WAREHOUSE", f"file://{tmp_path}/file/lake")
    monkeypatch.setattr("committer.cli.catalogs.catalog_report._existing", lambda place: place)
    refused = frazil("catalog", "check", "--json")
    assert refused.code == 1
    failed = [one["check"] for one in refused.object["checks"] if not one["ok"]]
    assert failed == ["catalog.warehouse"]
    assert "FRAZIL_CATALOG__WAREHOUSE" in refused.err


def test_a_database_that_ignores_the_condition_is_not_called_proven(
    frazil: Frazil, tmp_path: Path
) -> None:
    """A trigger moves the row back to the base that a stale swap expects."""
    frazil("namespace", "create", "db")
    with closing(sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)) as connection:
        connection.execute(
            "CREATE TRIGGER any AFTER INSERT ON iceberg_tables BEGIN UPDATE iceberg_tables"
            " SET metadata_location = 'stale'; END"
        )
    refused = frazil("catalog", "check")
    assert refused.code == 1
    assert "NOT PROVEN" in refused.out
    assert "concurrent commits would be lost" in refused.err or "could not be told" in refused.err


def test_properties_that_only_others_read_are_named_once(
    frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(
        f"catalog:\n  prod:\n    uri: sqlite:///{tmp_path}/prod.db\n"
        "    py-io-impl: some.Module\n  old:\n    uri: foo://u:secret@host\n"
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    frazil("--catalog", "prod", "namespace", "create", "db")
    checked = frazil("--catalog", "prod", "catalog", "check")
    assert checked.code == 0
    assert checked.err.count("`py-io-impl`") == 1
    as_json = frazil("--catalog", "prod", "catalog", "check", "--json").object
    assert as_json["unread-properties"] == ["py-io-impl"]
    listed = frazil("--catalog", "prod", "catalog", "list", "--json")
    assert [(one["catalog"], one["chosen"], one["kind"]) for one in listed.lines] == [
        ("prod", True, "sql"),
        ("old", False, "no adapter"),
    ]
    assert "secret" not in listed.out


# --- What a catalog cannot do --------------------------------------------------------------------


@contextmanager
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    limits = CatalogCapabilities(
        kind="Hive",
        has_atomic_rename=False,
        has_namespace_properties=False,
        namespace_levels_max=1,
    )
    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "capabilities", limits)
        yield


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("table", "create", "a.b.t", "--schema", "id long"), "takes one level"),
        (("namespace", "create", "a.b"), "takes one level"),
        (("namespace", "create", "c", "--property", "k=v"), "keeps no properties"),
        (("namespace", "set", "db", "k=v"), "keeps no properties"),
        (("table", "rename", "db.t", "db.u"), "cannot rename a table in one step"),
    ],
)
def test_what_a_catalog_cannot_do_is_refused_before_anything_is_made(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], said: str
) -> None:
    frazil("table", "create", "db.t", "--schema", "id long")
    with limited(monkeypatch):
        refused = frazil(*command)
    assert refused.code == 1
    assert said in refused.err
    assert "Hive" in refused.err
    assert [one["namespace"] for one in frazil("namespace", "list", "--json").lines] == ["db"]
    assert [one["table"] for one in frazil("table", "list", "--json").lines] == ["db.t"]
