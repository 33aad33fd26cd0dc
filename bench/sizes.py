"""Scenario (d): one commit of 1 … 100,000 files, from the descriptors in memory to the receipt."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from bench.child import Child
from bench.frazil import PUBLISHERS, Frazil
from bench.peers.program import Peer
from bench.plan import Plan
from bench.records import Record, Recorder, Value
from bench.runs import Outcome
from bench.statistics import median
from bench.systems import PYICEBERG, load_average, open_systems
from tests.support.integration.real_harness import ROOT

_FIRST = 10_000_000  # a file beyond all others
_PEER_LIMIT_S = 90.0


def run(plan: Plan, recorder: Recorder) -> None:
    with open_systems(plan) as systems:
        for files in plan.commit_files:
            for turn in range(plan.rounds_of(files)):
                for name, peer in systems.peers.items():
                    if not (name == PYICEBERG and files >= 100_000 and turn):
                        values = _of_peer(peer, files, plan)
                        recorder.add(Record("d", name, case(files), turn, values))
                if systems.frazil is not None:
                    splits = plan.split_requests if files == plan.split_files else ()
                    for requests in (1, *splits):
                        values = _of_frazil(systems.frazil, files, requests, plan)
                        of = case(files, requests)
                        recorder.add(Record("d", systems.frazil.name, of, turn, values))
    if plan.has("frazil"):
        _functions(plan, recorder)


def case(files: int, requests: int = 1) -> str:
    files_text = f"{files:,} files" if files > 1 else "1 file"
    return files_text if requests == 1 else f"{files_text} from {requests:,} requests"


def _days(files: int) -> int:
    """Return so many files a day that a commit has ten days, as many partitions as regions."""
    return max(1, files // 10) if files > 1 else 100


def _of_peer(peer: Peer, files: int, plan: Plan) -> dict[str, Value]:
    load = load_average()
    times_ms = []
    for _ in range(plan.commits_of(files, is_slow=peer.name == PYICEBERG)):
        table = peer.program.fresh_table()
        peer.commits(table, count=1, files=1, start=_FIRST, limit_s=_PEER_LIMIT_S)
        answer = peer.commits(
            table, count=1, files=files, files_a_day=_days(files), limit_s=_PEER_LIMIT_S
        )
        times_ms += answer["ms"]
    proven = peer.program.tables.count(table).proves(files + 1)
    return _values(files, median(times_ms), load, proven)


def _of_frazil(frazil: Frazil, files: int, requests: int, plan: Plan) -> dict[str, Value]:
    load = load_average()
    times_ms = []
    for _ in range(plan.commits_of(files, is_slow=False)):
        table = frazil.fresh_table()
        _commit(frazil, table, 1, 1, start=_FIRST)
        outcome = _commit(frazil, table, files, requests)
        times_ms.append(
            (max(ended for _, _, ended in outcome.requests) - outcome.started_s) * 1_000
        )
    counted = frazil.tables.count(table)
    values = _values(files, median(times_ms), load, counted.proves(files + 1))
    return {**values, **outcome.more, "failed": outcome.failures}


def _commit(frazil: Frazil, table: str, files: int, requests: int, *, start: int = 0) -> Outcome:
    """Commit requests of a producer each, all published at once."""
    each = files // requests
    used = min(requests, PUBLISHERS)
    counts = [requests // used] * used + [0] * (PUBLISHERS - used)
    # A table's first commit has producers of its own.
    first = 1_000_000 if start else 0
    producers = [
        list(range(first + number * count, first + (number + 1) * count))
        for number, count in enumerate(counts)
    ]
    frazil.prepare(
        table, counts, files=each, files_a_day=_days(files), start=start, writers=producers
    )
    return frazil.run(table, "commit", producers, until_landed=requests)


def _values(files: int, ms: float, load: float, proven: bool) -> dict[str, Value]:
    return {
        "commit_of_files_ms": ms,
        "files_per_s": files / ms * 1_000,
        "proven": proven,
        "load_average": load,
    }


def _functions(plan: Plan, recorder: Recorder) -> None:
    """Measure the committer's functions alone, in a clean process: with and without the check."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        command = [sys.executable, "-m", "bench.functions"]
        child = Child("functions", command, log=Path(folder) / "log", environment=environment)
        try:
            for requests in (1, *plan.split_requests):
                for turn in range(plan.rounds_of(plan.split_files)):
                    answer = child.ask(
                        "measure", files=plan.split_files, requests=requests, folder=folder
                    )
                    name = "committer's functions"
                    of = case(plan.split_files, requests)
                    recorder.add(Record("d", name, of, turn, {**answer, "proven": True}))
        finally:
            child.close()
