"""Operations that Iceberg Java has answered: what is packed, and how answers are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.operations.case import Answer, Case, read_cases
from tests.conformance.operations.findings import findings, line_findings
from tests.conformance.operations.lines import parse_line, read_lines
from tests.conformance.operations.named import BASE_STEPS
from tests.conformance.operations.random_cases import BASES, random_cases
from tests.support.builders.fixtures import operations_dir

LINES = {"pairs.txt": 1250, "pairs-rewrite-one.txt": 58, "sequences.txt": 500}
CASES = 660


def case_of(*steps: dict[str, object], spec: str = "p") -> Case:
    return Case("one", 2, spec, {}, steps)


def answer_of(**parts: object) -> Answer:
    """Return the answer to an append of one file."""
    snapshot = {
        "operation": "append",
        "sequence-number": 1,
        "summary": {"added-data-files": "1", "manifests-created": "1"},
        "manifests": [
            {
                "content": "data",
                "spec": 0,
                "own": True,
                "sequence-number": 1,
                "min-sequence-number": 1,
                "counts": [1, 0, 0, 10, 0, 0],
                "entries": [["added", "f1", True, 1, 1, None]],
            }
        ],
    }
    return {
        "code": "ok",
        "snapshot": snapshot | parts,
        "moved": {"main": 1},
        "last-sequence-number": 1,
    }


# --- What is packed ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINES)
def test_every_line_is_an_operation_after_another_with_an_answer(name: str) -> None:
    lines = list(read_lines(operations_dir() / name))
    assert len(lines) == LINES[name]
    for line in lines:
        assert len(line.case.steps) >= BASE_STEPS + 2
        assert all(one["code"] for one in line.wanted())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("4|append a|append a|ok", "expected format version"),
        ("2|append b|append a|ok", "not an operation"),
        ("2|append a|append a|fine", "not an answer"),
        ("2|ok", "not an operation"),
    ],
)
def test_a_line_that_is_none_is_refused_with_its_place(
    text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text(f"# what this is\n{text}\n")
    with pytest.raises(ValueError, match=rf"^pairs\.txt:2: {problem}"):
        list(read_lines(path))


def test_the_last_operation_was_built_on_the_base_and_the_others_each_on_the_one_before() -> None:
    line = parse_line("one", "2|x|cow a1 snap|cow a2 ser|rewrite a1|X-history")
    *base, first, second, expiry, last = line.case.steps
    assert [one["do"] for one in base] == ["append"] * 3
    assert [first["from"], second["from"], last["from"]] == [3, 4, 3]
    assert expiry == {"do": "expire"}
    assert [one["code"] for one in line.wanted()] == ["ok"] * 6 + ["history"]


def test_packed_cases_are_those_of_their_seed_and_have_an_answer_to_every_step() -> None:
    packed = list(read_cases(operations_dir() / "cases.jsonl"))
    assert [case.name for case, _ in packed] == [one.name for one in random_cases(7, CASES)]
    assert all(len(answers) == len(case.steps) for case, answers in packed)
    assert {case.version for case, _ in packed} == {1, 2, 3}
    assert {case.name.split()[1] for case, _ in packed} == set(BASES)


def test_java_has_refused_packed_cases_with_every_code() -> None:
    codes = {
        answer["code"]
        for _, answers in read_cases(operations_dir() / "cases.jsonl")
        for answer in answers
    }
    assert codes >= {"added", "deleted", "newdel", "filedel", "filepos", "exist", "missing", "dv"}
    assert codes >= {"history", "ancestor", "partial", "incompatible", "picked", "live"}
    assert not [code for code in codes if ":" in code], "an exception that has no code"


# --- Comparing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "parts"),
    [
        ("label", {"operation": "overwrite"}),
        ("numbers", {"sequence-number": 2}),
        ("summary", {"summary": {"added-data-files": "2", "manifests-created": "1"}}),
        ("manifests", {"summary": {"added-data-files": "1", "manifests-created": "2"}}),
        ("row ids", {"first-row-id": 7}),
        ("files", {"manifests": []}),
    ],
)
def test_answers_that_differ_in_one_part_differ_in_it_alone(
    what: str, parts: dict[str, object]
) -> None:
    case = case_of({"do": "append"})
    found = {one.what for one in findings(case, [answer_of()], [answer_of(**parts)])}
    assert what in found
    assert found <= {what, "manifests"}


def test_answers_after_another_outcome_are_not_compared() -> None:
    case = case_of({"do": "append"}, {"do": "append"})
    java = [answer_of() | {"code": "missing"}, answer_of(operation="delete")]
    (found,) = findings(case, java, [answer_of(), answer_of()])
    assert (found.what, found.number, found.java, found.frazil) == ("code", 1, "missing", "ok")


def test_a_line_differs_where_its_last_files_do() -> None:
    line = parse_line("one", "2|u|append a|append a|ok append {f2}")
    answers = [answer_of() for _ in line.case.steps]
    (found,) = line_findings(line, answers)
    assert (found.what, found.java, found.frazil) == ("live", ["f2"], ["f1"])
