"""The table of mutants fits the code: `make mutants` runs it, here it only has to apply."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.run import SEEDS
from tests.mutants.table import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_breaks_what_is_there(mutant: Mutant) -> None:
    source = (ROOT / mutant.path).read_text()
    mutated = mutant.mutated(source)
    assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(source))
    assert mutant.killers
    for killer in mutant.killers:
        path = killer.split("::", 1)[0].split()[0]
        assert path == SEEDS or (ROOT / path).exists(), killer


def test_names_are_not_given_twice() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
