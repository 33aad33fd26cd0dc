"""Values that a command prints for people: facts and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values, under a title."""

    title: str
    facts: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Rows:
    """A table. `is_detail`: there is one for each file, shown on demand only."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    is_detail: bool = False


View = Facts | Rows
