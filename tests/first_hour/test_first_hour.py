"""Every block of every page is walked, or left out with a reason; and what differs is seen."""

from __future__ import annotations

import pytest

from tests.first_hour.blocks import code_blocks, pages
from tests.first_hour.hour import WrongTurn, an_hour
from tests.first_hour.steps import Step, Type, Walk
from tests.first_hour.transcript import settled
from tests.first_hour.walks import WALKS


def test_every_page_is_walked() -> None:
    assert sorted(walk.page for walk in WALKS) == sorted(pages())


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name)
def test_every_block_of_a_page_is_walked_or_left_out_once(walk: Walk) -> None:
    assert sorted(walk.blocks()) == list(range(1, len(code_blocks(walk.page)) + 1))


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


def test_a_terminal_has_80_columns() -> None:
    lines = walked(Type(command="stty size", terminal=True))
    assert lines[-1] == "   24 80"


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ("at 2026-11-22 15:04:05.123Z", "at <time>"),
        ("took 1.25 s, 12 ms", "took <duration>, <duration>"),
        ("3fa85f64-5717-4562-b3fc-2c963f66afa6.parquet", "<uuid>.parquet"),
        ("snapshot 7219347923847293847   3 files", "snapshot <id>  3 files"),
        ("\x1b[1mbold\x1b[0m", "bold"),
        ("2 requests of 3 producers", "2 requests of 3 producers"),
    ],
)
def test_what_differs_from_run_to_run_is_left_out(printed: str, kept: str) -> None:
    assert settled(printed, {}) == [kept]
