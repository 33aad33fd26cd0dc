"""The commands that change a table in its turn: which request each publishes, and what is said."""

from __future__ import annotations

import pytest

from committer.request.commit_request import CommitRequest
from committer.request.request_format import read_request
from committer.service.process.composition import Parts
from committer.storage.inbox.inbox import skips_of
from tests.support.cli.commands import Frazil

NOW = ("--timeout", "0s")


@pytest.fixture
def table(frazil: Frazil) -> Frazil:
    assert frazil("table", "create", "db.flights", "--schema", "id long, at date").code == 0
    return frazil


def published(frazil: Frazil) -> list[CommitRequest]:
    async def work(parts: Parts) -> list[CommitRequest]:
        keys = [one.key async for one in parts.inbox.list(skips=skips_of())]
        return [read_request(await parts.inbox.get(key), key=key).request for key in sorted(keys)]

    return frazil.with_parts(work)


def documents(frazil: Frazil, *arguments: str) -> list[dict[str, object]]:
    """Run a command without a committer; return the changes that it published."""
    answer = frazil("table", *arguments, *NOW)
    assert answer.code == 0, answer
    assert "the request waits" in answer.err
    (request,) = published(frazil)
    assert request.operation == "alter"
    return [
        one.model_dump(mode="json", by_alias=True, exclude_unset=True) for one in request.changes
    ]


def test_evolve_orders_its_changes_so_that_each_finds_what_it_rests_on(table: Frazil) -> None:
    found = documents(
        table,
        *("evolve", "db.flights", "--rename", "id=key", "--drop", "at"),
        *("--add-column", "place string", "--add-partition-field", "truncate(2, place)"),
        *("--sort-order", "place", "--identifier-fields", "", "--set", "a=b", "--unset", "c"),
        *("--format-version", "3", "--widen", "id long", "--optional", "id"),
    )
    assert [one["action"] for one in found] == [
        "upgrade-format-version",
        "add-column",
        "update-column-type",
        "set-identifier-fields",
        "make-column-optional",
        "replace-sort-order",
        "add-partition-field",
        "drop-column",
        "rename-column",
        "set-properties",
        "remove-properties",
    ]


def test_evolve_finds_columns_in_any_case_if_it_is_told_to(table: Frazil) -> None:
    found = documents(
        table,
        *("evolve", "db.flights", "--drop", "AT", "--drop-partition-field", "P"),
        *("--set", "a=b", "--ignore-case"),
    )
    assert [one.get("case-sensitive") for one in found] == [None, False, None]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            (*("branch", "create", "db.flights", "audit"), "--max-ref-age", "7d"),
            {"action": "create-branch", "name": "audit", "max-ref-age-ms": 604_800_000},
        ),
        (
            ("branch", "create", "db.flights", "a", "--min-snapshots", "3", "--if-not-exists"),
            {
                "action": "create-branch",
                "name": "a",
                "min-snapshots-to-keep": 3,
                "if-not-exists": True,
            },
        ),
        (
            ("branch", "remove", "db.flights", "audit", "--if-exists"),
            {
                "action": "remove-snapshot-ref",
                "ref-name": "audit",
                "type": "branch",
                "if-exists": True,
            },
        ),
        (
            ("tag", "create", "db.flights", "eom", "--snapshot", "7"),
            {"action": "create-tag", "name": "eom", "snapshot-id": 7},
        ),
        (
            ("tag", "replace", "db.flights", "eom", "--snapshot", "7"),
            {"action": "replace-tag", "name": "eom", "snapshot-id": 7},
        ),
        (
            ("tag", "remove", "db.flights", "eom"),
            {"action": "remove-snapshot-ref", "ref-name": "eom", "type": "tag"},
        ),
        (
            ("fast-forward", "db.flights", "main", "audit"),
            {"action": "fast-forward", "branch": "main", "to": "audit"},
        ),
    ],
)
def test_a_command_publishes_one_change(
    table: Frazil, arguments: tuple[str, ...], expected: dict[str, object]
) -> None:
    (found,) = documents(table, *arguments)
    assert {key: one for key, one in found.items() if one is not False} == expected


def test_a_request_is_of_a_producer_that_never_publishes_again_and_is_told_only(
    table: Frazil,
) -> None:
    assert table("table", "branch", "create", "db.flights", "a", *NOW).code == 0
    assert table("table", "tag", "create", "db.flights", "t", *NOW).code == 0
    requests = published(table)
    assert len({one.producer.id for one in requests}) == 2
    assert all(one.producer.one_shot for one in requests)
    assert {one.needs.on_conflict for one in requests} == {"fail"}


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [
        (("publish", "db.flights", "w-1"), {"wap-id": "w-1"}),
        (("cherry-pick", "db.flights", "17"), {"source-snapshot-id": 17}),
    ],
)
def test_a_pick_is_an_operation_of_its_own(
    table: Frazil, arguments: tuple[str, ...], needs: dict[str, object]
) -> None:
    assert table("table", *arguments, *NOW).code == 0
    (request,) = published(table)
    assert request.operation == "cherry-pick"
    said = request.needs.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    assert said == {**needs, "on-conflict": "fail"}


