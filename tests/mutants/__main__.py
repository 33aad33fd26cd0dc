"""`python -m tests.mutants [NAME…]`: break the committer in many small ways, and see each noticed.

Prints a line for each mutant; exit code 1 if one survives, 2 if a name is unknown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from os import cpu_count
from pathlib import Path

from tests.mutants.mutant import copy_tree
from tests.mutants.run import Outcome, try_mutant
from tests.mutants.table import MUTANTS


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--jobs", type=int, default=cpu_count() or 1, help="how many at a time")
    options = parser.parse_args(arguments)
    known = {mutant.name: mutant for mutant in MUTANTS}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        print(f"no mutant is called {', '.join(unknown)}", file=sys.stderr)
        return 2
    chosen = [known[name] for name in options.names] or list(MUTANTS)
    width = max(len(mutant.name) for mutant in chosen)
    killed = 0
    with tempfile.TemporaryDirectory(prefix="frazil-unbroken-") as unbroken:
        copy_tree(Path(unbroken))
        with ThreadPoolExecutor(options.jobs) as pool:
            tried = [pool.submit(try_mutant, mutant, Path(unbroken)) for mutant in chosen]
            for done in as_completed(tried):
                killed += done.result().killer is not None
                print(_line(done.result(), width), flush=True)
    print(f"{killed} of {len(chosen)} mutants killed")
    return 0 if killed == len(chosen) else 1


def _line(outcome: Outcome, width: int) -> str:
    name, seconds = outcome.mutant.name, f"{outcome.duration_s:5.1f} s"
    if outcome.killer is None:
        skipped = f" (skipped: {outcome.said})" if outcome.said else ""
        return (
            f"{name:<{width}}  {seconds}  SURVIVED {' and '.join(outcome.mutant.killers)}{skipped}"
        )
    return f"{name:<{width}}  {seconds}  killed by {outcome.said[:160]}"


if __name__ == "__main__":
    sys.exit(main())
