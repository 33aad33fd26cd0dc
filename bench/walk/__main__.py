"""Measures the check of entries by the shape of their maps: `python -m bench.walk --help`.

Each shape is walked with the bounds' forms and without, in turn in one process, so the ratio is the
price of the check of bounds. With `--against` another checkout of Frazil walks the same manifests
in a process of its own, in turn with this one; a clock of the CPU counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.walk.shapes import CHANGES, manifests

ROOT = Path(__file__).resolve().parents[2]
_WALKER = Path(__file__).with_name("walker.py")
_ENTRIES = 1_000
# Patterns are compiled after some hundreds of entries.
_WARM_UP_ROUNDS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    roots = [ROOT, *([options.against.resolve()] if options.against else [])]
    print(
        "us an entry: as it is, without the check of bounds"
        + ", the other checkout" * len(roots[1:])
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in CHANGES:
            for is_plain in (True, False):
                title = f"{'plain' if is_plain else 'sized'}, {name}"
                if options.shape in title:
                    place = Path(folder) / title
                    _write(place, name, options.entries, options.files, is_plain=is_plain)
                    print(_line(title, _measure(roots, place, options.rounds), options.entries))
    return 0


def _write(place: Path, name: str, entries: int, files: int, *, is_plain: bool) -> None:
    place.mkdir()
    for number, content in enumerate(manifests(name, entries, files, is_plain=is_plain)):
        (place / f"{number:06}.avro").write_bytes(content)


def _measure(roots: Sequence[Path], place: Path, rounds: int) -> list[dict[str, float]]:
    """Return the fastest of all rounds, in which the checkouts take turns."""
    best: list[dict[str, float]] = [{} for _ in roots]
    with _walker(roots[0]) as first, _walker(roots[-1]) as last:
        walkers = [first, last][: len(roots)]
        for walker in walkers:
            _ask(walker, place, _WARM_UP_ROUNDS)
        for _ in range(rounds):
            for number, walker in enumerate(walkers):
                for name, took_s in _ask(walker, place, 1).items():
                    best[number][name] = min(took_s, best[number].get(name, took_s))
    return best


@contextmanager
def _walker(root: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process of its own for each shape: none finds patterns of another."""
    command = [sys.executable, str(_WALKER), str(root)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _ask(walker: subprocess.Popen[str], place: Path, rounds: int) -> dict[str, float]:
    assert walker.stdin is not None
    assert walker.stdout is not None
    walker.stdin.write(json.dumps([str(place), rounds]) + "\n")
    walker.stdin.flush()
    answer: dict[str, float] = json.loads(walker.stdout.readline())
    return answer


def _line(title: str, found: Sequence[dict[str, float]], entries: int) -> str:
    mine = found[0]["checked"]
    others = [found[0].get("unchecked", mine), *(each["checked"] for each in found[1:])]
    ratios = "  ".join(f"{one / entries * 1e6:7.2f} (x {mine / one:.2f})" for one in others)
    return f"{title:42} {mine / entries * 1e6:7.2f}  {ratios}"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.walk", description=__doc__)
    parser.add_argument("--shape", default="", help="a part of the names of shapes")
    parser.add_argument("--against", type=Path, help="another checkout of Frazil")
    parser.add_argument("--entries", type=int, default=_ENTRIES)
    parser.add_argument("--files", type=int, default=_ENTRIES, help="in each manifest")
    parser.add_argument("--rounds", type=int, default=9)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
