"""`frazil`: the command in a fresh home."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import Frazil


@pytest.fixture
def frazil(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Frazil:
    return Frazil(tmp_path, monkeypatch, capsys)
