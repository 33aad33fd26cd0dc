"""The code blocks of a page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.M | re.S)


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """One fenced block; the language is empty where the page names none."""

    language: str
    text: str


def code_blocks(page: str) -> list[CodeBlock]:
    """Return all code blocks of a page, which is named from the repository's root."""
    found = _BLOCK.findall((ROOT / page).read_text())
    return [
        CodeBlock(language, re.sub(f"^{indent}", "", text, flags=re.M))
        for indent, language, text in found
    ]


def pages() -> list[str]:
    """Return the pages that a new user reads: the README and each how-to."""
    how_to = sorted((ROOT / "docs/how-to").glob("*.md"))
    return ["README.md", *(str(path.relative_to(ROOT)) for path in how_to)]
