"""`frazil table plan` on tables of Iceberg Java, and on one of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders.fixture_tables import NAMES
from tests.support.builders.fixtures import expected
from tests.support.cli.cli_commands import bare
from tests.support.cli.commands import Answer, Frazil


def plan(frazil: Frazil, name: str, *options: str) -> Answer:
    return frazil("table", "plan", *bare(name), *options)


def in_the_fixture(name: str, tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tasks of a fixture as the command prints them."""
    said = expected(name)
    data, deletes = said["live_data_files"], said["live_delete_files"]
    return [
        {
            "file": data[task["file"]]["file_path"],
            "deletes": [deletes[at]["file_path"] for at in task.get("deletes", ())],
            "residual": task["residual"],
        }
        for task in tasks
    ]


def by_file(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(lines, key=lambda line: str(line["file"]))


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_some_scans_of_each_fixture_are_printed_as_java_plans_them(
    frazil: Frazil, name: str
) -> None:
    for asked in (expected(name).get("scans") or [])[::16]:
        answer = plan(frazil, name, "--json", "--where-json", json.dumps(asked["filter"]))
        assert (answer.code, answer.err) == (0, "")
        assert by_file(answer.lines) == by_file(in_the_fixture(name, asked["tasks"]))


def test_text_and_json_ask_the_same(frazil: Frazil) -> None:
    text = plan(frazil, "v2_position_deletes", "--json", "--where", "id = 5 or id is null")
    same = {
        "type": "or",
        "left": {"type": "eq", "term": "id", "value": 5},
        "right": {"type": "is-null", "term": "id"},
    }
    as_json = plan(frazil, "v2_position_deletes", "--json", "--where-json", json.dumps(same))
    assert text.lines and text == as_json


def test_people_see_files_and_residuals(frazil: Frazil) -> None:
    shown = plan(frazil, "v2_equality_deletes", "--where", "id = 0")
    header, *rows = shown.out.splitlines()
    assert header.split() == ["records", "bytes", "deletes", "file", "residual"]
    assert len(rows) == 2
    assert "data/a-0.parquet" in shown.out and "id" in rows[0].split()[-3]


def test_snapshots_are_chosen_in_three_ways(frazil: Frazil) -> None:
    name = "v2_branches_tags"
    ref, one = next(
        (ref, one) for ref, one in expected(name)["refs"].items() if one["type"] == "tag"
    )
    by_ref = plan(frazil, name, "--json", "--ref", ref)
    assert by_ref.lines
    assert plan(frazil, name, "--json", "--snapshot", str(one["snapshot-id"])) == by_ref
    first = expected(name)["snapshots"][0]
    by_time = plan(frazil, name, "--json", "--as-of", str(first["timestamp_ms"]))
    assert by_time == plan(frazil, name, "--json", "--snapshot", str(first["snapshot_id"]))


def test_a_table_of_the_catalog_is_planned(frazil: Frazil) -> None:
    assert frazil("table", "create", "db.flights", "--schema", "id long").code == 0
    answer = frazil("table", "plan", "db.flights", "--where", "id > 3", "--json")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--where", "id ="), 2, "--where"),
        (("--where-json", "{"), 2, "--where-json"),
        (("--where-json", '{"type": "likes"}'), 2, "--where-json"),
        (("--where", "id = 1", "--where-json", "true"), 2, "at most one of --where"),
        (("--where", "nobody = 1"), 1, "nobody"),
        (("--ref", "nobody"), 1, "nobody"),
        (("--ref", "main", "--snapshot", "1"), 2, "at most one of --snapshot"),
    ],
)
def test_what_cannot_be_planned_is_said(
    frazil: Frazil, options: tuple[str, ...], code: int, said: str
) -> None:
    answer = plan(frazil, "v2_unpartitioned", "--json", *options)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
