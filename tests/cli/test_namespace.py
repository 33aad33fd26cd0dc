"""`frazil namespace`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli.commands import Frazil


def names(frazil: Frazil) -> list[str]:
    return [line["namespace"] for line in frazil("namespace", "list", "--json").lines]


def test_a_namespace_is_created_shown_changed_and_dropped(frazil: Frazil) -> None:
    created = frazil("namespace", "create", "a.b", "--property", "owner=ada")
    assert (created.code, created.out) == (0, "")
    assert names(frazil) == ["a", "a.b"]
    assert frazil("namespace", "set", "a.b", "team=lake", "--unset", "owner").code == 0
    shown = frazil("namespace", "show", "a.b", "--json")
    assert shown.object == {"namespace": "a.b", "tables": 0, "properties": {"team": "lake"}}
    assert "team" in frazil("namespace", "show", "a.b").out
    assert "a.b" in frazil("namespace", "list").out
    assert frazil("namespace", "drop", "a.b").code == 0
    assert names(frazil) == []


def test_a_namespace_created_again_keeps_its_properties_and_gets_the_new_ones(
    frazil: Frazil,
) -> None:
    frazil("namespace", "create", "db", "--property", "owner=ada")
    assert frazil("namespace", "create", "db", "--property", "team=lake").code == 0
    shown = frazil("namespace", "show", "db", "--json").object
    assert shown["properties"] == {"owner": "ada", "team": "lake"}


def test_tables_are_created_where_their_namespace_wants_them(
    frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"file://{tmp_path}/lake"
    refused = frazil("namespace", "create", "db", "--property", f"location={place}")
    assert (refused.code, "security.locations" in refused.err) == (2, True)
    allowed = f"{place},file://{tmp_path}/warehouse"
    monkeypatch.setenv("FRAZIL_SECURITY__LOCATIONS", allowed)
    frazil("namespace", "create", "db", "--property", f"location=file://{tmp_path}/lake")
    frazil("table", "create", "db.t", "--schema", "id long")
    assert frazil.load("db.t").metadata.location == f"file://{tmp_path}/lake/t"
    frazil("namespace", "set", "db", "--unset", "location")
    frazil("table", "create", "db.u", "--schema", "id long")
    assert frazil.load("db.u").metadata.location.endswith("/warehouse/db/u")


def test_a_namespace_that_holds_a_table_is_not_dropped(frazil: Frazil) -> None:
    frazil("table", "create", "db.t", "--schema", "id long")
    refused = frazil("namespace", "drop", "db")
    assert refused.code == 1
    assert "db is not empty" in refused.err
    assert frazil.load("db.t").metadata_location
    assert frazil("namespace", "show", "db", "--json").object["tables"] == 1


@pytest.mark.parametrize(
    "command", [("show", "no"), ("drop", "no"), ("set", "no", "a=b"), ("set", "no", "--unset", "a")]
)
def test_an_absent_namespace_is_named_with_its_catalog(
    frazil: Frazil, command: tuple[str, ...]
) -> None:
    frazil("namespace", "create", "db")
    refused = frazil("namespace", *command)
    assert refused.code == 1
    assert "no namespace no in catalog `frazil`" in refused.err


@pytest.mark.parametrize(
    "command",
    [
        ("create", "a..b"),
        ("create", ""),
        ("create", "a/b"),
        ("create", "a\nb"),
        ("create", "db", "--property", "no-value"),
        ("create", "db", "--property", "a=1", "--property", "a=2"),
        ("create", "db", "--property", " =1"),
        ("set", "db"),
        ("set", "db", "a=1", "--unset", "a"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_made(
    frazil: Frazil, command: tuple[str, ...]
) -> None:
    assert frazil("namespace", *command).code == 2
    assert frazil("namespace", "list").code == 1
