"""`python -m tests.conformance [FOLDER]`: the suite on a folder, the packed fixtures by default.

A line for each table and file of vectors, the failures below it, and the sum as the last line.
Exit codes: 0 all passed, 1 some failed, 2 the folder holds nothing to check.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conformance.check import Check, Outcome
from tests.conformance.suite import Group, groups
from tests.support.builders.fixtures import fixtures_dir


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else fixtures_dir()
    try:
        found = groups(folder)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    total = Outcome()
    for group in found:
        outcome = run_group(group)
        print(f"{group.name}: {outcome.closing}", flush=True)
        for failure in outcome.shown:
            print(f"  FAILED {failure}", flush=True)
        total.passed += outcome.passed
        total.failures += outcome.failures
    print(total.closing)
    return 1 if total.failures else 0


def run_group(group: Group) -> Outcome:
    """Run all checks of a group; a group that cannot be read at all is one failed check."""
    outcome = Outcome()

    def run_all() -> None:
        outcome.run(group.checks())

    whole = Outcome()
    whole.run([Check(group.name, run_all)])
    outcome.failures += whole.failures
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
