"""The process that measures one case: `python -m bench.format.run_case CASE SYSTEM SIZE ROUNDS`.

Its answer is one line of JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.format import fastavro_peer, frazil, pyiceberg_peer
from bench.format.cases import FASTAVRO, FRAZIL, PYICEBERG, RUST
from bench.format.measure import Work, measure

SYSTEMS: Mapping[str, Mapping[str, Callable[[int, Path], Work]]] = {
    FRAZIL: frazil.CASES,
    FASTAVRO: fastavro_peer.CASES,
    PYICEBERG: pyiceberg_peer.CASES,
    RUST: pyiceberg_peer.RUST_CASES,
}


def main(case: str, system: str, size: str, rounds: str) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        work = SYSTEMS[system][case](int(size), Path(folder))
        print(json.dumps(measure(work, int(rounds)).as_json()))


if __name__ == "__main__":
    main(*sys.argv[1:])
