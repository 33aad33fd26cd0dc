"""The end of a committer's start, in this process."""

from __future__ import annotations

import gc

import pytest

from committer.cli.committers.serve import GARBAGE_THRESHOLDS, _is_open
from committer.settings.service_settings import CatalogSettings, Settings

OBJECTS = 1_000


def test_what_is_there_at_the_start_is_in_no_collection_of_garbage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept: list[list[object]] = [[] for _ in range(OBJECTS)]
    before, thresholds = gc.get_freeze_count(), gc.get_threshold()
    try:
        _is_open(Settings(inbox="memory://requests", catalog=CatalogSettings(name="frazil")))
        assert gc.get_threshold() == GARBAGE_THRESHOLDS != thresholds
    finally:
        gc.set_threshold(*thresholds)
    assert gc.get_freeze_count() >= before + len(kept)
    assert "frazil: committing to catalog `frazil`" in capsys.readouterr().err