def test_a_request_that_no_committer_takes_waits_and_the_command_says_so(table: Frazil) -> None:
    answer = table("table", "tag", "create", "db.flights", "t", "--timeout", "1s", "--json")
    assert answer.code == 1
    assert answer.object["state"] == "waiting"
    assert "is carried out once a committer gets to it" in answer.err
    (request,) = published(table)
    assert answer.object["request"] == request.inbox_key


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("evolve", "db.flights"), "expected a change"),
        (("evolve", "db.flights", "--add-column", "x"), "a column such as"),
        (("evolve", "db.flights", "--set", "frazil.tags.every=1h"), "Frazil's own"),
        (("evolve", "db.flights", "--set", "x"), "--set: expected KEY=VALUE, found `x`"),
        (("evolve", "db.flights", "--set", "a=1", "--set", "a=2"), "--set: `a` is there twice"),
        (
            ("evolve", "db.flights", "--set", "history.expire.max-snapshot-age-ms=abc"),
            "--set: `history.expire.max-snapshot-age-ms`: expected a whole number from 0 on",
        ),
        (
            ("evolve", "db.flights", "--set", "write.data.path=file:///"),
            "an engine's orphan clean-up could remove requests",
        ),
        (("evolve", "db.flights", "--unset", "current-schema"), "--unset: `current-schema` is"),
        (("rollback", "db.flights"), "one of --snapshot and --before, found none"),
        (
            ("rollback", "db.flights", "--before", "1", "--allow-non-ancestor"),
            "--allow-non-ancestor goes with --snapshot",
        ),
        (("evolve", "db.flights", "--timeout", "60"), "expected a duration such as 90s"),
        (("rollback", "db.flights", "--before", "soon"), "expected a time"),
        (("rollback", "db.flights", "--before", "soon"), "value for --before"),
        (("publish", "db.flights", ""), "wap-id: expected a text that is not empty"),
        (("publish", "db.flights", "w" * 256), "wap-id: expected at most 255 characters"),
        (("publish", "db.flights", "w\n"), "wap-id: expected printable characters only"),
        (
            ("publish", "db.flights", "w", "--branch", ""),
            "'--branch': expected a text that is not empty",
        ),
        (("cherry-pick", "db.flights", "9" * 20), "source-snapshot-id: expected at most 922"),
        (
            ("cherry-pick", "db.flights", "1", "--branch", "b" * 256),
            "'--branch': expected at most 255 characters",
        ),
        (
            ("rollback", "db.flights", "--snapshot", "1", "--branch", ""),
            "'--branch': expected a text",
        ),
        (("tag", "create", "db.flights", "t", "--snapshot", "1", "--ref", "a"), "found both"),
        (("rollback", "db.flights", "--snapshot", "1", "--before", "1"), "found both"),
        (("branch", "create", "db.flights", "t", "--max-ref-age", "soon"), "expected a duration"),
        (
            ("branch", "create", "db.flights", "t", "--max-ref-age", "0s"),
            "create-branch.max-ref-age-ms: expected at least 1",
        ),
        (("branch", "create", "db.flights", ""), "'name': expected a text that is not empty"),
        (("tag", "remove", "db.flights", ""), "'name': expected a text that is not empty"),
        (("fast-forward", "db.flights", "", "a"), "'branch': expected a text that is not empty"),
        (("fast-forward", "db.flights", "a", ""), "'to': expected a text that is not empty"),
        (
            ("rollback", "db.flights", "--snapshot", "-1"),
            "rollback-to-snapshot.snapshot-id: expected at least 0",
        ),
    ],
)
def test_wrong_usage_publishes_nothing(table: Frazil, arguments: tuple[str, ...], why: str) -> None:
    answer = table("table", *arguments, *(() if "--timeout" in arguments else NOW))
    assert answer.code == 2
    assert why in answer.err
    assert published(table) == []


def test_a_table_that_is_not_there_is_said_before_anything_is_published(table: Frazil) -> None:
    answer = table("table", "tag", "create", "db.trains", "t")
    assert answer.code == 1
    assert "db.trains" in answer.err
    assert published(table) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("publish", "db.flights", "w-1"),
        ("cherry-pick", "db.flights", "17"),
        ("rollback", "db.flights", "--snapshot", "1"),
    ],
)
def test_a_branch_that_is_not_there_is_said_before_anything_is_published(
    table: Frazil, arguments: tuple[str, ...]
) -> None:
    answer = table("table", *arguments, "--branch", "nope", *NOW)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == (
        "frazil: table `db.flights` has no branch `nope`: make it with `frazil table branch"
        " create`; nothing was changed\n"
    )
    assert published(table) == []


def test_no_tags_are_an_empty_list(table: Frazil) -> None:
    assert table("table", "branch", "list", "db.flights", "--json").lines == []
    assert table("table", "tag", "list", "db.flights").code == 0
