"""Patterns of maps are compiled soon here, so that few entries are enough to meet them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from committer.iceberg.splice import map_patterns


@pytest.fixture(autouse=True, scope="module")
def patterns_are_made_soon() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(map_patterns, "_COMPILING_COSTS", 2)
        yield
