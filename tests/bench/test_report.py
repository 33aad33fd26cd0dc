"""Records, groups of them, and the page."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bench.profiles import parse_stacks
from bench.records import Recorder, grouped
from bench.report import number, print_report, spread
from bench.statistics import Spread
from tests.bench.builders import record


def test_rounds_become_one_group_with_their_range() -> None:
    rounds = [record(landed_per_s=rate, proven=True) for rate in (649.0, 1_012.0, 684.0)]
    [group] = grouped(rounds).values()
    assert group.rounds == 3
    assert group.spreads["landed_per_s"] == Spread(684.0, 649.0, 1_012.0)
    assert group.is_proven


def test_one_round_that_is_not_proven_spoils_the_group() -> None:
    [group] = grouped([record(proven=True), record(proven=False)]).values()
    assert not group.is_proven


def test_a_page_has_the_environment_the_targets_and_a_table(tmp_path: Path) -> None:
    groups = grouped(
        [
            record(landed=1_352, failed=0, landed_per_s=1_352.4, proven=True),
            record(system="java-fast", landed=99, failed=61, proven=False, errors="Lost 61"),
        ]
    )
    page = print_report({"cores": "2"}, groups, ["a-rate.png", "b-rate.png"], ["Note."])
    assert "| cores | 2 |" in page
    assert "| (a) | failed requests, at any number of writers | ≤ 0 | 0 | reached |" in page
    assert "| Frazil, interval 0 | 16 writers | 1 | 1,352 | 0 | 1,352 | yes |  |" in page
    assert "| Iceberg Java, fast append | 16 writers | 1 | 99 | 61 |  | NO | Lost 61 |" in page
    assert "![a-rate.png](a-rate.png)" in page
    assert "b-rate" not in page


def test_numbers_are_short() -> None:
    assert [number(each) for each in (0.0, 3.14159, 28.449, 684.2, 1352.4, math.nan)] == [
        *("0", "3.14", "28.4", "684", "1,352", "–")
    ]
    assert spread(Spread(684.0, 649.0, 1_012.0)) == "684 (649–1,012)"
    assert spread(Spread(2.0, 2.0, 2.0)) == "2"
    assert spread(None) == spread(Spread(math.nan, math.nan, math.nan)) == ""


def test_records_are_lines_of_json_in_which_nothing_measured_is_null(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder(tmp_path)
    profile = parse_stacks(["run (committer/a.py:1) 1"])
    recorder.add(record(p50_ms=1.23456, p99_ms=math.nan, proven=True), {"committer": profile})
    line = json.loads((tmp_path / "records.jsonl").read_text())
    assert line["values"] == {"p50_ms": 1.235, "p99_ms": None, "proven": True}
    assert (tmp_path / "profile-a-16-writers-frazil-committer.txt").read_text() == profile.print()
    assert capsys.readouterr().out.startswith("(a) frazil, 16 writers: p50_ms=1.235")
