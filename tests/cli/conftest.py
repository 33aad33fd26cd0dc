"""`frazil`: the command in a fresh home."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main

from tests.support.cli.commands import Frazil


@pytest.fixture(autouse=True, scope="session")
def commands_built_once() -> Iterator[None]:
    """Cache the commands: a process builds all of them for each call, which is most of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def frazil(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Frazil:
    return Frazil(tmp_path, monkeypatch, capsys)
