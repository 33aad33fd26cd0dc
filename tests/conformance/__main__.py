"""`python -m tests.conformance [FOLDER]`: the suite on a folder, the packed fixtures by default.

A line for each table, file of vectors and file of operations, below it the failures and how many
differ from Iceberg Java as they are expected to, and the sum as the last line.
Exit codes: 0 all passed, 1 some failed, 2 the folder holds nothing to check.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conformance.check import Check, Outcome
from tests.conformance.operations.expected import unpacked, unused
from tests.conformance.suite import Group, groups
from tests.support.builders.fixtures import fixtures_dir, operations_dir


def main(arguments: list[str]) -> int:
    folders = [Path(arguments[0])] if arguments else [fixtures_dir(), operations_dir()]
    try:
        found = [group for folder in folders for group in groups(folder)]
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    total = Outcome()
    for group in found:
        outcome = run_group(group)
        show(group.name, outcome)
        total.add(outcome)
    if not arguments:
        check_used(total)
    print(total.closing)
    return 1 if total.failures else 0


def check_used(total: Outcome) -> None:
    """Count each expected difference of a case that is not packed as a failure, and each kind
    that no packed operation has.
    """
    for name in (*unused(total.differences), *unpacked()):
        total.failures.append(name)
        print(f"  FAILED nothing differs any more as expected: {name}", flush=True)


def show(name: str, outcome: Outcome) -> None:
    print(f"{name}: {outcome.closing}", flush=True)
    for failure in outcome.shown:
        print(f"  FAILED {failure}", flush=True)
    for difference, count in sorted(outcome.differences.items()):
        print(f"  {count} differ from Java as expected: {difference}", flush=True)


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
