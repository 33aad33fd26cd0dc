"""Every block of every page is walked, or left out with a reason; and what differs is seen."""

from __future__ import annotations

import pytest

from tests.first_hour.blocks import code_blocks, pages
from tests.first_hour.hour import WrongTurn, an_hour
from tests.first_hour.landed_rows import verdict
from tests.first_hour.steps import Step, Type, Walk
from tests.first_hour.transcript import masked, settled, transcript_file
from tests.first_hour.walks import README, WALKS


def test_every_page_is_walked() -> None:
    assert sorted(walk.page for walk in WALKS) == sorted(pages())


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name)
def test_every_block_of_a_page_is_walked_or_left_out_once(walk: Walk) -> None:
    assert sorted(walk.blocks()) == list(range(1, len(code_blocks(walk.page)) + 1))


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name)
def test_the_kept_transcript_of_a_walk_has_all_its_steps(walk: Walk) -> None:
    """`make first-hour` compares the rest: the lines that the steps print."""
    file = transcript_file(walk)
    kept = file.read_text().splitlines() if file.exists() else []
    titles = [line.removeprefix("## ") for line in kept if line.startswith("## ")]
    assert titles == [step.title for step in walk.steps], "make first-hour OPTIONS=--update"


def walked(*steps: Step) -> list[str]:
    with an_hour(Walk("README.md", steps)) as hour:
        return hour.do()


def test_a_transcript_has_what_was_typed_and_printed() -> None:
    lines = walked(Type(command="echo a; echo b >&2; exit 3", exit_code=3))
    assert lines == ["", "## $ echo a; echo b >&2; exit 3", "   a", "   b", "exit code 3"]


def test_another_exit_code_is_a_wrong_turn() -> None:
    with pytest.raises(WrongTurn, match="exit code 3, expected 0"):
        walked(Type(command="exit 3"))


def test_a_traceback_is_a_wrong_turn_whatever_the_exit_code() -> None:
    with pytest.raises(WrongTurn, match="printed a traceback"):
        walked(Type(command="echo 'Traceback (most recent call last)'; exit 2", exit_code=2))


def test_a_walk_does_not_inherit_the_options_of_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make first-hour OPTIONS=--update` once gave `--update` to the `make demo` of the README."""
    monkeypatch.setenv("MAKEFLAGS", "-- OPTIONS=--verbose")
    monkeypatch.setenv("OPTIONS", "--verbose")
    lines = walked(Type(command='echo "<$MAKEFLAGS$OPTIONS>"'))
    assert lines[-1] == "   <>"


def test_a_terminal_has_80_columns() -> None:
    lines = walked(Type(command="stty size", terminal=True))
    assert lines[-1] == "   24 80"


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ("at 2026-11-22 15:04:05.123Z", "at <time>"),
        ("(datetime.datetime(2026, 11, 22, 17, 47, 16, 618000), 1)", "(<time>, 1)"),
        ("took 1.25 s, 12 ms", "took <duration>, <duration>"),
        ("3fa85f64-5717-4562-b3fc-2c963f66afa6.parquet", "<uuid>.parquet"),
        ("snapshot 7219347923847293847   3 files", "snapshot <id>  3 files"),
        ("\x1b[1mbold\x1b[0m", "bold"),
        ("2 requests of 3 producers", "2 requests of 3 producers"),
    ],
)
def test_what_differs_from_run_to_run_is_left_out(printed: str, kept: str) -> None:
    assert settled(printed, {}) == [kept]


# --- Output that depends on timing ---------------------------------------------------------------

(SNAPSHOTS,) = (step for step in README.steps if isinstance(step, Type) and step.varying)
FIRST = """\
committed    2026-11-22 15:04:05Z
snapshot id  7219347923847293847
seq          1
operation    append
files        +2 = 2
records      +7 = 7
"""
SECOND = """
committed    2026-11-22 15:04:15Z
snapshot id  5219347923847293841
parent       7219347923847293847
seq          2
operation    append
files        +1 = 3
records      +12 = 19
"""
REFS = "refs         main"


@pytest.mark.parametrize("printed", [FIRST + REFS, FIRST + SECOND + REFS])
def test_however_many_commits_there_was_time_for_the_transcript_is_the_same(printed: str) -> None:
    lines = masked(settled(printed, {}), SNAPSHOTS.varying)
    assert lines == ["<a block for each commit, the last with `refs  main`>"]


@pytest.mark.parametrize(
    "printed",
    [
        "",
        FIRST,
        SECOND + REFS,
        FIRST.replace("= 7", "= 8") + REFS,
        FIRST.replace("+7 = 7", "+0 = 0") + REFS,
        FIRST.replace("append", "overwrite") + REFS,
        FIRST + SECOND.replace("+12", "+0") + REFS,
        FIRST.replace("2026-11-22 15:04:05Z", "2026-11-22\n             15:04:05Z") + REFS,
    ],
)
def test_what_no_timing_explains_is_seen(printed: str) -> None:
    with pytest.raises(LookupError, match="was printed, but"):
        masked(settled(printed, {}), SNAPSHOTS.varying)


@pytest.mark.parametrize(
    ("ids", "beside", "is_good"),
    [
        ([2, 0, 1], [], True),
        ([0], [], True),
        ([0, 1, 2, 7], ["7"], True),
        ([0, 1, 1], [], False),
        ([0, 2], [], False),
        ([0, 1, 2], ["7"], False),
        ([7], ["7"], False),
        ([], [], False),
    ],
)
def test_missing_and_doubled_rows_are_seen_however_many_there_are(
    ids: list[int], beside: list[str], is_good: bool
) -> None:
    assert verdict(ids, beside).startswith("all ids" if is_good else "rows are missing")
