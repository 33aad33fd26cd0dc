"""Finds sentences whose subject is a headless "what" or "who", in docstrings, comments and pages.

Such a sentence ("What is kept goes last") names no component. `python -m tools.prose [FOLDER…]`
prints each with file and line, and how many there are per 1,000 words.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
# Printed by programs, not written by people.
_GENERATED = ("bench/results/", "tests/first_hour/transcripts/")
_BEGINS = r"(?:\A|(?<=[.!?]\s)|(?<=\n\n)|(?<=\n[*-] ))"
_HEADLESS = re.compile(rf"{_BEGINS}\s*((?:What|Who|Whoever|Whatever)\b[^.?!]*)([.?!]|\Z)")

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
# A sign of a comment in a string begins none, and a quotation mark in a comment no string. This
# takes a tenth of the time of `tokenize`.
_STRING_OR_COMMENT = re.compile(
    r""""{3}(?:[^"\\]|\\.|"(?!""))*"{3}|'{3}(?:[^'\\]|\\.|'(?!''))*'{3}"""
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|(?P<comment>\#[^\n]*)""",
    re.S,
)


class Passage(NamedTuple):
    """A docstring, a block of comments, or a page; `line` is its first, in `path`."""

    path: str
    line: int
    text: str

    def headless(self) -> Iterator[tuple[int, str]]:
        """Yield line and text of each headless sentence; a question is none."""
        for found in _HEADLESS.finditer(self.text):
            if found[2] != "?":
                line = self.line + self.text.count("\n", 0, found.start(1))
                yield line, " ".join(found[1].split())


def passages(root: Path = ROOT, *below: str) -> Iterator[Passage]:
    """Yield all prose of the files that git tracks, or of those whose path begins with `below`."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md"], cwd=root, check=True, capture_output=True, text=True
    )
    for name in listed.stdout.split():
        path = root / name
        if name.startswith(_GENERATED) or not name.startswith(below or "") or not path.is_file():
            continue
        find = page_prose if path.suffix == ".md" else code_prose
        for line, text in find(path.read_text()):
            yield Passage(name, line, text)


def page_prose(page: str) -> Iterator[tuple[int, str]]:
    """Yield a Markdown page without its code blocks; each cell of a table begins a sentence."""
    text = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), page, flags=re.S)
    yield 1, re.sub(r"^\|.*$", lambda row: row[0].replace("|", ". "), text, flags=re.M)


def code_prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield each docstring of a module, and each block of comments, with its first line."""
    for node in _documented(ast.parse(source)):
        text = ast.get_docstring(node)
        if text:
            yield node.body[0].lineno, text
    yield from _comments(source)


def _documented(module: ast.Module) -> Iterator[_Documented]:
    """Yield all that may have a docstring; no expression holds any of it, so none is looked at."""
    left: list[ast.AST] = [module]
    while left:
        node = left.pop()
        if isinstance(node, _Documented):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, ())
            left += inner if isinstance(inner, list) else ()


def _comments(source: str) -> Iterator[tuple[int, str]]:
    block: list[str] = []
    last = counted = 0
    line = 1
    for found in _STRING_OR_COMMENT.finditer(source):
        if not found["comment"]:
            continue
        line += source.count("\n", counted, found.start())
        counted = found.start()
        if block and line != last + 1:
            yield last - len(block) + 1, "\n".join(block)
            block = []
        block.append(found["comment"].lstrip("#- "))
        last = line
    if block:
        yield last - len(block) + 1, "\n".join(block)


def main() -> None:
    words = count = 0
    for passage in passages(ROOT, *sys.argv[1:]):
        words += len(passage.text.split())
        for line, text in passage.headless():
            count += 1
            print(f"{passage.path}:{line}: {text[:90]}")
    print(f"{count} in {words} words: {1000 * count / max(words, 1):.2f} per 1,000")


if __name__ == "__main__":
    main()
