"""Does the steps of the how-to pages as they stand there, and checks the shape of pages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.integration.readers import expected, seen_by_all
from tests.support.integration.real_harness import RealHarness, real_harness, until
from tools.make_docs import documents

ROOT = Path(__file__).parent.parent
HOW_TO = ROOT / "docs/how-to"
COLUMNS_MAX = 120
SIGNING = "sign-requests.md"


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", (HOW_TO / page).read_text(), re.M | re.S)


def run(harness: RealHarness, *command: str) -> None:
    search_path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = harness.environment() | {"PATH": search_path}
    subprocess.run(command, cwd=harness.folder, env=environment, check=True, timeout=60)


@pytest.mark.server
async def test_a_request_made_by_hand_as_the_page_says_lands() -> None:
    with real_harness() as harness:
        run(harness, "sh", "-ec", blocks("publish-by-hand.md", "sh")[0])
        run(harness, sys.executable, "-c", blocks("publish-by-hand.md", "python")[0])
        await harness.start()
        await until(harness.is_settled, "an empty inbox")
        assert await harness.quarantined() == []
        seen = await seen_by_all(harness, "db.events")
    assert seen["PyIceberg"] == seen["DuckDB"] == expected(1, [1, 2, 3])


@pytest.mark.thorough
def test_the_page_works_with_the_defaults_of_the_readme() -> None:
    """Without any setting; the test above shows that such a request lands."""
    with TemporaryDirectory(prefix="frazil-") as folder:
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("FRAZIL_")},
            "HOME": folder,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        for command in (
            ("sh", "-ec", blocks("publish-by-hand.md", "sh")[0]),
            (sys.executable, "-c", blocks("publish-by-hand.md", "python")[0]),
        ):
            subprocess.run(command, cwd=folder, env=environment, check=True, timeout=60)
        inbox = Path(folder, ".frazil", "requests", "inbox")
        (found,) = (path for path in inbox.rglob("*") if path.is_file())
        assert found.parent.name == "0" * 20


@pytest.mark.server
async def test_where_signatures_are_required_a_request_signed_as_the_page_says_lands(
    tmp_path: Path,
) -> None:
    (by_hand,), (sign,) = blocks("publish-by-hand.md", "python"), blocks(SIGNING, "python")
    durable = "# 3. Durable"
    assert durable in by_hand
    keys = {
        "FRAZIL_SECURITY__KEYS": str(tmp_path / "keys.toml"),
        "FRAZIL_SECURITY__REQUIRE_SIGNATURE": "true",
    }
    with real_harness(**keys) as harness:
        run(harness, "sh", "-ec", blocks("publish-by-hand.md", "sh")[0])
        run(harness, "sh", "-ec", blocks(SIGNING, "sh")[0])
        shutil.copy(harness.folder / "keys.toml", tmp_path)
        run(harness, sys.executable, "-c", by_hand.replace(durable, sign + durable))
        run(harness, sys.executable, "-c", by_hand.replace("import-2026", "unsigned"))
        await harness.start()
        await until(harness.is_settled, "an empty inbox")
        (record,) = await harness.quarantined()
        assert record.reason == "signature_missing"
        seen = await seen_by_all(harness, "db.events")
    assert seen["PyIceberg"] == seen["DuckDB"] == expected(1, [1, 2, 3])


# --- The shape of pages --------------------------------------------------------------------------


def too_wide(page: str, *, is_generated: bool) -> list[int]:
    """Return the lines of more than 120 columns, except rows of tables and unbreakable words.

    The code blocks of a generated page are a program's output.
    """
    text = page_without_code(page) if is_generated else page
    return [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > COLUMNS_MAX and not line.startswith("|") and " " in line.strip("* ")
    ]


def long_cells(page: str) -> list[str]:
    """Return the cells of tables that fill more than two lines of a terminal, links' targets left
    out."""
    rows = (line for line in page_without_code(page).splitlines() if line.startswith("|"))
    cells = (cell for row in rows for cell in re.split(r"(?<!\\)\|", row))
    shown = (re.sub(r"\]\([^)]*\)", "]", cell).strip() for cell in cells)
    return [cell for cell in shown if len(cell) > 2 * COLUMNS_MAX]


def page_without_code(page: str) -> str:
    return re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), page, flags=re.S)


def test_no_cell_of_a_table_is_longer_than_two_lines() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert [cell for page in pages for cell in long_cells(page.read_text())] == []
    assert long_cells(f"| a | [b](c) {'d' * 239} |") == [f"[b] {'d' * 239}"]
    assert long_cells(f"| a | [b]({'c' * 240}) {'d' * 230} |") == []


def test_each_decision_has_its_context_its_decision_and_its_consequence() -> None:
    missing = [
        (page.name, part)
        for page in sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
        for part in ("Context", "Decision", "Consequence")
        if not re.search(rf"^\*\*{part}", page.read_text(), re.M)
    ]
    assert missing == []


def test_lines_of_pages_wrap_at_120_columns() -> None:
    generated = documents().keys()
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    wide = {
        str(page.relative_to(ROOT)): lines
        for page in pages
        if (lines := too_wide(page.read_text(), is_generated=page in generated))
    }
    assert len(pages) > 50 and wide == {}


@pytest.mark.parametrize(
    ("line", "is_wide"),
    [
        ("a " * 60, False),
        ("a " * 60 + "b", True),
        ("* " + "a" * 130, False),
        ("| " + "a " * 100 + "|", False),
        ("```\n" + "a " * 100 + "\n```", True),
    ],
)
def test_a_line_that_is_too_wide_is_found(line: str, is_wide: bool) -> None:
    assert bool(too_wide(line, is_generated=False)) == is_wide
