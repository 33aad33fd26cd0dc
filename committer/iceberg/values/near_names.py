"""Suggests the name that a misspelt one may stand for. Texts only."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str], *, prefix: str = "") -> str:
    """Return a question that suggests the nearest name; empty where no name is near.

    `prefix`: what names may begin with, and no likeness is seen in.
    """
    by_rest = {one.removeprefix(prefix): one for one in sorted(known)}
    near = get_close_matches(name.removeprefix(prefix), by_rest, n=1, cutoff=0.6)
    return f"did you mean `{by_rest[near[0]]}`?" if near else ""
