"""A small benchmark of Frazil alone, from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import main


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.server
@pytest.mark.timeout(240)
def test_a_quick_run_lands_everything_and_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Plots need what only the benchmark's own environment has.
    monkeypatch.setattr("bench.__main__.draw", lambda groups, folder: [])
    options = ["--scenario", "a", "--systems", "frazil", "--quick", "--results", str(tmp_path)]
    assert main(options) == 0
    records = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert {(one["system"], one["case"]) for one in records} == {
        (system, case)
        for system in ("frazil", "frazil-default")
        for case in ("1 writer", "16 writers")
    }
    for one in records:
        values = one["values"]
        assert values["proven"] and values["failed"] == 0 and values["landed"] > 0
        assert values["committer_us"] > 0 and values["commits"] > 0
    page = (tmp_path / "report.md").read_text()
    assert "failed requests, at any number of writers | ≤ 0 | 0 | reached" in page
