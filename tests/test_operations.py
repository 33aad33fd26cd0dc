"""Operations that Iceberg Java has answered: what is packed, and how answers are compared."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.conformance.__main__ import main, run_group
from tests.conformance.check import Outcome
from tests.conformance.operations.case import Answer, Case, live_names, read_cases
from tests.conformance.operations.checks import operation_checks, operation_files
from tests.conformance.operations.differences import DIFFERENCES, difference_of, unused
from tests.conformance.operations.directed_cases import directed_cases
from tests.conformance.operations.findings import findings, line_findings
from tests.conformance.operations.frazil_table import frazil_answers, together
from tests.conformance.operations.lines import parse_line, read_lines
from tests.conformance.operations.named import BASE_STEPS
from tests.conformance.operations.random_cases import BASES, random_cases
from tests.conformance.suite import groups
from tests.support.builders.fixtures import operations_dir

ROOT = Path(__file__).parent.parent
LINES = {"pairs.txt": 1250, "pairs-rewrite-one.txt": 58, "sequences.txt": 500}
RANDOM_CASES = 648


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
    made = [*directed_cases(), *random_cases(7, RANDOM_CASES)]
    assert [case for case, _ in packed] == made
    assert all(len(answers) == len(case.steps) for case, answers in packed)
    assert {case.version for case, _ in packed} == {1, 2, 3}
    assert {case.name.split()[1] for case, _ in packed} >= set(BASES)


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


# --- Frazil --------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_frazil_answers_as_java_but_where_it_is_expected_not_to() -> None:
    total = Outcome()
    for group in groups(operations_dir()):
        outcome = run_group(group)
        assert outcome.shown == [], group.name
        total.add(outcome)
    assert total.passed == sum(LINES.values()) + len(list(directed_cases())) + RANDOM_CASES
    assert unused(total.differences) == []


def test_frazil_answers_some_of_the_lines_and_cases_as_java() -> None:
    for path in operation_files(operations_dir()):
        outcome = Outcome()
        outcome.run(islice(operation_checks(path), 7, None, 200))
        assert outcome.shown == [], path.name


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_operations_of_one_batch_have_the_outcome_that_they_have_one_after_another() -> None:
    for line in islice(read_lines(operations_dir() / "pairs.txt"), 3, None, 10):
        answers = frazil_answers(line.case)
        codes, live = together(line.case, 2)
        assert codes == [one["code"] for one in answers[-2:]], line.case.name
        last = next(one for one in reversed(answers) if "snapshot" in one)
        assert live == live_names(last), line.case.name


def test_an_answer_that_is_not_java_s_is_a_failure_that_names_line_and_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs.txt").write_text("2|append a|append a|ok append {A,B,a1,a2}\n")
    assert main([str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "FAILED pairs.txt:1 2|append a|append a|ok append {A,B,a1,a2}: step 5 (append)" in out
    assert out.endswith("0 passed, 1 failed\n")


@pytest.mark.parametrize(
    ("landed", "name"),
    [
        ("mor UPDATE a1 snap", "DELETE beside an UPDATE in v2"),
        ("mor DELETE a1 snap", None),
        ("upsert eq a", None),
        ("append a", None),
    ],
)
def test_a_delete_beside_an_update_is_a_difference_of_its_own(
    landed: str, name: str | None
) -> None:
    line = parse_line("one", f"2|{landed}|mor DELETE a1 snap|ok delete {{}}")
    found = list(line_findings(line, frazil_answers(line.case)))
    differences = [difference_of(one) for one in found if one.what == "code"]
    assert [one and one.name for one in differences] == ([] if name is None else [name])


def test_an_expected_difference_that_nothing_has_any_more_is_a_failure() -> None:
    assert unused([one.name for one in DIFFERENCES]) == []
    assert unused([one.name for one in DIFFERENCES[1:]]) == [DIFFERENCES[0].name]


def test_the_page_has_each_difference_with_its_reason() -> None:
    rows = [f"| {one.name} | {one.reason} |" for one in DIFFERENCES]
    assert "\n".join(rows) in (ROOT / "docs/format.md").read_text()
