"""The differences that are expected, each by its steps and both answers: `expected.txt`.

`make expected-differences` writes the file anew from the packed answers: its changes are reviewed
as those of code are. It refuses a difference that no kind takes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.conformance.check import Mismatch
from tests.conformance.operations.case import Answer, Case, read_cases
from tests.conformance.operations.differences import DIFFERENCES, difference_of
from tests.conformance.operations.findings import Finding, Implementation, findings
from tests.conformance.operations.frazil_table import CaseRun
from tests.conformance.operations.lines import packed_answers, read_lines
from tests.support.builders.fixtures import operations_dir

EXPECTED = Path(__file__).with_name("expected.txt")
_HEADER = """\
# Where Frazil differs from Iceberg Java as expected: a line for each difference, below the
# name of its kind, whose reason is in differences.py. In a line: the digest of table and steps, the
# digest of both answers, the case, the step, what differs, and of it what Java <> what Frazil says.
# Written by `make expected-differences`.
"""
_KIND = "= "


def check_case(case: Case, java: Sequence[Answer], frazil: Implementation) -> list[str]:
    """Return the kinds of the differences of a case, all of which are expected.

    Errors: `Mismatch` for one that is not, or one that is expected and does not occur.
    """
    expected = dict(expected_differences().get(case.digest, {}))
    names = []
    for finding in findings(case, java, frazil):
        name = expected.pop(finding.key, None)
        if name is None:
            raise Mismatch(f"{finding}; not in {EXPECTED.name}: {finding.key}")
        if name != _kind(finding):
            raise Mismatch(f"{finding}; not of the kind {name!r} in differences.py")
        names.append(name)
    for key in expected:
        raise Mismatch(f"nothing differs any more as {EXPECTED.name} expects: {key}")
    return names


def _kind(finding: Finding) -> str | None:
    difference = difference_of(finding)
    return None if difference is None else difference.name


@cache
def expected_differences() -> Mapping[str, Mapping[str, str]]:
    """Return the kind of every expected difference by its key, for the digest of each case."""
    kind, found = "", defaultdict[str, dict[str, str]](dict)
    for text in EXPECTED.read_text().splitlines():
        if text.startswith(_KIND):
            kind = text.removeprefix(_KIND)
        elif text and not text.startswith("#"):
            found[text.partition(" ")[0]][text] = kind
    return found


def unused(kinds: Collection[str]) -> list[str]:
    """Return the kinds of differences that are not among these."""
    return [one.name for one in DIFFERENCES if one.name not in kinds]


def unpacked() -> list[str]:
    """Return the expected differences of cases that are not packed."""
    packed = {case.digest for case, _ in packed_cases()}
    expected = expected_differences()
    return [key for case in expected.keys() - packed for key in expected[case]]


def packed_cases() -> Iterator[tuple[Case, list[Answer]]]:
    """Yield all packed lines and cases, with Java's answers to every step."""
    for path in sorted(operations_dir().glob("*.txt")):
        for line in read_lines(path):
            yield line.case, packed_answers()[line.case.digest]
    yield from read_cases(operations_dir() / "cases.jsonl")


def _print(differences: Iterable[Finding]) -> str:
    """Print the file. Errors: `Mismatch` for a difference that no kind takes."""
    by_kind: dict[str, set[str]] = {one.name: set() for one in DIFFERENCES}
    for finding in differences:
        kind = _kind(finding)
        if kind is None:
            raise Mismatch(f"no kind of difference takes this one: {finding.key}")
        by_kind[kind].add(finding.key)
    groups = (
        f"\n{_KIND}{kind}\n" + "".join(f"{key}\n" for key in sorted(keys, key=_place))
        for kind, keys in by_kind.items()
    )
    return _HEADER + "".join(groups)


def _place(key: str) -> str:
    """Return what follows the digests: a reader finds the cases in their order."""
    return key.split(" ", 2)[2]


def main() -> None:
    differences = (
        finding for case, java in packed_cases() for finding in findings(case, java, CaseRun(case))
    )
    EXPECTED.write_text(_print(differences))


if __name__ == "__main__":
    main()
