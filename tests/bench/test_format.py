"""The benchmark of the format: each case does what it says, with each of its peers."""

from __future__ import annotations

import json
import mmap
from pathlib import Path

import pytest

from bench.format.__main__ import main, write_results
from bench.format.cases import CASES, FRAZIL, PYICEBERG, TARGETS, Case, sizes_of
from bench.format.measure import Measured, Work, measure
from bench.format.report import Line, found_ratio, print_report
from bench.format.run_case import SYSTEMS
from bench.format.tables import write_table
from committer.iceberg.metadata.table_metadata import parse_table_metadata

FILTERED = "plan with a filter"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_system_does_all_units_of_a_case(case: Case, tmp_path: Path) -> None:
    for system in case.systems:
        folder = tmp_path / system
        folder.mkdir()
        work = SYSTEMS[system][case.name](100, folder)
        units = 11 if case.name == FILTERED else 101 if "again" in case.name else 100
        assert work.run(work.before()) == units, system


def test_every_target_is_measured() -> None:
    for target in TARGETS:
        for name, system in ((target.case, FRAZIL), (target.peer_case, target.peer)):
            case = next(each for each in CASES if each.name == name)
            assert system in case.systems
            assert target.size in sizes_of(case, system, quick=False)


@pytest.mark.slow
def test_the_table_that_is_planned_has_its_files_in_manifests_of_ten_thousand(
    tmp_path: Path,
) -> None:
    metadata = parse_table_metadata(write_table(tmp_path / "t", 20_100).read_bytes())
    assert len(metadata.snapshots) == 1
    assert len(list((tmp_path / "t" / "metadata").glob("*-m0.avro"))) == 3


@pytest.mark.thorough
def test_a_round_that_does_less_is_an_error() -> None:
    rounds = iter([3, 2])
    with pytest.raises(ValueError, match="2 units in one round, 3 in another"):
        measure(Work(lambda _: next(rounds)), 2)


def fresh_memory(size_bytes: int) -> mmap.mmap:
    """Return fresh memory of the system: the allocator may return some of an earlier test."""
    memory = mmap.mmap(-1, size_bytes)
    for page in range(0, size_bytes, mmap.PAGESIZE):
        memory[page] = 1
    return memory


@pytest.mark.slow
def test_memory_is_what_the_work_takes_and_not_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.format.measure._MEASURED_S_MIN", 0)
    before = Work(lambda found: len(found), lambda: b"x" * 40_000_000)
    assert measure(before, 1).peak_bytes < 20_000_000
    during = Work(lambda _: len(fresh_memory(40_000_000)))
    assert 30_000_000 < measure(during, 1).peak_bytes < 80_000_000


def line(case: str, system: str, size: int, best_s: float) -> tuple[tuple[str, str, int], Line]:
    measured = Measured(units=size, best_s=best_s, rounds=3, peak_bytes=2**20)
    return (case, system, size), Line(case, system, size, measured)


def test_the_report_says_what_was_reached_and_by_how_much(tmp_path: Path) -> None:
    lines = dict(
        (
            line("encode", FRAZIL, 10_000, 0.1),
            line("encode", PYICEBERG, 10_000, 0.9),
            line("join", FRAZIL, 10_000, 0.1),
            line("plan", FRAZIL, 100_000, 1.0),
        )
    )
    encode = next(target for target in TARGETS if target.case == "encode")
    ratio = found_ratio(encode, lines)
    assert ratio is not None
    assert round(ratio, 6) == 9
    report = print_report({"cores": "2"}, lines)
    assert "| encode, 10,000: Frazil ÷ PyIceberg's encode | ≥ 8 | 9 | reached |" in report
    assert "| join, 10,000: Frazil ÷ PyIceberg's encode | ≥ 50 | 9 | missed |" in report
    assert "| plan, 100,000: Frazil ÷ PyIceberg's plan | ≥ 10 |  | not measured |" in report
    write_results(tmp_path, {"cores": "2"}, lines)
    records = [json.loads(text) for text in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert records[0]["case"] == "encode"
    assert (tmp_path / "report.md").read_text() == report


@pytest.mark.slow
@pytest.mark.heavy
def test_a_run_measures_in_processes_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--quick", "--case", "join", "--systems", FRAZIL, "--results", str(tmp_path)]
    assert main(options) == 0
    assert "join, 200, Frazil: " in capsys.readouterr().out
    assert "| Join 1,000 small manifests" in (tmp_path / "report.md").read_text()
