"""Runs what should notice a mutant, in a process of its own, on a broken copy of the tree.

A test that kills a mutant must pass on the unbroken tree: so it runs there as well.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutant import Mutant

SEEDS = "seeds"
SEEDS_MAX = 400
PYTEST_COMMAND = ("-m", "pytest", "-q", "-x", "-rfEs", "--no-header", "-p", "no:cacheprovider")
SECONDS_MAX = 1_800.0
_SEEDS = re.compile(r"seeds(?: from (\d+))?")
_SEED_FAILED = re.compile(r"^seed (\d+) fails: (.*)$", re.MULTILINE)
_TEST_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - (.*))?$", re.MULTILINE)
_TEST_SKIPPED = re.compile(r"^SKIPPED \[\d+\] (.*)$", re.MULTILINE)


def seeds_from(first: int) -> str:
    """Return the killer that is the simulation, from a seed that is known to fail soon."""
    return f"{SEEDS} from {first}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a mutant. `killer` is None if it has survived; `said`: the failure, or which
    tests were skipped that might have noticed.
    """

    mutant: Mutant
    killer: str | None
    said: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class Alarm:
    """The first seed or test that has failed, and what it said."""

    name: str
    said: str


def try_mutant(mutant: Mutant, unbroken: Path) -> Outcome:
    """Break a copy of the tree, and run one killer after another until one notices."""
    started_s = time.monotonic()
    skipped: list[str] = []
    with tempfile.TemporaryDirectory(prefix="frazil-mutant-") as name:
        broken = Path(name) / "broken"
        shutil.copytree(unbroken, broken, symlinks=True)
        mutant.break_in(broken)
        for killer in mutant.killers:
            seeds = _SEEDS.fullmatch(killer)
            alarm = (
                _seeds(int(seeds[1] or 1), broken, unbroken)
                if seeds
                else _tests(shlex.split(killer), broken, unbroken, skipped)
            )
            if alarm is not None:
                said = f"{alarm.name}: {alarm.said}"
                return Outcome(mutant, killer, said, time.monotonic() - started_s)
    return Outcome(mutant, None, "; ".join(skipped), time.monotonic() - started_s)


def _seeds(first: int, broken: Path, unbroken: Path) -> Alarm | None:
    """Return the first seed that fails, and does not on the unbroken tree."""
    end = first + SEEDS_MAX
    while first < end:
        output = _run(_simulation(first, end - first), broken)
        found = _SEED_FAILED.search(output) if output is not None else None
        if found is None:
            return None
        seed = int(found[1])
        if not _SEED_FAILED.search(_run(_simulation(seed, 1), unbroken) or ""):
            return Alarm(f"seed {seed}", found[2])
        first = seed + 1
    return None


def _simulation(first: int, count: int) -> Sequence[str]:
    options = f"--first-seed {first} --seeds {count} --jobs 1 --failures 1"
    return "-m", "tests.simulation", *options.split()


def _tests(
    arguments: Sequence[str], broken: Path, unbroken: Path, skipped: list[str]
) -> Alarm | None:
    """Return the first test that fails, and not on the unbroken tree; note the skipped ones."""
    output = _run((*PYTEST_COMMAND, *arguments), broken) or ""
    skipped += _TEST_SKIPPED.findall(output)
    found = _TEST_FAILED.search(output)
    if found is None or _TEST_FAILED.search(_run((*PYTEST_COMMAND, found[1]), unbroken) or ""):
        return None
    return Alarm(found[1].rpartition("::")[2], found[2] or "")


def _run(command: Sequence[str], folder: Path) -> str | None:
    """Run a command, and return its output; None where it timed out, which proves nothing.

    Errors: `RuntimeError` for a mistake in the table of mutants.
    """
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "COLUMNS": "400",
    }
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
        return None
    output = done.stdout + done.stderr
    has_failed = _SEED_FAILED.search(output) or _TEST_FAILED.search(output)
    if done.returncode not in (0, 1) or (done.returncode == 1 and not has_failed):
        last = "\n".join(output.splitlines()[-15:])
        raise RuntimeError(f"`{' '.join(command)}` ended with {done.returncode}:\n{last}")
    return output
