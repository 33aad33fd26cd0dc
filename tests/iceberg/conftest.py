"""Patterns of maps are compiled soon here, so that few entries are enough to meet them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from committer.iceberg.splice import addition_maps, any_order, map_patterns


@pytest.fixture(autouse=True, scope="module")
def patterns_are_made_soon() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(any_order, "_COMPILING_COSTS", 3)
        patch.setattr(any_order, "_MAPS_A_PATTERN", 1)
        patch.setattr(addition_maps, "_READS_A_LESSON", 2)
        patch.setattr(map_patterns, "_COMPILING_COSTS", 2)
        yield
