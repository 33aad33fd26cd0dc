"""`python -m tests.corpus --against [HOME]`: publish every hostile case to a running committer.

HOME is the committer's; without one its settings are read from the environment, as its own are.
Prints a row for each case: what was expected and found, and the delay of the good requests before
and behind it, and of a large one. Exit codes: 0 all as expected, 1 a case or a neighbor was not, 2
wrong arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator, Sequence

from committer.errors import FrazilError, SettingsError
from committer.settings.service_settings import Settings, load_settings
from tests.corpus import taken
from tests.corpus.against import LANDED, Against, Row, opened, play_all
from tests.corpus.cases import LANDING, ON_DISK, REFUSED, TOLD
from tests.corpus.hostile import Hostile
from tests.corpus.signatures import signatures

CATALOG = "frazil"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("--against", nargs="?", const="", required=True, metavar="HOME")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="one of so many cases")
    parser.add_argument("--at-once", type=int, default=32, help="cases under way at a time (32)")
    parser.add_argument("--timeout-s", type=float, default=60.0, help="for a verdict (60)")
    parser.add_argument("--keep", action="store_true", help="take nothing away at the end")
    options = parser.parse_args(arguments)
    if options.against:
        os.environ["FRAZIL_HOME"] = options.against
    try:
        settings = load_settings()
        if settings.catalog.name != CATALOG:
            parser.error(f"the cases are for a catalog `{CATALOG}`, not `{settings.catalog.name}`")
        return asyncio.run(_run(settings, options))
    except FrazilError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _chosen(settings: Settings, against: Against, options: argparse.Namespace) -> list[Hostile]:
    """Return the cases that fit the committer, and that the options choose."""
    cases = [one for one in _cases(settings, against) if options.only in one.name]
    return cases[:: options.every]


def _cases(settings: Settings, against: Against) -> list[Hostile]:
    """Return the cases that fit: entries that are no files need a folder, doorbells a queue,
    signatures a key that may sign. Where every request must be signed, no other fault is checked.
    """
    on_signatures = signatures(against.key, against.other_keys) if against.key else ()
    if settings.security.require_signature:
        return [*on_signatures]
    on_disk = ON_DISK if settings.inbox.startswith("file://") else ()
    told = TOLD if settings.queue.url != "none" else ()
    return [*REFUSED, *LANDING, *on_disk, *told, *on_signatures]


def _left_out(settings: Settings, against: Against) -> Iterator[str]:
    """Yield the kinds of cases that do not fit this committer, and why."""
    if against.key is None:
        has_keys = bool(settings.security.keys)
        why = "no key of its file may sign for every table" if has_keys else "it knows no keys"
        yield f"left out: forged signatures, as {why}"
    if settings.security.require_signature:
        yield "left out: all that is not about signatures, as every request must be signed"
    if settings.queue.url == "none":
        yield "left out: doorbells, and a stream that is taken, as there is no queue"
    if not settings.inbox.startswith("file://"):
        yield "left out: entries that are no files, as the inbox is no folder"


async def _run(settings: Settings, options: argparse.Namespace) -> int:
    rows: list[Row] = []
    async with opened(settings, options.timeout_s) as against:
        if settings.security.require_signature and against.key is None:
            raise SettingsError("every request must be signed, and no key may sign for new tables")
        cases = _chosen(settings, against, options)
        async for row in play_all(against, cases, options.at_once):
            rows.append(row)
            print(_text(row), flush=True)
        # Behind all others, whose delays it would change.
        summary = _summary(rows)
        if settings.queue.url != "none" and options.only in taken.NAME and options.every == 1:
            rows.append(await against.play_taken_stream())
            print(_text(rows[-1]), flush=True)
        landed = sum(row.found == LANDED for row in rows if row.name != taken.NAME)
        expected, found = against.goods + landed, await against.files()
        if not options.keep:
            await against.clean()
        for line in _left_out(settings, against):
            print(line)
    wrong = [row for row in rows if not row.is_right]
    print(f"{len(rows) - len(wrong)} of {len(rows)} cases as expected{summary}")
    print(f"{found} files are in the tables, expected {expected}")
    for row in wrong:
        print(f"WRONG: {_text(row)}")
    return 1 if wrong or found != expected else 0


def _text(row: Row) -> str:
    delays = ("  none" if one is None else f"{one:6.0f}" for one in row.delays_ms)
    seen = row.found if row.is_right else f"{row.found}, expected {row.expected}"
    return f"{' ms '.join(delays)} ms  {seen:27}  {row.name}"


def _summary(rows: Sequence[Row]) -> str:
    small = _quantiles([row.delays_ms[:2] for row in rows])
    large = _quantiles([row.delays_ms[2:] for row in rows])
    text = f"; good requests landed within {small}" if small else ""
    return f"{text}, large ones within {large}" if large else text


def _quantiles(delays_ms: Sequence[Sequence[float | None]]) -> str:
    delays = sorted(one for row in delays_ms for one in row if one is not None)
    if not delays:
        return ""
    p50, p99 = delays[len(delays) // 2], delays[min(len(delays) * 99 // 100, len(delays) - 1)]
    return f"{p50:.0f} ms (p50), {p99:.0f} ms (p99), {delays[-1]:.0f} ms (at most)"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
