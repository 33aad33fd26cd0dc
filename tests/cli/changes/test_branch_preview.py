"""Commands that move a branch say before which producers freeze, and ask."""

from __future__ import annotations

import pytest

from committer.request.request_format import read_request
from committer.service.process.composition import Parts
from tests.support.cli.cli_commands import (
    add_branch,
    add_snapshots,
    answer,
    create,
    put_landed,
)
from tests.support.cli.commands import Frazil

NOW = ("--timeout", "0s")
ROLLBACK = ("rollback", "db.flights", "--snapshot", "1")
REPLACE = ("branch", "replace", "db.flights", "main", "--snapshot", "1")


@pytest.fixture
def table(frazil: Frazil) -> Frazil:
    """Create a table with two snapshots on main; `import` has landed in the last."""
    create(frazil)
    add_snapshots(frazil, 1, 2)
    put_landed(frazil, "import", 2)
    return frazil


def changes(frazil: Frazil) -> list[dict[str, object]]:
    """Return the changes that wait in the inbox."""

    async def work(parts: Parts) -> list[dict[str, object]]:
        listed = [found.key async for found in parts.inbox.list()]
        return [
            one.model_dump(mode="json", by_alias=True, exclude_unset=True)
            for key in listed
            for one in read_request(await parts.inbox.get(key), key=key).request.changes
        ]

    return frazil.with_parts(work)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (ROLLBACK, {"action": "rollback-to-snapshot", "snapshot-id": 1}),
        (
            (*ROLLBACK, "--allow-non-ancestor"),
            {"action": "set-current-snapshot", "snapshot-id": 1},
        ),
        (REPLACE, {"action": "replace-branch", "name": "main", "snapshot-id": 1}),
    ],
)
def test_a_move_that_freezes_producers_names_them_and_asks(
    table: Frazil,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    expected: dict[str, object],
) -> None:
    frozen = "db.flights: to snapshot 1, which freezes 1 producer\n  import on branch main\n"
    answer(monkeypatch, "n")
    refused = table("table", *arguments, *NOW)
    assert refused.code == 1
    assert refused.err.startswith(frozen)
    assert "[y/N]" in refused.err
    assert "nothing was changed" in refused.err
    assert changes(table) == []
    done = table("table", *arguments, "--yes", *NOW)
    assert done.code == 0
    assert done.err.startswith(frozen)
    assert "[y/N]" not in done.err
    assert changes(table) == [expected]


def test_a_rollback_to_a_time_is_published_with_the_time(table: Frazil) -> None:
    time_ms = table.load().metadata.last_updated_ms + 1
    done = table("table", "rollback", "db.flights", "--before", str(time_ms), "-y", *NOW)
    assert done.code == 0
    assert changes(table) == [{"action": "rollback-to-timestamp", "timestamp-ms": time_ms}]


def test_a_replaced_branch_that_freezes_no_producer_is_not_asked_about(table: Frazil) -> None:
    add_branch(table, "audit", 1)
    done = table("table", "branch", "replace", "db.flights", "audit", "--ref", "main", *NOW)
    assert done.code == 0
    assert "to snapshot 2, which freezes 0 producers" in done.err
    assert changes(table) == [{"action": "replace-branch", "name": "audit", "ref": "main"}]


@pytest.mark.parametrize("yes", [(), ("--yes",)])
@pytest.mark.parametrize(
    "arguments",
    [
        ("rollback", "db.flights", "--snapshot", "7"),
        ("branch", "replace", "db.flights", "main", "--snapshot", "7"),
    ],
)
def test_a_move_that_would_be_refused_is_refused_without_a_question(
    table: Frazil, arguments: tuple[str, ...], yes: tuple[str, ...]
) -> None:
    refused = table("table", *arguments, *yes, *NOW)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("frazil: db.flights: refused: ")
    assert "7" in refused.err
    assert "[y/N]" not in refused.err
    assert changes(table) == []


def test_a_branch_to_replace_that_is_not_there_is_named(table: Frazil) -> None:
    refused = table("table", "branch", "replace", "db.flights", "nope", "--ref", "main", *NOW)
    assert refused.code == 1
    assert "table `db.flights` has no branch `nope`" in refused.err
    assert changes(table) == []
