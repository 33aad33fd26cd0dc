"""Runs what should notice a mutant, in a process of its own, on a broken copy of the tree."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutant import Mutant, copy_tree

SEEDS = "seeds"
# The first seeds, as `make test` runs them; the one that fails first ends it.
SEED_COMMAND = ("-m", "tests.simulation", "--seeds", "400", "--first-seed", "1", "--jobs", "1")
PYTEST_COMMAND = ("-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider")
SECONDS_MAX = 300.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant. `killer` is None if it has survived; `said`: the last line of it."""

    mutant: Mutant
    killer: str | None
    said: str
    duration_s: float


def try_mutant(mutant: Mutant) -> Outcome:
    """Break a copy, and run one killer after another until one notices."""
    started_s = time.monotonic()
    said = ""
    with tempfile.TemporaryDirectory(prefix="frazil-mutant-") as name:
        copy_tree(Path(name))
        mutant.break_in(Path(name))
        for killer in mutant.killers:
            code, said = _run(killer, Path(name))
            if code:
                return Outcome(mutant, killer, said, time.monotonic() - started_s)
    return Outcome(mutant, None, said, time.monotonic() - started_s)


def _run(killer: str, folder: Path) -> tuple[int, str]:
    command = SEED_COMMAND if killer == SEEDS else (*PYTEST_COMMAND, *killer.split())
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"did not end within {SECONDS_MAX:g} s"
    return _judged(done.returncode, done.stdout + done.stderr, killer)


def _judged(code: int, output: str, killer: str) -> tuple[int, str]:
    """A test that fails, or a seed, is a kill. Whatever else ends badly is a mistake in the table.

    Errors: `RuntimeError`.
    """
    lines = [line for line in output.splitlines() if line.strip()]
    if code not in (0, 1) or "no tests ran" in output or "ModuleNotFoundError" in output:
        raise RuntimeError(f"`{killer}` ended with {code}:\n" + "\n".join(lines[-15:]))
    return code, _telling(lines)


def _telling(lines: Sequence[str]) -> str:
    """The line that says what was noticed."""
    for line in lines:
        if line.startswith(("FAILED", "E  ", "violated")):
            return line
    return lines[-1] if lines else ""
