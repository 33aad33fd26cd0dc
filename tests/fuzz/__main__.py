"""`python -m tests.fuzz [--seconds S] [--seed N] [TARGET …]`: damaged input until the time is over.

Each fault is kept in `.cache/fuzz/<target>/`, named by its content, and reported once for each
kind. Exit codes: 0 none found, 1 some found, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import resource
import secrets
import sys
import time
from collections import Counter
from hashlib import sha256
from random import Random

from tests.fuzz.bounds import fault
from tests.fuzz.targets import TARGETS, Target
from tests.support.builders.fixtures import CACHE

FOLDER = CACHE / "fuzz"
_MEMORY_BYTES_MAX = 4 << 30


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=None, help="the same seed, the same inputs")
    options = parser.parse_args(arguments)
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    # A reader that asks for more gets a MemoryError, and that is a fault.
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))
    seed = secrets.randbits(32) if options.seed is None else options.seed
    names = options.targets or list(TARGETS)
    print(f"seed {seed}, {options.seconds / len(names):.0f} s for each target", flush=True)
    found = [run(TARGETS[name], options.seconds / len(names), seed) for name in names]
    print(f"{sum(found)} kinds of faults found")
    return 1 if any(found) else 0


def run(target: Target, seconds: float, seed: int) -> int:
    """Damage the target's honest input until the time is over; the number of kinds of faults."""
    seeds, chance = list(target.seeds()), Random(f"{target.name} {seed}")  # no secret
    kinds: Counter[str] = Counter()
    inputs, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        content = target.damage(chance.choice(seeds), chance)
        inputs += 1
        wrong = fault(target, content)
        if wrong is not None:
            kind = wrong[:60]
            if not kinds[kind]:
                print(f"  {target.name}: {wrong[:300]}\n    {_keep(target, content)}", flush=True)
            kinds[kind] += 1
    print(f"{target.name}: {inputs} inputs, {sum(kinds.values())} faults", flush=True)
    return len(kinds)


def _keep(target: Target, content: bytes) -> str:
    path = FOLDER / target.name / f"{sha256(content).hexdigest()[:16]}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return str(path.relative_to(CACHE.parent))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
