"""The page of evidence: each promise of the guarantees with the facts and tests that show it."""

from __future__ import annotations

import textwrap
import tomllib
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent / "tests/evidence.toml"

_INTRODUCTION = """\
# Evidence

Made from `tests/evidence.toml` by `make docs`.

The promises of [guarantees.md](../guarantees.md) by their keys, the facts behind each promise,
and the tests that show each fact. A test fails if a test that is named here does not exist, if the
guarantees link to a key that is not here, or if a promise here is in no guarantee.
"""


def evidence() -> dict[str, dict[str, list[str]]]:
    """Return the facts of each promise, by its key, with their tests."""
    return {key: promise["evidence"] for key, promise in _promises().items()}


def evidence_page() -> str:
    """Return the page."""
    return "\n".join([_INTRODUCTION, *(_section(*one) for one in _promises().items())])


def _promises() -> dict[str, dict[str, Any]]:
    return tomllib.loads(SOURCE.read_text())


def bullet(text: str) -> str:
    """Return a list item whose lines have at most 120 columns."""
    return textwrap.fill(
        text,
        120,
        initial_indent="* ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _section(key: str, promise: dict[str, Any]) -> str:
    lines = [f"## {key}", "", f"{promise['promise']}.", ""]
    for fact, tests in promise["evidence"].items():
        lines += [bullet(fact), *(f"    * `{test}`" for test in tests)]
    return "\n".join([*lines, ""])
