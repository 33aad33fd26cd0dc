"""The documentation site: every page is in its navigation, and it builds without a warning."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.make_site import HOME, ROOT, problems, stage

PYTHON = ROOT / ".venv-docs/bin/python"


def test_the_navigation_has_each_page_once(tmp_path: Path) -> None:
    stage(tmp_path / "source")
    docs = tmp_path / "source/docs"
    nav = tomllib.loads((ROOT / "tools/zensical.toml").read_text())["project"]["nav"]
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    assert sorted(_pages(nav)) == sorted(pages)


def _pages(entries: Any) -> Iterator[str]:
    match entries:
        case str():
            yield entries
        case list():
            for entry in entries:
                yield from _pages(entry)
        case dict():
            for entry in entries.values():
                yield from _pages(entry)


def test_links_of_staged_pages_lead_to_files_of_the_site(tmp_path: Path) -> None:
    stage(tmp_path)
    text = (tmp_path / "docs" / HOME[1]).read_text()
    assert "](guarantees.md)" in text and "](docs/" not in text
    assert (
        "](../files/deploy/prometheus/alerts.yaml)"
        in (tmp_path / "docs/reference/metrics.md").read_text()
    )
    assert (tmp_path / "docs/files/deploy/prometheus/alerts.yaml").is_file()


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="b.html">', "broken link b.html"),
        ('<a href="#nowhere">', "broken link #nowhere"),
        ('<a href="a.html#nowhere">', "broken link a.html#nowhere"),
        ('<script src="https://cdn.example/x.js">', "loads https://cdn.example/x.js"),
        ('<link rel="stylesheet" href="//fonts.example/x.css">', "loads //fonts.example/x.css"),
        ('<p id="here"><a href="#here"><a href="a.html#here"><a href="https://x.example">', ""),
    ],
)
def test_what_is_wrong_in_a_built_page_is_named(tmp_path: Path, html: str, problem: str) -> None:
    (tmp_path / "a.html").write_text(html)
    assert list(problems(tmp_path)) == ([f"a.html: {problem}"] if problem else [])


@pytest.mark.heavy
@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_its_links_hold() -> None:
    if not PYTHON.exists():
        pytest.skip("needs .venv-docs, which `make test-servers` and `make docs-site` install")
    command = [str(PYTHON), "-m", "tools.make_site"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    api = (ROOT / "build/site/reference/api.html").read_text()
    assert "frazil.load_table" in api
    assert (ROOT / "build/site/search.json").is_file()
