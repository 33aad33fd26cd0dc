"""The mutants: what a tired programmer might have written instead."""

from __future__ import annotations

from tests.mutants.adapters import ADAPTERS
from tests.mutants.decisions import DECISIONS
from tests.mutants.format import FORMAT
from tests.mutants.mutant import Mutant
from tests.mutants.process import PROCESS
from tests.mutants.protocol import PROTOCOL
from tests.mutants.upkeep import UPKEEP

MUTANTS: tuple[Mutant, ...] = (
    *PROTOCOL,
    *UPKEEP,
    *DECISIONS,
    *ADAPTERS,
    *FORMAT,
    *PROCESS,
)
