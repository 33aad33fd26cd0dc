"""The table of mutants fits the code: `make mutants` runs it, here it only has to apply."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.run import SEEDS, try_mutant
from tests.mutants.table import MUTANTS


def statements(source: str) -> list[str]:
    """Return the text of each statement of a module."""
    lines = source.split("\n")
    found = ast.parse(source).body
    return ["\n".join(lines[first_line(one) - 1 : one.end_lineno]) for one in found]


def first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


@cache
def statements_of(path: str) -> list[str]:
    """Return the statements of a file, once for all of its mutants."""
    return statements((ROOT / path).read_text())


@cache
def dumped(statement: str) -> str:
    return ast.dump(ast.parse(statement))


def is_same(before: list[str], after: list[str]) -> bool:
    """Return whether both are the same but for comments and layout. Only what differs as a text is
    looked at: a dump takes as long as ten parses.
    """
    pairs = zip(before, after, strict=False)
    return len(before) == len(after) and all(
        one == other or dumped(one) == dumped(other) for one, other in pairs
    )


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_breaks_what_is_there(mutant: Mutant) -> None:
    mutated = mutant.mutated((ROOT / mutant.path).read_text())
    assert not is_same(statements_of(mutant.path), statements(mutated))
    assert mutant.killers
    for killer in mutant.killers:
        path = killer.split("::", 1)[0].split()[0]
        assert path == SEEDS or (ROOT / path).exists(), killer


def test_names_are_not_given_twice() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_no_mutant_fails_for_a_name_that_is_not_there(tmp_path: Path) -> None:
    """Such a mutant is killed by every test that runs its line, whatever the test checks."""
    for mutant in MUTANTS:
        mutated = mutant.mutated((ROOT / mutant.path).read_text())
        (tmp_path / f"{mutant.name}.py").write_text(mutated)
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F821"]
    found = subprocess.run([*ruff, str(tmp_path)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


def test_a_mutant_survives_with_the_reason_why_its_killer_was_skipped(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("ONE = 1\n")
    (tmp_path / "test_code.py").write_text(
        "import pytest\n\n@pytest.mark.skip(reason='no server')\ndef test_one(): ...\n"
    )
    outcome = try_mutant(Mutant("one", "code.py", "= 1", "= 2", ("test_code.py",)), tmp_path)
    assert outcome.killer is None
    assert outcome.said.startswith("test_code.py:")
    assert outcome.said.endswith(": no server")
