"""`frazil table migrate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.builders.request_builders import build_request
from tests.support.cli.cli_commands import answer
from tests.support.cli.commands import Frazil


@pytest.fixture
def prod(frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a second catalog, which only PyIceberg's configuration knows."""
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / ".pyiceberg.yaml").write_text(
        f"catalog:\n  prod:\n    uri: sqlite:///{tmp_path}/prod.db\n"
        f"    warehouse: file://{tmp_path}/lake\n"
        f"  broken:\n    uri: sqlite:///{tmp_path}/nowhere.db\n"
        "  half:\n    type: rest\n"
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(folder))
    assert frazil("--catalog", "prod", "namespace", "create", "other").code == 0
    assert frazil("table", "create", "db.flights", "--schema", "id long").code == 0
    return "prod"


def tables(frazil: Frazil, *options: str) -> list[str]:
    return [line["table"] for line in frazil(*options, "table", "list", "--json").lines]


def test_a_table_moves_with_the_requests_that_wait(
    frazil: Frazil, prod: str, tmp_path: Path
) -> None:
    frazil.put(build_request(frazil.load(), epoch=0))
    inbox = f"file://{tmp_path}/prod-requests"
    migrated = frazil("table", "migrate", "db.flights", "--to", prod, "--to-inbox", inbox, "--yes")
    assert migrated.code == 0, migrated.err
    assert "carried over: 1 request" in migrated.err
    assert tables(frazil) == []
    assert tables(frazil, "--catalog", prod) == ["db.flights"]
    assert frazil.outstanding() == []
    assert [path for path in (tmp_path / "prod-requests/inbox").rglob("*") if path.is_file()]
    again = frazil("table", "migrate", "db.flights", "--to", prod, "--to-inbox", inbox)
    assert again.code == 0
    assert "carried over: 0 requests" in again.err


def test_nothing_moves_without_a_yes(
    frazil: Frazil, prod: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, "n")
    refused = frazil("table", "migrate", "db.flights", "--to", prod)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.endswith("nothing was changed\n")
    assert tables(frazil) == ["db.flights"]
    assert tables(frazil, "--catalog", prod) == []


@pytest.mark.usefixtures("prod")
@pytest.mark.parametrize(
    ("to", "more", "code", "said"),
    [
        ("prd", (), 2, "--to prd: no catalog of this name is configured"),
        ("half", (), 2, "--to half: `uri` is empty"),
        ("frazil", (), 2, "this is the catalog that the table is in"),
        ("broken", (), 1, "there is no catalog at"),
        ("prod", ("--to-inbox", "file://{location}/requests"), 2, "lies inside the table's"),
        ("prod", ("--to-inbox", "foo://bucket/requests"), 2, "--to-inbox: location `foo:"),
    ],
)
def test_what_cannot_be_reached_is_named_and_nothing_is_begun(
    frazil: Frazil, to: str, more: tuple[str, ...], code: int, said: str
) -> None:
    location = frazil.load().metadata.location.removeprefix("file://")
    options = [one.format(location=location) for one in more]
    refused = frazil("table", "migrate", "db.flights", "--to", to, "--yes", *options)
    assert refused.code == code
    assert said in refused.err
    assert tables(frazil) == ["db.flights"]


def test_a_taken_name_and_an_absent_table_are_refused(frazil: Frazil, prod: str) -> None:
    frazil("--catalog", prod, "table", "create", "db.flights", "--schema", "id long")
    refused = frazil("table", "migrate", "db.flights", "--to", prod, "--yes")
    assert refused.code == 1
    assert "has a table db.flights already" in refused.err
    absent = frazil("table", "migrate", "db.trains", "--to", prod, "--yes")
    assert absent.code == 1
    assert "neither in catalog `frazil` nor in `prod`" in absent.err
