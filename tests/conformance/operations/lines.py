"""The files of pairs and sequences, `*.txt` in a folder `operations`, as cases with an answer.

`version|operation|operation|answer`, or `version|base|operation|…|answer`. A line that opens with
`#` says nothing. The README beside the files has the form of answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.operations.case import OK, Answer, Case, Step, live_names, read_cases
from tests.conformance.operations.named import BASE_STEPS, base_case, is_named, named_step
from tests.support.builders.fixtures import operations_dir

# The answers of Iceberg Java to every step of the lines, in the form of cases.
ANSWERS = "answers-to-lines.jsonl"
_BASES = {"p": True, "x": True, "u": False}
_TAGS = ("A", "C", "D")
_ANSWER = re.compile(
    r"ok( (?P<label>\w+) \{(?P<live>[^}]*)\})?(?P<unreadable> UNREADABLE)?"
    r"|X-(?P<code>[a-z-]+)"
    r"|first (?P<first>\d+) X-(?P<first_code>[a-z-]+)"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line: the case, and the answer as it stands there."""

    case: Case
    answer: str

    def wanted(self) -> Iterator[dict[str, Any]]:
        """Yield what the line says of each step, up to the one that fails."""
        said = _ANSWER.fullmatch(self.answer)
        assert said is not None
        first = BASE_STEPS + int(said["first"]) if said["first"] else None
        for number, _ in enumerate(self.case.steps, start=1):
            if number == first:
                yield {"code": said["first_code"]}
                return
            if number < len(self.case.steps):
                yield {"code": OK}
        if said["code"]:
            yield {"code": said["code"]}
        elif said["label"]:
            live = said["live"].split(",") if said["live"] else []
            is_readable = said["unreadable"] is None
            yield {"code": OK, "readable": is_readable, "label": said["label"], "live": live}
        else:
            yield {"code": OK}

    def mismatches(self, answers: Sequence[Answer]) -> Iterator[str]:
        """Yield where answers to the steps are not what the line says."""
        for number, (parts, answer) in enumerate(zip(self.wanted(), answers, strict=False), 1):
            for what, stated in parts.items():
                has_part = what == "code" or answer["code"] == OK
                actual = self._part(what, answer) if has_part else None
                if actual != stated:
                    place = f"step {number} ({self.case.steps[number - 1]['do']}): {what}"
                    yield f"{place}: found {actual}, the line has {stated}"

    @staticmethod
    def _part(what: str, answer: Answer) -> Any:
        """Return a part of an answer in the form of `wanted`."""
        match what:
            case "code":
                return answer["code"]
            case "label":
                return answer["snapshot"]["operation"]
            case "live":
                return sorted(live_names(answer))
        return not answer.get("unreadable", False)


@cache
def packed_answers() -> Mapping[str, list[Answer]]:
    """Return Java's answers to every step of the packed lines, by the digest of table and steps."""
    return {case.digest: answers for case, answers in read_cases(operations_dir() / ANSWERS)}


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a file. Errors: `ValueError` naming the line that is none."""
    for number, text in enumerate(path.read_text().splitlines(), start=1):
        if text.startswith("#") or not text:
            continue
        try:
            yield parse_line(f"{path.name}:{number}", text)
        except ValueError as error:
            raise ValueError(f"{path.name}:{number}: {error}") from None


def parse_line(name: str, text: str) -> Line:
    """Errors: `ValueError`."""
    version, *names, answer = text.split("|")
    if version not in ("2", "3"):
        raise ValueError(f"expected format version 2 or 3, found {version!r}")
    if not _ANSWER.fullmatch(answer):
        raise ValueError(f"not an answer: {answer!r}")
    kind = names.pop(0) if names and names[0] in _BASES else "p"
    unknown = [one for one in names if not is_named(one)]
    if unknown or not names:
        raise ValueError(f"not an operation: {unknown}")
    steps = _steps(int(version), kind, names)
    case = base_case(f"{name} {text}", int(version), partitioned=_BASES[kind], then=tuple(steps))
    return Line(case, answer)


def _steps(version: int, kind: str, names: list[str]) -> Iterator[Step]:
    """Yield each but the last built on the state before it, the last built on the base."""
    partitioned = _BASES[kind]
    for number, (name, tag) in enumerate(zip(names[:-1], _TAGS, strict=False)):
        start = BASE_STEPS + number
        yield named_step(name, version=version, partitioned=partitioned, start=start, tag=tag)
    if kind == "x":
        yield {"do": "expire"}
    yield named_step(names[-1], version=version, partitioned=partitioned, start=BASE_STEPS, tag="B")
