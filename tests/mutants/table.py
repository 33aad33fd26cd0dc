"""The mutants: what a tired programmer might have written instead."""

from __future__ import annotations

from tests.mutants.mutant import Mutant
from tests.mutants.run import SEEDS

MUTANTS = (
    Mutant(
        "fingerprints_are_not_compared",
        "committer/plan/ledger.py",
        "    if landed.fingerprint == short_fingerprint(fingerprint.value):\n",
        "    if landed.fingerprint:\n",
        (SEEDS, "tests/plan/test_ledger.py"),
    ),
    Mutant(
        "ledger_is_a_high_water_mark",
        "committer/ledger_entry.py",
        "        return position >= 0 and epoch <= self.ranges[position][1]\n",
        "        return bool(self.ranges) and epoch <= self.ranges[-1][1]\n",
        (SEEDS, "tests/plan/test_ledger.py"),
    ),
)
