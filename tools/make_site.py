"""Builds the documentation site: `make docs-site`. Needs the packages of requirements-docs.lock.

`build/site-source` gets the pages of `docs/`, those at the root, and an API page; Zensical makes
`build/site` of them. A warning of the generator, a link that leads nowhere and anything that a
browser would load from the network are errors.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build/site-source"
SITE = ROOT / "build/site"
# The page of the repository that opens the site; other pages keep their names.
HOME = ("README.md", "index.md")
# The page that is in the site alone.
API = "reference/api.md"
# Other files of the repository that pages link to are copied here.
FILES = "files"
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")


def main() -> int:
    stage(SOURCE)
    code = _generate(SOURCE)
    if code:
        return code
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.move(SOURCE / "site", SITE)
    wrong = sorted(problems(SITE))
    print("\n".join(wrong) or f"built {SITE.relative_to(ROOT)}/index.html")
    return 1 if wrong else 0


def _generate(source: Path) -> int:
    """Run Zensical; return its exit code."""
    zensical = Path(sys.executable).parent / "zensical"
    command = [str(zensical), "build", "--strict", "--clean"]
    ended = subprocess.run(command, cwd=source, capture_output=True, text=True)
    if ended.returncode:
        print(ended.stdout, ended.stderr, sep="\n", file=sys.stderr)
    return ended.returncode


# --- The pages -----------------------------------------------------------------------------------


def stage(into: Path) -> None:
    """Write the configuration and all pages, with links that hold in the site, to a folder."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    shutil.copy(ROOT / "tools/zensical.toml", into)
    (into / "repository").symlink_to(ROOT)
    shutil.copytree(ROOT / "docs", into / "docs")
    places = _places()
    for page, place in places.items():
        if page.suffix == ".md":
            text = _with_links_of_the_site(page.read_text(), page, places, into / "docs")
            (into / "docs" / place).write_text(text)
    (into / "docs" / API).write_text(api_page())


def _places() -> dict[Path, str]:
    """Return the place of each page and file of `docs/` and of each page at the root."""
    docs = ROOT / "docs"
    inside = {path: path.relative_to(docs).as_posix() for path in docs.rglob("*") if path.is_file()}
    return {path: path.name for path in ROOT.glob("*.md")} | inside | {ROOT / HOME[0]: HOME[1]}


def _with_links_of_the_site(text: str, page: Path, places: dict[Path, str], docs: Path) -> str:
    """Point each relative link to where its target lies in the site; copy other files there."""
    start = Path(places[page]).parent

    def link(found: re.Match[str]) -> str:
        target, anchor = found[1], found[2] or ""
        if urlsplit(target).scheme:
            return found[0]
        path = Path(os.path.normpath(page.parent / target))
        place = places.get(path) or _copied(path, docs)
        return Path(os.path.relpath(place, start)).as_posix() + anchor

    return LINK.sub(link, text)


def _copied(path: Path, docs: Path) -> str:
    """Copy a file of the repository beside the pages; return its place."""
    place = f"{FILES}/{path.relative_to(ROOT).as_posix()}"
    (docs / place).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, docs / place)
    return place


# --- The API page --------------------------------------------------------------------------------


_API_INTRODUCTION = """\
# Python API

The names that users import, from their docstrings. [Python names](python.md) lists their signatures
on one page.
"""


def api_page() -> str:
    """Return the page that asks mkdocstrings for each public name, where it is defined."""
    from frazil import public, spark

    first = ["load_table", "Table", "TableScan", "InspectTable"]
    names = [*first, *(name for name in public.__all__ if name not in first)]
    parts = [_described(f"frazil.{name}", getattr(public, name)) for name in names]
    parts += [_described(f"frazil.spark.{name}", getattr(spark, name)) for name in spark.__all__]
    return "\n".join([_API_INTRODUCTION, *parts])


def _described(name: str, one: Any) -> str:
    """Ask for what a public name stands for, under that name."""
    defined_as = f"{one.__module__}.{one.__qualname__}"
    return f"::: {defined_as}\n    options:\n      heading: {name}\n      toc_label: {name}\n"


# --- What was built ------------------------------------------------------------------------------


@dataclass(slots=True)
class Page:
    """The anchors of a page, its links, and the files that a browser loads with it."""

    anchors: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.page.anchors |= {given[name] for name in ("id", "name") if name in given}
        if "src" in given:
            self.page.loaded.add(given["src"])
        if "href" in given:
            loads = tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect")
            (self.page.loaded if loads else self.page.links).add(given["href"])


def problems(site: Path) -> Iterator[str]:
    """Name each link that leads nowhere, and each file that would come from the network."""
    pages = {path: _read(path) for path in site.rglob("*.html") if path.name != "404.html"}
    for path, page in pages.items():
        name = path.relative_to(site)
        for link in page.links | page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded:
                    yield f"{name}: loads {link}"
            elif not _leads_somewhere(path, unquote(parts.path), unquote(parts.fragment), pages):
                yield f"{name}: broken link {link}"


def _read(path: Path) -> Page:
    reader = _Reader()
    reader.feed(path.read_text())
    return reader.page


def _leads_somewhere(path: Path, target: str, anchor: str, pages: dict[Path, Page]) -> bool:
    found = Path(os.path.normpath(path.parent / target)) if target else path
    if found.is_dir():
        found /= "index.html"
    if found in pages and anchor:
        return anchor in pages[found].anchors
    return found.is_file()


if __name__ == "__main__":
    sys.exit(main())
