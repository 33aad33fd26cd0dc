"""The first hour of a new user: the README and each how-to, done as they stand there.

    python -m tests.first_hour [--update] [PAGE …]

Prints one line a page, and where the output is not that of `transcripts/`, the difference.
"""

from __future__ import annotations

import argparse
import difflib
import signal
import sys
import time
from collections.abc import Sequence

from tests.first_hour.hour import WrongTurn, an_hour
from tests.first_hour.steps import LeftOut, Walk
from tests.first_hour.transcript import transcript_file
from tests.first_hour.walks import WALKS


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.first_hour", description=__doc__)
    parser.add_argument("pages", nargs="*", help="names without folder and ending; all if absent")
    parser.add_argument("--update", action="store_true", help="write the transcripts anew")
    parser.add_argument("--verbose", action="store_true", help="name each step as it ends")
    options = parser.parse_args(arguments)
    # So that a walk that is ended from outside leaves nothing running either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    known = {walk.name: walk for walk in WALKS}
    unknown = set(options.pages) - known.keys()
    if unknown:
        parser.error(f"no page {sorted(unknown)}; there are {sorted(known)}")
    chosen = [walk for walk in WALKS if not options.pages or walk.name in options.pages]
    failed = [walk.name for walk in chosen if not walk_through(walk, options)]
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def walk_through(walk: Walk, options: argparse.Namespace) -> bool:
    """Walk one page and say what came of it."""
    started_s = time.monotonic()
    with an_hour(walk, is_verbose=options.verbose) as hour:
        try:
            found = [f"# {walk.page}", *hour.do(), ""]
        except (WrongTurn, LookupError) as error:
            print(f"✘ {walk.page}: {error}", flush=True)
            return False
    file = transcript_file(walk)
    if options.update:
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(found))
    wanted = file.read_text().split("\n") if file.exists() else []
    difference = list(difflib.unified_diff(wanted, found, str(file.name), "printed", lineterm=""))
    mark = "✘" if difference else "✔"
    print(f"{mark} {walk.page}: {time.monotonic() - started_s:.0f} s", flush=True)
    for line in difference:
        print(f"    {line}")
    for step in walk.steps:
        if isinstance(step, LeftOut):
            print(f"    block {step.block} is not run here: {step.reason}")
    return not difference


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
