"""Administration by the command on a real catalog of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.catalog_of_kind import CatalogOfKind, catalog_of_kind
from tests.support.cli.commands import Answer, Frazil

_HEAVY = ("postgres", "mariadb", "dynamodb", "glue", "hive", "rest")
KINDS = [
    "sqlite",
    "files",
    *(pytest.param(kind, marks=(pytest.mark.server, pytest.mark.heavy)) for kind in _HEAVY),
]
WITH_VIEWS = [kind for kind in KINDS if kind != "files" and "dynamodb" not in str(kind)]


@pytest.fixture(params=KINDS)
def catalog(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CatalogOfKind]:
    catalog = catalog_of_kind(request.param, tmp_path, request.getfixturevalue)
    for name, value in catalog.settings.items():
        monkeypatch.setenv(name, value)
    yield catalog


def done(answer: Answer) -> Answer:
    assert answer.code == 0, answer.err
    return answer


def refused(answer: Answer, *words: str) -> None:
    """Require an exit code and one of the words."""
    assert (answer.code, answer.out) == (1, "")
    assert any(one in answer.err for one in words), answer.err
    assert "Traceback" not in answer.err


def tables(frazil: Frazil) -> list[str]:
    return [line["table"] for line in done(frazil("table", "list", "--json")).lines]


def namespaces(frazil: Frazil) -> list[str]:
    found = done(frazil("namespace", "list", "--json")).lines
    return [line["namespace"] for line in found if line["namespace"] != "default"]


def test_namespaces_are_made_listed_shown_set_and_dropped(
    frazil: Frazil, catalog: CatalogOfKind
) -> None:
    done(frazil("namespace", "create", "db"))
    done(frazil("namespace", "create", "db"))
    assert namespaces(frazil) == ["db"]
    if catalog.keeps_properties:
        done(frazil("namespace", "set", "db", "owner=ada", "team=lake"))
        done(frazil("namespace", "set", "db", "--unset", "owner"))
        shown = done(frazil("namespace", "show", "db", "--json")).object
        assert shown["tables"] == 0
        assert shown["properties"]["team"] == "lake"
        assert "owner" not in shown["properties"]
    else:
        refused(frazil("namespace", "set", "db", "owner=ada"), "keeps no properties")
    done(frazil("namespace", "drop", "db"))
    assert namespaces(frazil) == []
    refused(frazil("namespace", "show", "db"), "no namespace db")
    refused(frazil("namespace", "drop", "db"), "no namespace db")


def test_tables_are_made_listed_renamed_dropped_registered_and_purged(
    frazil: Frazil, catalog: CatalogOfKind
) -> None:
    done(frazil("table", "create", "db.flights", "--schema", "id long"))
    created = frazil.load()
    assert tables(frazil) == ["db.flights"]
    refused(frazil("table", "create", "db.flights", "--schema", "id long"), "db.flights")
    refused(frazil("namespace", "drop", "db"), "db is not empty")
    name = "db.flights"
    if catalog.renames:
        done(frazil("table", "rename", "db.flights", "db.renamed", "--yes"))
        name = "db.renamed"
    else:
        refused(frazil("table", "rename", "db.flights", "db.renamed", "--yes"), "rename")
    assert tables(frazil) == [name]
    if catalog.properties.get("type") == "hadoop":
        refused(frazil("table", "drop", name, "--yes"), "cannot be dropped while its files stay")
        return  # how it is purged: test_file_tables.py
    done(frazil("table", "drop", name, "--yes"))
    assert tables(frazil) == []
    refused(frazil("table", "drop", name, "--yes"), f"no table {name}")
    done(frazil("table", "register", name, created.metadata_location))
    assert frazil.load(name).metadata.table_uuid == created.metadata.table_uuid
    done(frazil("table", "register", name, created.metadata_location))
    absent = f"{created.metadata.location}/metadata/00009-x.metadata.json"
    refused(frazil("table", "register", "db.other", absent), absent)
    folder = Path(created.metadata.location.removeprefix("file:").replace("///", "/"))
    assert folder.is_dir()
    done(frazil("table", "purge", name, "--yes"))
    assert tables(frazil) == []
    assert [one for one in folder.rglob("*") if one.is_file()] == []
    done(frazil("namespace", "drop", "db"))


@pytest.mark.parametrize("catalog", WITH_VIEWS, indirect=True)
def test_a_view_is_never_listed_loaded_renamed_or_dropped(
    frazil: Frazil, catalog: CatalogOfKind
) -> None:
    assert catalog.make_view and catalog.views
    done(frazil("table", "create", "db.flights", "--schema", "id long"))
    catalog.make_view()
    assert catalog.views() == ["seen"]
    assert tables(frazil) == ["db.flights"]
    assert done(frazil("namespace", "show", "db", "--json")).object["tables"] == 1
    commands: list[tuple[str, ...]] = [
        ("show", "db.seen"),
        ("set", "db.seen", "a=b"),
        ("drop", "db.seen", "--yes"),
        ("purge", "db.seen", "--yes"),
    ]
    if catalog.renames:
        commands.append(("rename", "db.seen", "db.other", "--yes"))
    for words in commands:
        refused(frazil("table", *words), "no table db.seen", "db.seen: Glue's table is not an")
    refused(frazil("table", "create", "db.seen", "--schema", "id long"), "db.seen is taken")
    location = frazil.load().metadata_location
    done(frazil("table", "drop", "db.flights", "--yes"))
    refused(frazil("table", "register", "db.seen", location), "db.seen is taken")
    refused(frazil("namespace", "drop", "db"), "db is not empty")
    assert catalog.views() == ["seen"]
