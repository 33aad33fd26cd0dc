"""Every snippet of the README and of `docs/` is run, made from code, or read by a product's parser.

A walk of `tests/first_hour` runs the blocks of the README and of the how-tos. A block that no walk
runs is parsed here; one that neither is possible for needs a reason in `PICTURES`.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from committer.request.attempt import attempt_of
from tests.first_hour.blocks import code_blocks
from tests.first_hour.steps import Interrupt, LeftOut, Type
from tests.first_hour.walks import WALKS
from tests.support.snippets import (
    PARSERS,
    call_problems,
    filter_problems,
    json_problems,
    mention_problems,
    problems,
    python_problems,
    shell_commands,
    shell_problems,
    toml_problems,
)
from tools.make_docs import documents

ROOT = Path(__file__).parents[1]
GENERATED = frozenset(str(path.relative_to(ROOT)) for path in documents())
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
)
# A block that is neither run nor parsed, and the reason: (page, its first line).
PICTURES = {
    ("README.md", " Spark executors      Spark driver"): "a picture",
    ("docs/how-to/tune.md", "latency = trigger + write files"): "a picture",
    ("docs/how-to/use-trino.md", "connector.name=iceberg"): "tests/trino starts Trino with them",
    ("docs/how-to/use-trino.md", "fs.native-s3.enabled=true"): "as those",
    ("docs/how-to/change-a-schema.md", "org.apache.iceberg.exceptions."): "Iceberg Java's message",
}


@dataclass(frozen=True, slots=True)
class Snippet:
    """One fenced block of a page, counted from 1."""

    page: str
    number: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.number}"


def snippets() -> list[Snippet]:
    """Return all blocks of the handwritten pages."""
    return [
        Snippet(page, number, block.language, block.text)
        for page in PAGES
        if page not in GENERATED
        for number, block in enumerate(code_blocks(page), 1)
    ]


def walked() -> set[tuple[str, int]]:
    """Return the blocks that a walk runs or saves."""
    return {
        (walk.page, step.block)
        for walk in WALKS
        for step in walk.steps
        if not isinstance(step, LeftOut | Type | Interrupt) and not getattr(step, "page", "")
    }


def unaccounted(snippet: Snippet) -> str:
    """Return the reason why a block is not held to the code; empty if it is."""
    if snippet.language in PARSERS or (snippet.page, snippet.number) in walked():
        return ""
    if any(_is_picture(snippet, key) for key in PICTURES):
        return ""
    return f"{snippet}: no walk runs this `{snippet.language}` block, and no parser reads it"


def _is_picture(snippet: Snippet, key: tuple[str, str]) -> bool:
    return snippet.page == key[0] and snippet.text.startswith(key[1])


def test_every_snippet_is_run_or_parsed() -> None:
    assert [reason for one in snippets() if (reason := unaccounted(one))] == []
    print(*(f"{page}: {reason}" for (page, _), reason in PICTURES.items()), sep="\n")


def test_every_picture_exists() -> None:
    assert [key for key in PICTURES if not any(_is_picture(one, key) for one in snippets())] == []


@pytest.mark.parametrize("snippet", [one for one in snippets() if one.language in PARSERS], ids=str)
def test_a_snippet_is_what_its_parser_takes(snippet: Snippet) -> None:
    assert problems(snippet.language, snippet.text) == []


def test_every_block_names_its_language() -> None:
    assert [str(one) for one in snippets() if not one.language] == []


@pytest.mark.parametrize("page", [*PAGES, "deploy/prometheus/alerts.yaml"])
def test_each_command_that_a_text_mentions_exists_with_its_options(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)
    mentioned = (" ".join(one.split()) for one in re.findall(r"`(frazil [a-z][^`]*)`", text))
    assert [problem for one in mentioned for problem in mention_problems(one)] == []


@pytest.mark.parametrize("page", PAGES)
def test_each_call_that_a_text_mentions_has_its_arguments(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)
    mentioned = (" ".join(one.split()) for one in re.findall(r"`([a-z][^`(]*\([^`]*\))`", text))
    assert [problem for one in mentioned for problem in call_problems(one)] == []


def test_each_extra_that_a_page_installs_exists() -> None:
    text = "".join((ROOT / page).read_text() for page in PAGES)
    project = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2]
    extras = set(re.findall(r"^([a-z]+) = \[", project, re.M))
    named = re.findall(r"pip install [^`]*\[([a-z,]+)\]", text)
    assert named
    assert {extra for names in named for extra in names.split(",")} <= extras


def test_the_attempt_of_the_page_is_the_one_that_requests_have() -> None:
    (block,) = code_blocks("docs/reference/request.md")
    table_uuid, nonce = uuid.UUID(int=1), uuid.UUID(int=2)
    names: dict[str, object] = {
        "uuid": uuid,
        "table_uuid": table_uuid,
        "branch": "main",
        "producer_id": "p/é",
        "epoch": 7,
        "nonce": nonce,
    }
    exec(block.text, names)
    assert names["attempt"] == attempt_of(table_uuid, "main", "p/é", 7, nonce)


# --- The checks find what they look for ----------------------------------------------------------


@pytest.mark.parametrize("language", ["sql", "text", "yaml", ""])
def test_a_new_block_that_nothing_runs_is_named(language: str) -> None:
    snippet = Snippet("docs/concepts.md", 1, language, "SELECT 1\n")
    assert "docs/concepts.md:1: no walk runs" in unaccounted(snippet)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("frazil status --json\nA=1 frazil serve > log &\n", ""),
        ("frazil quarantine lsit\n", "No such command 'lsit'"),
        ("A=1 frazil status --jsno | head\n", "No such option: --jsno"),
        ("frazil table create db.flights\n", "Missing parameter: schema"),
        ("make chekc\n", "no target `chekc`"),
        (".venv/bin/python -m tests.nothing\n", "no module `tests.nothing`"),
        ("cp deploy/kustomise/* .\n", "no `deploy/kustomise/*`"),
        ("for one in a b; do frazil serve\n", "end of file"),
        ("redis-cli XADD '{frazil:01}' '*' digest x\n", "a doorbell without"),
    ],
)
def test_a_wrong_command_is_named(text: str, problem: str) -> None:
    found = list(shell_problems(text))
    assert len(found) == bool(problem) and problem in "".join(found)


def test_the_words_of_commands_are_split_as_a_shell_does() -> None:
    text = "a 'b c' \\\n  d # e\nX=1 f | g > h; i\n"
    assert list(shell_commands(text)) == [["a", "b c", "d"], ["X=1", "f"], ["g", ">", "h"], ["i"]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import frazil\nfrazil.load_table('a.b').scan()\n", ""),
        ("import frazil\nfrazil.load_tabel('a.b')\n", "no `frazil.load_tabel`"),
        ("import frazil\nfrazil.load_table('a.b', uri='x')\n", "unexpected keyword argument 'uri'"),
        ("from frazil.spark import conf\n", "no `conf` in `frazil.spark`"),
        ("import nothing_of_that_name\n", "no module `nothing_of_that_name`"),
        ("x = (\n", "was never closed"),
    ],
)
def test_a_wrong_name_in_python_is_named(text: str, problem: str) -> None:
    found = list(python_problems(text))
    assert len(found) == bool(problem) and problem in "".join(found)


@pytest.mark.parametrize(
    ("mention", "count"),
    [
        ("frazil table snapshots|files", 0),
        ("frazil quarantine replay --force KEY", 0),
        ("frazil quarantine repeat", 1),
        ("frazil producer thaw TABLE PRODUCER --keep", 1),
    ],
)
def test_a_wrong_command_in_a_text_is_named(mention: str, count: int) -> None:
    assert len(list(mention_problems(mention))) == count


@pytest.mark.parametrize(
    ("mention", "count"),
    [
        ('load_table("db.flights", catalog_name="lake", properties={})', 0),
        ('frazil.load_table("db.flights", …, aws={})', 1),
        ("rewrite_data_files(…, sorting='sort')", 1),
        ("table.scan(any_name=1)", 0),
    ],
)
def test_a_wrong_argument_in_a_text_is_named(mention: str, count: int) -> None:
    assert len(list(call_problems(mention))) == count


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"branch": "audit"}', ""),
        ('{"operation": "append", "files": []}', "at least one manifest or file"),
        (
            '{"operation": "cherry-pick", "needs": {"wap-id": "a", "append-only": true}}',
            "does not take `append-only`",
        ),
        ('{"operation": "delete", "needs": {"row-filter": {"type": "no"}}}', "no"),
        ('{"summary": {"wap.id": 1}}', "is not of type 'string'"),
        ('{"branch": "audit", "brunch": "audit"}', "no form of JSON"),
    ],
)
def test_a_wrong_part_of_a_request_is_named(text: str, problem: str) -> None:
    found = list(json_problems(text))
    assert len(found) == bool(problem) and problem in "".join(found)


def test_a_wrong_filter_is_named() -> None:
    assert list(filter_problems("a = 1\nb >< 2\n")) != []


def test_a_wrong_setting_is_named() -> None:
    (problem,) = toml_problems("[commit]\nmin_interval = 500\n")
    assert "commit.min_interval" in problem


def test_the_alert_rules_are_yaml() -> None:
    assert yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())["groups"]
