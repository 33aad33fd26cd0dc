"""Operations that Iceberg Java has answered: what is packed, and how answers are compared."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pytest

from tests.conformance.__main__ import main, run_group
from tests.conformance.check import Mismatch, Outcome
from tests.conformance.operations.case import Answer, Case, Step, live_names, read_cases
from tests.conformance.operations.checks import operation_checks, operation_files
from tests.conformance.operations.differences import DIFFERENCES
from tests.conformance.operations.directed_cases import directed_cases
from tests.conformance.operations.expected import (
    check_case,
    expected_differences,
    packed_cases,
    unpacked,
    unused,
)
from tests.conformance.operations.findings import findings
from tests.conformance.operations.frazil_table import CaseRun, frazil_answers, together
from tests.conformance.operations.lines import packed_answers, parse_line, read_lines
from tests.conformance.operations.named import BASE_STEPS
from tests.conformance.operations.plants import PLANTS, score
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
    found = {one.what for one in findings(case, [answer_of()], Answers(answer_of(**parts)))}
    assert what in found
    assert found <= {what, "manifests"}


class Answers:
    """Gives these answers, and notes after which steps it was restarted."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = iter(answers)
        self.taken = 0
        self.restarts: list[int] = []

    def take(self, step: Step) -> Answer:
        self.taken += 1
        return next(self._answers)

    def restart(self, answer: Answer, step: Step) -> None:
        self.restarts.append(self.taken)


def test_steps_after_another_outcome_are_compared_on_java_s_table() -> None:
    case = case_of({"do": "append"}, {"do": "append"}, {"do": "append"})
    java = [answer_of() | {"code": "missing"}, answer_of(operation="delete"), answer_of()]
    frazil = Answers(answer_of(), answer_of(), answer_of())
    found = [(one.what, one.number, one.java, one.frazil) for one in findings(case, java, frazil)]
    assert found == [("code", 1, "missing", "ok"), ("label", 2, "delete", "append")]
    assert frazil.restarts == [1, 2]


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_table_that_was_restarted_is_the_one_that_the_answers_describe() -> None:
    """Read back from its manifests, in every thirtieth case."""
    for case, java in islice(packed_cases(), 5, None, 30):
        run = CaseRun(case)
        for step, answer in zip(case.steps, java, strict=True):
            run.take(step)
            run.restart(answer, step)
            assert run.described() == answer.get("snapshot"), case.name


def test_the_key_of_a_difference_is_of_its_steps_and_of_both_answers() -> None:
    case, java = case_of({"do": "append"}), answer_of() | {"code": "missing"}

    def key(case: Case, java: Answer, frazil: Answer) -> str:
        (finding,) = findings(case, [java], Answers(frazil))
        return finding.key

    keys = {
        key(case, java, answer_of()),
        key(case_of({"do": "append"}, spec="none"), java, answer_of()),
        key(case_of({"do": "append", "from": 0}), java, answer_of()),
        key(case, answer_of() | {"code": "exist"}, answer_of()),
        key(case, java, answer_of() | {"code": "exist"}),
        key(case, java, answer_of(operation="overwrite")),
    }
    assert len(keys) == 6


def test_a_line_differs_where_its_last_files_do() -> None:
    line = parse_line("one", "2|u|append a|append a|ok append {f2}")
    (mismatch,) = line.mismatches([answer_of() for _ in line.case.steps])
    assert mismatch == "step 5 (append): live: found ['f1'], the line has ['f2']"


# --- Frazil --------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.heavy
@pytest.mark.timeout(900)
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
    assert "compared with the packed answers of Iceberg Java" in out
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
    line = parse_line("one", f"2|{landed}|mor DELETE a1 snap|ok")
    java = packed_answers()[line.case.digest]
    assert check_case(line.case, java, CaseRun(line.case)) == ([] if name is None else [name])


# --- What the comparison notices -----------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_wrong_answers_of_every_kind_are_noticed_in_a_sample() -> None:
    assert_noticed(every=60)


@pytest.mark.heavy
@pytest.mark.timeout(1_200)
def test_wrong_answers_of_every_kind_are_noticed() -> None:
    assert_noticed(every=1)


def assert_noticed(*, every: int) -> None:
    total = score(islice(packed_cases(), 0, None, every))
    assert total.below_minimum() == []
    assert total.planted.keys() == PLANTS.keys()


@pytest.mark.parametrize("name", LINES)
def test_a_line_that_takes_a_refusal_for_accepted_is_noticed(name: str, tmp_path: Path) -> None:
    lines = (operations_dir() / name).read_text().splitlines()
    refused = [line for line in lines if re.search(r"\|X-[a-z]+$", line)][::20]
    (tmp_path / name).write_text("".join(line.rpartition("|")[0] + "|ok\n" for line in refused))
    outcome = Outcome()
    outcome.run(operation_checks(tmp_path / name))
    assert (outcome.passed, len(outcome.failures)) == (0, len(refused))


def test_an_expected_difference_that_does_not_occur_is_a_failure_of_its_case() -> None:
    """The case in which Frazil answers as Java does is the one that would go unnoticed."""
    line = parse_line("one", "2|mor UPDATE a1 snap|mor DELETE a1 snap|ok")
    java = packed_answers()[line.case.digest]
    with pytest.raises(
        Mismatch, match=r"nothing differs any more as expected\.txt expects: .*newdel"
    ):
        check_case(line.case, java, Answers(*java))


def test_a_difference_that_has_the_shape_of_an_expected_one_is_a_failure_elsewhere() -> None:
    line = parse_line("one", "2|mor UPDATE a1 snap|mor DELETE a1 snap|ok")
    java = packed_answers()[line.case.digest]
    longer = Case("longer", 2, "p", {}, (*line.case.steps, {"do": "rewrite-manifests"}))
    with pytest.raises(Mismatch, match=r"code: found newdel, Java has ok; not in expected\.txt"):
        check_case(longer, [*java, java[-1]], CaseRun(longer))


def test_no_expected_difference_is_of_a_case_that_is_not_packed() -> None:
    assert unpacked() == []


def test_an_expected_difference_that_nothing_has_any_more_is_a_failure() -> None:
    kinds = {kind for case in expected_differences().values() for kind in case.values()}
    assert unused(kinds) == []
    assert unused([one.name for one in DIFFERENCES[1:]]) == [DIFFERENCES[0].name]


def test_the_page_has_each_difference_with_its_reason() -> None:
    rows = [f"| {one.name} | {one.reason} |" for one in DIFFERENCES]
    assert "\n".join(rows) in (ROOT / "docs/format.md").read_text()
