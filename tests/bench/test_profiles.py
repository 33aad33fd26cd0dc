"""Folded stacks, added up by function."""

from __future__ import annotations

from bench.profiles import parse_stacks

STACKS = (
    "run (asyncio/runners.py);round (/any/where/committer/service/table/table_committer.py:12);"
    "loads (/any/lib/python3.11/site-packages/orjson/__init__.py:3) 3",
    "run (asyncio/runners.py);round (/any/where/committer/service/table/table_committer.py:90) 1",
)


def test_samples_are_added_up_over_lines_of_one_function() -> None:
    profile = parse_stacks(STACKS)
    ours = "committer/service/table/table_committer.py:round"
    assert profile.samples == 4
    assert profile.itself == {"orjson/__init__.py:loads": 3, ours: 1}
    assert profile.ours == {ours: 4}
    assert profile.anywhere[ours] == 4


def test_a_function_that_calls_itself_counts_once() -> None:
    profile = parse_stacks(["walk (committer/a.py:1);walk (committer/a.py:2) 5"])
    assert profile.anywhere == {"committer/a.py:walk": 5}


def test_a_printed_profile_names_no_folder_of_the_machine() -> None:
    text = parse_stacks(STACKS).print()
    assert "/any/" not in text
    assert "75.0%  orjson/__init__.py:loads" in text
