"""The checks of a file of operations: one for each line of a pair or sequence, or for each case."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from tests.conformance.check import Check, Mismatch
from tests.conformance.operations.case import Answer, Case
from tests.conformance.operations.expected import check_case
from tests.conformance.operations.frazil_table import CaseRun, frazil_answers
from tests.conformance.operations.lines import ANSWERS, Line, packed_answers, read_lines


def operation_files(folder: Path) -> list[Path]:
    """Return the files with answers to operations in a folder, those to lines excepted."""
    cases = (path for path in folder.glob("*.jsonl") if path.name != ANSWERS)
    return [*sorted(folder.glob("*.txt")), *sorted(cases)]


def operation_checks(path: Path) -> Iterator[Check]:
    """Yield a check for each line; its notes are the expected differences that it has."""
    if path.suffix == ".txt":
        for line in read_lines(path):
            yield Check(line.case.name, partial(_check_line, line))
    else:
        for text in path.read_text().splitlines():
            document = json.loads(text)
            case = Case.parse(document)
            yield Check(case.name, partial(_check_case, case, document["answers"]))


def _check_line(line: Line) -> Iterable[str]:
    """Check a line against Java's answers to all of its steps, and Frazil against these.

    Of a line whose steps are not packed, nothing but its text is there to compare: no difference is
    expected.
    """
    java = packed_answers().get(line.case.digest)
    for mismatch in line.mismatches(java or frazil_answers(line.case)):
        whose = "Frazil's" if java is None else "the packed answers of Iceberg Java"
        raise Mismatch(f"{mismatch}; compared with {whose}")
    return () if java is None else _check_case(line.case, java)


def _check_case(case: Case, java: list[Answer]) -> Iterable[str]:
    return check_case(case, java, CaseRun(case))
