"""Asks Iceberg Java anew for the answers to all cases and to every step of the given lines, and
packs them with these.

`python -m tests.conformance.operations.pack [SEED COUNT]` writes `tests/operations.tar.xz`.
"""

from __future__ import annotations

import io
import json
import lzma
import sys
import tarfile
from collections.abc import Mapping

from tests.conformance.operations.case import Case
from tests.conformance.operations.directed_cases import directed_cases
from tests.conformance.operations.java import java_answers
from tests.conformance.operations.lines import ANSWERS, read_lines
from tests.conformance.operations.random_cases import random_cases
from tests.support.builders.fixtures import OPERATIONS, operations_dir

CASES = "cases.jsonl"
_MADE = (CASES, ANSWERS)
_SEED, _COUNT = 7, 648


def main(arguments: list[str]) -> None:
    seed, count = map(int, arguments) if arguments else (_SEED, _COUNT)
    folder = operations_dir()
    given = {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in _MADE}
    lines = [line for path in sorted(folder.glob("*.txt")) for line in read_lines(path)]
    cases = [*directed_cases(), *random_cases(seed, count)]
    of_lines = _answered([line.case for line in lines])
    _pack({**given, CASES: _answered(cases), ANSWERS: of_lines})
    sizes = f"{len(lines)} lines, {len(cases)} cases, {OPERATIONS.stat().st_size} bytes"
    print(f"{OPERATIONS.name}: {sizes}")


def _answered(cases: list[Case]) -> bytes:
    """Return a line for each case: the case with Java's answers."""
    answers = zip(cases, java_answers(cases), strict=True)
    documents = ({**case.printed(), "answers": found} for case, found in answers)
    return "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in documents).encode()


def _pack(files: Mapping[str, bytes]) -> None:
    """Pack so that equal content gives equal bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"operations/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    OPERATIONS.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main(sys.argv[1:])
