"""Reads the page that walks through the modules of a request's way."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/life-of-a-request.md"


def page_rows(heading: str) -> list[list[str]]:
    """Return the rows of the first table below a heading of the page."""
    text = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = [line for line in text.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found]
