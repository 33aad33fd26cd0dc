"""Iceberg Java says of operations what is packed as its answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conformance.operations.case import Case, Step, read_cases
from tests.conformance.operations.differences import difference_of
from tests.conformance.operations.findings import Finding
from tests.conformance.operations.frazil_table import frazil_answers
from tests.conformance.operations.java import java_answers
from tests.conformance.operations.lines import packed_answers, read_lines
from tests.support.builders.fixtures import operations_dir

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
# Of lines and cases: Java takes 50 ms for a step.
ASKED_EVERY = 30


def test_java_answers_the_packed_cases_as_they_are_packed() -> None:
    asked = list(read_cases(operations_dir() / "cases.jsonl"))[::ASKED_EVERY]
    answers = java_answers([case for case, _ in asked])
    for (case, packed), answered in zip(asked, answers, strict=True):
        assert answered == packed, case.name


@pytest.mark.parametrize("name", ["pairs.txt", "pairs-rewrite-one.txt", "sequences.txt"])
def test_java_answers_the_steps_of_a_line_as_the_line_says(name: str) -> None:
    lines = list(read_lines(operations_dir() / name))[::ASKED_EVERY]
    for line, answers in zip(lines, java_answers([one.case for one in lines]), strict=True):
        assert list(line.mismatches(answers)) == [], line.case.name
        assert answers == packed_answers()[line.case.digest], line.case.name


def test_what_frazil_says_without_the_history_is_what_java_says_with_it() -> None:
    """Java refuses each of these, as their start has expired: ask it without the expiry."""
    lines = list(read_lines(operations_dir() / "sequences.txt"))
    expired = [one.case for one in lines if one.answer in ("X-history", "X-ancestor")]
    assert len(expired) == 49
    whole = [replace(case, steps=_without_expiry(case)) for case in expired]
    for case, java in zip(expired, java_answers(whole), strict=True):
        frazil, number = frazil_answers(case), len(case.steps)
        codes = java[-1]["code"], frazil[-1]["code"]
        # Both refuse where one of them lacks the history: it says so, or names what it sees.
        if codes[0] == codes[1] or "ok" not in codes:
            continue
        difference = difference_of(Finding(case, number, "code", *codes, codes, frazil))
        assert difference is not None, (case.name, codes)
        assert difference.name != "start has expired", (case.name, codes)


def _without_expiry(case: Case) -> tuple[Step, ...]:
    return tuple(step for step in case.steps if step["do"] != "expire")
