"""Iceberg Java says of operations what is packed as its answers."""

from __future__ import annotations

import pytest

from tests.conformance.operations.case import read_cases
from tests.conformance.operations.findings import line_findings
from tests.conformance.operations.java import java_answers
from tests.conformance.operations.lines import read_lines
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
        assert list(line_findings(line, answers)) == [], line.case.name
