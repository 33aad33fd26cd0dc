"""The house itself: import contracts, and documents that say what the code says."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest
from jsonschema import Draft202012Validator

from committer.ledger_entry import property_key
from committer.plan.operations.conflict import ConflictCode
from committer.reason import Reason
from committer.service.telemetry.metrics import PLACES
from committer.settings.setting_names import variable_of
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tools.evidence import evidence
from tools.make_docs import documents
from tools.make_site import API, HOME
from workers.settings import options
from workers.settings.worker_setting_names import SETTING_NAMES
from workers.source import read_options

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PACKAGES = ("frazil", "committer", "workers", "pyspark_frazil")


@cache
def tracked_files() -> list[Path]:
    """Return every file that git tracks and that exists."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    found = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [path for path in found if path.is_file()]


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


# --- Code ----------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_import_contracts_hold() -> None:
    lint_imports = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--no-logo"]
    found = subprocess.run(lint_imports, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


@pytest.mark.thorough
def test_every_module_opens_by_saying_what_lives_there() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in sources()
        if ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert silent == []


def test_no_test_imports_another_test() -> None:
    """Shared helpers live in `tests/support`."""
    importing = re.compile(
        r"^\s*(?:from|import) tests\.[\w.]*\btest_\w+|^\s*from tests\.[\w.]* import [\w, ]*\btest_",
        re.MULTILINE,
    )
    tests = sorted((ROOT / "tests").rglob("*.py"))
    assert [
        str(path.relative_to(ROOT)) for path in tests if importing.search(path.read_text())
    ] == []


def test_a_helper_that_another_test_folder_imports_lies_in_the_support_folder() -> None:
    """A program, a folder that `python -m` runs, has modules of its own, which tests may import."""
    importing = re.compile(
        r"^\s*(?:from|import) (tests(?:\.\w+)+)(?: import ([\w, ]+))?", re.MULTILINE
    )
    found = set()
    for importer in (one for one in tracked_files() if one.suffix == ".py"):
        for match in importing.finditer(importer.read_text()):
            for helper in _modules(*match.groups()):
                if not importer.is_relative_to(helper.parent) and not _is_shared(helper):
                    found.add(f"{importer.relative_to(ROOT)} imports {helper.relative_to(ROOT)}")
    assert sorted(found) == []


def _modules(imported: str, names: str | None) -> list[Path]:
    path = ROOT / imported.replace(".", "/")
    if not path.is_dir():
        return [path.with_suffix(".py")]
    return [path / f"{name}.py" for name in (names or "").replace(",", " ").split()]


def _is_shared(helper: Path) -> bool:
    within = list(helper.relative_to(ROOT).parents)[:-2]
    return Path("tests/support") in within or any(
        (ROOT / folder / "__main__.py").is_file() for folder in within
    )


# --- The tree ------------------------------------------------------------------------------------

# Put together here, so that this file does not hold them itself.
FORBIDDEN = {
    "a path of one machine": "|".join(
        ("/work" + "/", "/tmp/" + r"w\b", "/root" + "/", "~/" + ".pyenv")
    ),
    "the host of a package index": "|".join(
        (
            r"py" + r"pi\.org",
            r"python" + r"hosted\.org",
            r"maven" + r"2?\.(apache\.)?org",
            r"repo1" + r"\.maven",
            r"crates" + r"\.io",
            r"npm" + r"js\.(org|com)",
            r"go" + r"lang\.org",
            r"deb" + r"ian\.org",
        )
    ),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_the_tree_names_no_machine_and_no_package_index(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what].encode())
    naming = [
        f"{path.relative_to(ROOT)}: {found[0].decode()}"
        for path in tracked_files()
        if path.suffix != ".xz" and (found := pattern.search(path.read_bytes()))
    ]
    assert naming == []


def test_results_of_benchmarks_stay_light() -> None:
    """A report, one file of records and plots for the newest run of each; not its samples."""
    results = [path for path in tracked_files() if path.is_relative_to(ROOT / "bench/results")]
    assert sum(path.stat().st_size for path in results) < 400_000
    for folder in {path.parent for path in results}:
        names = [path.name for path in results if path.parent == folder]
        assert "report.md" in names
        assert {name for name in names if not name.endswith(".png")} <= {
            "records.jsonl",
            "report.md",
        }


# --- Documents -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_a_page_made_from_code_is_up_to_date(path: Path) -> None:
    assert path.read_text() == documents()[path], "run `make docs`"


def test_the_published_schema_accepts_a_request_that_we_write() -> None:
    schema = json.loads((DOCS / "reference/commit-request.schema.json").read_text())
    line = build_request(build_table(warehouse="file:///warehouse")).content.split(b"\n", 1)[0]
    Draft202012Validator(schema).validate(json.loads(line))


def test_the_page_of_reasons_has_each_code_with_its_meaning_and_advice_and_no_other() -> None:
    reasons, _, _ = (DOCS / "reference/reasons.md").read_text().partition("\n## Conflicts\n")
    rows = _rows(reasons)
    assert [(code.strip("`"), *texts) for code, *texts in rows] == [
        (reason.value, reason.meaning, reason.advice) for reason in Reason
    ]


def test_the_page_of_reasons_has_each_code_of_a_conflict_with_its_meaning() -> None:
    _, _, conflicts = (DOCS / "reference/reasons.md").read_text().partition("\n## Conflicts\n")
    definition = ast.parse(dedent(inspect.getsource(ConflictCode))).body[0]
    assert isinstance(definition, ast.ClassDef)
    meanings = [
        " ".join(str(one.value.value).split())
        for one in definition.body[1:]
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
    ]
    assert [(code.strip("`"), text) for code, text in _rows(conflicts)] == [
        (code.value, meaning) for code, meaning in zip(ConflictCode, meanings, strict=True)
    ]


def test_the_page_of_spark_options_has_each_option_and_setting() -> None:
    text = (DOCS / "reference/spark-options.md").read_text()
    reads = {*read_options._FOR_ALL, *read_options._OF_BATCH, *read_options._OF_STREAMS}
    wanted = {*options._OURS, *reads, *SETTING_NAMES, *map(variable_of, SETTING_NAMES)}
    assert [name for name in sorted(wanted) if f"`{name}`" not in text] == []


def test_the_page_of_the_ledger_names_its_property_as_the_code_does() -> None:
    text = (DOCS / "reference/ledger.md").read_text()
    assert f"`{property_key('<producer id>')}`" in text
    for key in _keys_of_ours():
        assert key in text, f"`{key}` is not in ledger.md"


def _keys_of_ours() -> set[str]:
    """Return keys of properties, summaries and headers: literals like `frazil.requests`."""
    found = set()
    written_by = (ROOT / "committer/plan", ROOT / "committer/service")
    for path in (path for folder in written_by for path in sorted(folder.rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(re.findall(r"^frazil\.[a-z.-]+$", node.value))
    return found


def test_the_page_of_log_events_has_each_event_and_no_other() -> None:
    service = [ROOT / "committer/__main__.py", *(ROOT / "committer/service").rglob("*.py")]
    patterns = {
        re.sub(r"\\\*", "[a-z_]+", re.escape(name)) for path in service for name in _events(path)
    }
    text = (DOCS / "reference/log-events.md").read_text()
    named = set(re.findall(r"`([a-z_]+\.[a-z_]+)`", text)) - {"service.log_format"}
    assert [p for p in sorted(patterns) if not any(re.fullmatch(p, n) for n in named)] == []
    assert [n for n in sorted(named) if not any(re.fullmatch(p, n) for p in patterns)] == []


def test_the_end_of_a_condition_is_logged_at_the_level_of_its_start() -> None:
    """A log from `warning` on that shows an outage shows its end, too."""
    hidden = r'log\.(?:debug|info)\(\s*f?"[^"]*recovered"'
    named = [path.name for path in sources() if re.search(hidden, path.read_text())]
    assert named == []


LEVELS = ("debug", "info", "warning", "error", "exception")


def _events(path: Path) -> Iterator[str]:
    """Yield names given to `log.info` and its like, and to `emit`; `*` stands for a field."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(
                func=ast.Name(id="emit") | ast.Attribute(attr="emit"),
                args=[_, ast.Constant(value=str(event)), *_],
            ):
                yield event
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="log"), attr=level), args=[name, *_]
            ) if level in LEVELS:
                parts = name.values if isinstance(name, ast.JoinedStr) else [name]
                yield "".join(
                    part.value
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                    else "*"
                    for part in parts
                )


def test_each_internal_error_that_is_logged_is_counted_where_it_is_logged() -> None:
    logged, counted = Counter[str](), Counter[str]()
    for path in sources():
        for place in re.findall(r'log\.exception\(\s*"(\w+)\.crashed"', path.read_text()):
            logged[place] += 1
        for place in re.findall(r'crashed\(\s*"(\w+)"\)', path.read_text()):
            counted[place] += 1
    assert logged == counted
    assert set(logged) == set(PLACES)


def test_the_page_of_dependencies_names_each_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = [
        *project["project"]["dependencies"],
        *(one for extra in project["project"]["optional-dependencies"].values() for one in extra),
        *project["dependency-groups"]["dev"],
        *project["build-system"]["requires"],
    ]
    names = {re.split(r"[^a-z0-9-]", one)[0] for one in listed} - {"frazil"}
    text = (DOCS / "dependencies.md").read_text()
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_every_link_in_a_page_leads_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages()
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
        if "://" not in target and not Path(os.path.normpath(page.parent / target)).exists()
    ]
    assert broken == []


# --- Citations -----------------------------------------------------------------------------------

SECTION = r"\d+(?:\.\d+)*"
CITATION = re.compile(rf"(?<![\w*}}])([\w./-]*\w\.(?:md|py))\b(?: ({SECTION}(?:, {SECTION})*))?")
PROSE = (".py", ".md", ".toml", ".sh", ".yaml", ".yml")


@cache
def citations() -> tuple[tuple[str, str, str], ...]:
    """Return each file that a text names: the place, the name, and the sections (`6.6, 6.7`) if
    any.

    Names of modules count where they stand in back quotes, names of pages everywhere.
    """
    return tuple(
        (f"{path.relative_to(ROOT)}:{number}", found[1], found[2] or "")
        for path in tracked_files()
        if path.suffix in PROSE
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for found in CITATION.finditer(line)
        if found[1].endswith(".md") or re.match("`|::", line[found.end(1) :])
    )


@cache
def files_called(name: str) -> list[Path]:
    """Return the files of the repository that a path, its end or a relative path may mean."""
    end = f"/{re.sub(r'^(?:[.]{1,2}/)+', '', name)}"
    return [path for path in tracked_files() if str(path).endswith(end)]


@pytest.mark.thorough
def test_every_page_and_module_that_a_text_names_exists() -> None:
    named = {name: place for place, name, _ in citations() if name not in (HOME[1], API)}
    missing = [f"{place}: {name}" for name, place in named.items() if not files_called(name)]
    assert missing == []


@pytest.mark.thorough
def test_every_section_that_a_text_cites_exists() -> None:
    missing = [
        f"{place}: {name} {section}"
        for place, name, sections in citations()
        for section in filter(None, sections.split(", "))
        if not any(section in _numbered(path.read_text()) for path in files_called(name))
    ]
    assert missing == []


@pytest.mark.thorough
def test_no_text_cites_a_section_without_its_document() -> None:
    loose = re.compile(r"(?i:\bsections?) \d|(?:\.md|\w#)\s+(?i:sections?|decisions?)\s+\d")
    citing = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in tracked_files()
        if path.suffix in PROSE and (found := loose.search(path.read_text()))
    ]
    assert citing == []


def _numbered(text: str) -> set[str]:
    """Return the numbers of a page's numbered headings."""
    return set(re.findall(rf"^#+ ({SECTION})\.? ", text, re.M))


def test_the_page_of_failures_names_only_what_there_is() -> None:
    """Log events, metrics, alerts, reasons and options: as the pages that are held to the code."""
    named = set(re.findall(r"`([^`\n]+)`", (DOCS / "operations/failures.md").read_text()))
    of_others = {"metadata.json", "register_table", "set_current_snapshot"}
    forms = {
        r"[a-z]+\.[a-z_]+": ("reference/log-events.md", "reference/settings.md"),
        r"frazil_\w+": ("reference/metrics.md",),
        r"Frazil[A-Z]\w+": ("operations/alerts.md",),
        r"(?!frazil)[a-z]+(_[a-z]+)+": ("reference/reasons.md", "reference/spark-options.md"),
    }
    unknown = []
    for form, files in forms.items():
        known = " ".join((DOCS / file).read_text() for file in files)
        meant = (one for one in named - of_others if re.fullmatch(form, one))
        unknown += [one for one in meant if f"`{one}`" not in known]
    assert unknown == []


def test_no_page_imports_what_is_internal_to_the_spark_side() -> None:
    internal = re.compile(
        r"^ *(?:from|import) workers\b.*|`workers\.\w+\.\w+.*`|-m workers\b.*", re.M
    )
    named = [
        f"{page.name}: {one}" for page in pages() for one in internal.findall(page.read_text())
    ]
    assert named == []


def test_every_heading_that_a_link_names_exists() -> None:
    broken = []
    for page in pages():
        for target, anchor in re.findall(r"\]\(([^)#]*)#([^)]+)\)", page.read_text()):
            if "://" in target:
                continue
            text = (page.parent / target).read_text() if target else page.read_text()
            if anchor not in _anchors(text):
                broken.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    assert broken == []


def test_every_test_that_a_page_names_exists() -> None:
    missing = []
    for page in pages():
        for path, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text()):
            file = ROOT / path
            if not file.is_file() or not re.search(rf"def {name}\(", file.read_text()):
                missing.append(f"{path}::{name}")
    assert missing == []


def test_guarantees_and_evidence_have_the_same_promises() -> None:
    text = (DOCS / "guarantees.md").read_text()
    linked = set(re.findall(r"\(reference/evidence\.md#([a-z-]+)\)", text))
    assert linked == evidence().keys() - {"invariants"}
    assert [key for key, facts in evidence().items() if not facts or not all(facts.values())] == []


def test_the_guarantees_are_short() -> None:
    assert len((DOCS / "guarantees.md").read_text().splitlines()) <= 110


def test_every_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {
        target
        for page in pages()
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.M)
    }
    assert named <= targets


def _anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as links name them."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings}


def _rows(page: str) -> list[list[str]]:
    """Return the cells of a page's tables, without the head."""
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
