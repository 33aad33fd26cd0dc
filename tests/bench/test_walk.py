"""The benchmark of walks: each shape is measured, also beside another checkout."""

from __future__ import annotations

import pytest

from bench.walk.__main__ import ROOT, main
from bench.walk.shapes import CHANGES, manifests
from committer.iceberg.manifest.manifest import iter_entries


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_a_shape_has_its_entries(name: str, is_plain: bool) -> None:
    found = list(manifests(name, 30, 10, is_plain=is_plain))
    assert [sum(1 for _ in iter_entries(one)) for one in found] == [10, 10, 10]


@pytest.mark.slow
def test_each_line_has_the_ratio_to_a_walk_without_forms_and_to_another_checkout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--shape", "mixed", "--entries", "20", "--files", "10", "--rounds", "1"]
    assert main([*options, "--against", str(ROOT)]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(line.count("(x ") == 2 for line in lines)
