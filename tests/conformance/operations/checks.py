"""The checks of a file of operations: one for each line of a pair or sequence, or for each case."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from tests.conformance.check import Check, Mismatch
from tests.conformance.operations.case import Answer, Case
from tests.conformance.operations.differences import difference_of
from tests.conformance.operations.findings import Finding, findings, line_findings
from tests.conformance.operations.frazil_table import frazil_answers
from tests.conformance.operations.lines import Line, read_lines


def operation_files(folder: Path) -> list[Path]:
    """Return the files with answers to operations in a folder."""
    return [*sorted(folder.glob("*.txt")), *sorted(folder.glob("*.jsonl"))]


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
    return _expected(line_findings(line, frazil_answers(line.case)))


def _check_case(case: Case, java: list[Answer]) -> Iterable[str]:
    return _expected(findings(case, java, frazil_answers(case)))


def _expected(found: Iterable[Finding]) -> list[str]:
    """Return the names of the differences. Errors: `Mismatch` for one that is not expected."""
    names = []
    for finding in found:
        difference = difference_of(finding)
        if difference is None:
            raise Mismatch(str(finding))
        names.append(difference.name)
    return names
